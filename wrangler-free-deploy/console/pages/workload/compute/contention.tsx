/** Findings of the last five minutes, and the processes that made containers of the workload wait for a processor. */
import { addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { counted } from '../../../parts/plural.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Count, SeverityBadge } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import type { Named } from '../name.ts'
import { percentText } from './series.ts'
import { type ComputeFinding, findingText, type LatestContainer, type Wait, waitsOf, waitText } from './waits.ts'

const FINDINGS = '/compute/findings'
const CONTENTION = '/compute/contention'
const MINUTES = 60
/** Rows of a container in an answer, each of a minute and a culprit. */
const LONGEST = 50

export function Findings({
  workload: { namespace },
  pods,
  isSampled,
}: {
  workload: Named
  pods: ReadonlySet<string>
  isSampled: boolean
}) {
  const params = { query: { namespace } }
  const reading = useRead(FINDINGS, params)
  return (
    <section class="section">
      <h2>Short of CPU or memory now</h2>
      <Shown reading={reading}>
        {({ findings, truncated, history_disabled, victims_evaluated }) => (
          <>
            {truncated && <p class="note">The namespace has more containers than the broker looked at.</p>}
            <Table
              name="Containers that are short of CPU or memory"
              rows={findings.filter(({ victim }) => pods.has(victim.pod_name))}
              keyOf={({ kind, victim }) => `${kind} ${victim.container_uid}`}
              columns={FINDING_COLUMNS}
              commands={{ ctb: ['findings', '-n', namespace], url: addressOf(FINDINGS, params) }}
              empty={
                <Empty
                  title={
                    history_disabled || victims_evaluated === 0 || !isSampled
                      ? 'Not known'
                      : 'None in the last five minutes'
                  }
                >
                  {history_disabled
                    ? 'The broker keeps no history of CPU and memory, from which findings are computed.'
                    : !isSampled
                      ? 'No container of the workload is sampled now.'
                      : victims_evaluated === 0
                        ? 'No container of the namespace has minutes of the last five to judge.'
                        : `${counted(victims_evaluated, 'container')} of the namespace had minutes to judge.`}
                </Empty>
              }
            />
          </>
        )}
      </Shown>
    </section>
  )
}

/** `namespace/pod`, or the container's own name if the broker knows no pod. */
function culpritText({ culprit }: ComputeFinding): string {
  if (culprit === null) return 'nobody named'
  const { kind, ref, namespace, pod_name } = culprit
  return kind === 'pod' && pod_name !== null ? `${namespace ?? '?'}/${pod_name}` : `${ref} (${kind})`
}

const FINDING_COLUMNS: readonly Column<ComputeFinding>[] = [
  {
    title: 'Severity',
    cell: ({ severity }) => <SeverityBadge severity={severity} />,
    text: ({ severity }) => severity,
  },
  {
    title: 'Container',
    cell: ({ victim: { pod_name, container } }) => (
      <>
        <bdi>{pod_name}</bdi> <span class="kind">{container}</span>
      </>
    ),
    text: ({ victim: { pod_name, container } }) => `${pod_name}/${container}`,
  },
  { title: 'What', cell: ({ kind }) => findingText(kind), text: ({ kind }) => kind },
  {
    title: 'Because of',
    cell: (finding) => {
      const { culprit } = finding
      return (
        <>
          {culprit?.pod_name && culprit.namespace ? (
            <a href={href(['flows'], { pod: `${culprit.namespace}/${culprit.pod_name}` })}>{culpritText(finding)}</a>
          ) : (
            <bdi>{culpritText(finding)}</bdi>
          )}
          {culprit !== null && culprit.blame_share > 0 && (
            <span class="faint"> {percentText(culprit.blame_share * 100)} of the wait</span>
          )}
        </>
      )
    },
    text: culpritText,
  },
  { title: 'In words', cell: ({ message }) => message, text: ({ message }) => message },
  { title: 'Since', cell: ({ first_seen }) => <Ago at={first_seen} />, text: ({ first_seen }) => first_seen },
]

export function Contention({
  containers,
  podUid,
  node,
  isProbed,
}: {
  containers: readonly LatestContainer[]
  podUid: string
  node: string
  /** Whether the node has the contention probe; null if that is not known. */
  isProbed: boolean | null
}) {
  const params = { query: { pod_uid: podUid, minutes: MINUTES } }
  const reading = useRead(CONTENTION, params)
  const victims = new Map(
    containers.map(({ container_uid, pod_name, container }) => [container_uid, `${pod_name}/${container}`]),
  )
  return (
    <section class="section">
      <h2>Who made it wait</h2>
      <p class="faint">
        Waits for a processor of the pod above, on <a href={href(['node', node])}>{node}</a>, in the last {MINUTES}{' '}
        minutes. Of each container the {LONGEST} longest waits count, each that of a minute for one other.
      </p>
      <Shown reading={reading}>
        {({ pairs }) => (
          <Table
            name="Who made it wait"
            rows={waitsOf(pairs, victims)}
            keyOf={({ victim, culprit, culpritKind, node: on }) => `${victim} ${culpritKind} ${culprit} ${on}`}
            columns={WAIT_COLUMNS}
            commands={{
              ctb: ['contention', '--pod-uid', podUid, '--minutes', `${MINUTES}`],
              url: addressOf(CONTENTION, params),
            }}
            empty={
              isProbed === true ? (
                <Empty title="No wait is recorded">The node has the contention probe, and it named nobody.</Empty>
              ) : (
                <Empty title="Not known">
                  {isProbed === false
                    ? 'The node has no contention probe, so nobody measured who waits for whom.'
                    : 'It is not known whether the node has the contention probe.'}
                </Empty>
              )
            }
          />
        )}
      </Shown>
    </section>
  )
}

const WAIT_COLUMNS: readonly Column<Wait>[] = [
  { title: 'Container', cell: ({ victim }) => victim, text: ({ victim }) => victim },
  {
    title: 'Waited for',
    cell: ({ culprit, culpritKind }) => (
      <>
        <bdi>{culprit}</bdi> <span class="kind">{culpritKind}</span>
      </>
    ),
    text: ({ culprit, culpritKind }) => `${culprit} (${culpritKind})`,
  },
  { title: 'Wait', cell: ({ waitNs }) => waitText(waitNs), text: ({ waitNs }) => waitNs, isNumber: true },
  { title: 'Times', cell: ({ count }) => <Count value={count} />, text: ({ count }) => count, isNumber: true },
  {
    title: 'Minutes',
    cell: ({ minutes }) => <Count value={minutes} />,
    text: ({ minutes }) => minutes,
    isNumber: true,
  },
  { title: 'Last', cell: ({ lastSeen }) => <Ago at={lastSeen} />, text: ({ lastSeen }) => lastSeen },
]
