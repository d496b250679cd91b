/** The result of a trial: counts, edges that would be denied, and edges that could not be judged. */
import { useMemo, useState } from 'preact/hooks'
import { Empty } from '../../../parts/states.tsx'
import { Badge, Count } from '../../../parts/text.tsx'
import { Ago, Time, toMs } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import { type LineFinder, lineFinder } from '../text/place.ts'
import { type DeniedEdge, type DeniedGroup, filterOfSide, groupDenied, type Side, sideText } from './denied.ts'
import { daysText, type Trial } from './try-policies.ts'

/** Number of peers shown at first. */
const GROUPS_SHOWN = 20
const MAX_WORKLOADS = 3
const MS_PER_DAY = 86_400_000
/** A trial covers the days before the moment at which it ran. */
const SLACK_MS = 3_600_000
const count = new Intl.NumberFormat()

export interface TrialViewProps {
  readonly trial: Trial
  readonly text: string
  readonly days: string
  /** Undefined for a result that is out of date, whose lines no longer match the text. */
  readonly onLine?: (line: number) => void
}

export function TrialView({ trial, text, days, onLine }: TrialViewProps) {
  const { evaluated, denied, moreDenied, unknown, deniedEdges, unknownReasons } = trial
  const groups = useMemo(() => groupDenied(deniedEdges), [deniedEdges])
  const lineOf = useMemo(() => lineFinder(text), [text])
  const places = onLine && { lineOf, onLine }
  return (
    <div class="trial">
      <Summary trial={trial} days={days} />
      {evaluated === 0 && (
        <Empty title="No edge was judged">
          Nothing that was seen in this time concerns these policies: they select no known pod, or their pods had no new
          connection.
        </Empty>
      )}
      {denied > 0 && (
        <section class="section" aria-labelledby="denied">
          <h3 id="denied">
            Would be cut off <Badge tone="bad">{count.format(denied)}</Badge>
          </h3>
          <Groups key={trial.asOf} groups={groups} places={places} />
          {moreDenied > 0 && <p>{count.format(moreDenied)} more edges are denied, which the broker does not list.</p>}
        </section>
      )}
      {unknown > 0 && (
        <section class="section" aria-labelledby="unknown">
          <h3 id="unknown">
            Cannot be judged <Badge tone="warn">{count.format(unknown)}</Badge>
          </h3>
          <ul class="plain-list">
            {unknownReasons.map(({ reason, edges }) => (
              <li key={reason}>
                <strong>
                  {count.format(edges)} {edges === 1 ? 'edge' : 'edges'}
                </strong>
                : <span class="wrap">{reason}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Policies trial={trial} />
      <Limits trial={trial} days={days} />
    </div>
  )
}

function Summary({ trial: { evaluated, allowed, denied, unknown }, days }: Omit<TrialViewProps, 'text'>) {
  return (
    <div>
      <p class="verdict">
        {evaluated === 0 ? (
          <Badge tone="warn">nothing judged</Badge>
        ) : denied > 0 ? (
          <Badge tone="bad">{count.format(denied)} would be cut off</Badge>
        ) : unknown > 0 ? (
          <Badge tone="warn">nothing known would be cut off</Badge>
        ) : (
          <Badge tone={days === 'all' ? 'good' : 'info'}>
            nothing {days === 'all' ? 'seen' : 'new'} would be cut off
          </Badge>
        )}
      </p>
      <dl class="counts">
        <Figure name="judged" value={evaluated} />
        <Figure name="allowed" value={allowed} />
        <Figure name="denied" value={denied} />
        <Figure name="not known" value={unknown} />
      </dl>
      <p class="faint">
        Counted in edges: all flows of one client to one server on one port
        {days !== 'all' && `, with a new flow in ${daysText(days)}`}.
      </p>
      {days !== 'all' && (
        <p class="note">
          An edge without a new flow in that time may be in use, and was not judged: a living pod reports a connection
          to the same peer once. Try it on all that is kept, too.
        </p>
      )}
    </div>
  )
}

function Figure({ name, value }: { name: string; value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Count value={value} />
      </dd>
    </div>
  )
}

/** Finds the line of a rule, and scrolls to it. */
interface Places {
  readonly lineOf: LineFinder
  readonly onLine: (line: number) => void
}

interface GroupProps {
  readonly group: DeniedGroup
  readonly places: Places | undefined
}

function Groups({ groups, ...shared }: { groups: readonly DeniedGroup[] } & Omit<GroupProps, 'group'>) {
  const [shown, setShown] = useState(GROUPS_SHOWN)
  const more = groups.length - shown
  return (
    <>
      {groups.slice(0, shown).map((group) => (
        <Group key={group.key} group={group} {...shared} />
      ))}
      {more > 0 && (
        <p>
          <button type="button" onClick={() => setShown(shown + GROUPS_SHOWN)}>
            Show {Math.min(more, GROUPS_SHOWN)} of {count.format(more)} more peers
          </button>
        </p>
      )}
    </>
  )
}

function Group({ group: { isolated, peer, direction, edges }, places }: GroupProps) {
  return (
    <article class="cut-off">
      <h4>
        {direction} <SideName side={peer} />
      </h4>
      <p class="faint">
        {direction === 'from' ? 'to' : 'from'} <SideName side={isolated} />
      </p>
      <ul>
        {edges.map((edge) => (
          <li key={`${edge.port}/${edge.protocol}/${sideText(edge.from)}`}>
            <Edge edge={edge} places={places} />
          </li>
        ))}
      </ul>
    </article>
  )
}

function Edge({ edge, places }: { edge: DeniedEdge } & Omit<GroupProps, 'group'>) {
  const { port, protocol, flows, lastNewAt, deniedBy, example } = edge
  return (
    <>
      <p>
        <strong>
          {port}/{protocol}
        </strong>{' '}
        · <a href={flowsOf(edge)}>{flows === 1 ? '1 flow' : `${count.format(flows)} flows`}</a> · newest{' '}
        <Ago at={lastNewAt} />
      </p>
      {deniedBy.map(({ direction, document, policy, path, why }) => {
        const line = places?.lineOf(document, path) ?? null
        return (
          <p key={`${direction} ${policy} ${path}`} class="why">
            <Badge>{direction}</Badge> <span class="wrap">{why}</span>
            <span class="faint">
              {' '}
              ({path === null ? `policy ${policy} has no rule for it` : `nearest rule: ${path} of ${policy}`}
              {line !== null && (
                <>
                  ,{' '}
                  <button type="button" class="link" onClick={() => places?.onLine(line)}>
                    line {line}
                  </button>
                </>
              )}
              )
            </span>
          </p>
        )
      })}
      {example !== null && (
        <p class="faint wrap">
          Such as {example.podName ?? example.podIp} with {example.peerName ?? example.peerIp},{' '}
          <Time at={example.timeStamp} />
        </p>
      )}
    </>
  )
}

/**
 * Link to the flows of an edge, of all times as in its count. Flows through a service on another port are not included.
 */
function flowsOf({ from, to, port, protocol }: DeniedEdge): string {
  const filters = (
    [
      ['from', from],
      ['to', to],
    ] as const
  ).flatMap(([end, side]) => {
    const filter = filterOfSide(side)
    return filter === null ? [] : [[`${end}_${filter[0]}`, filter[1]] as const]
  })
  return href(['flows'], { ...Object.fromEntries(filters), port, protocol, verdict: 'ALLOW', since: null })
}

function SideName({ side }: { side: Side }) {
  const { kind, namespace, workload, ip } = side
  const [ofKind, name] = workload?.split('/') ?? []
  if (kind === 'workload' && namespace !== null && ofKind !== undefined && name !== undefined)
    return (
      <a href={href(['focus', namespace, ofKind, name])}>
        <span class="faint">
          <bdi>{namespace}</bdi>/
        </span>
        <bdi>{name}</bdi> <span class="kind">{ofKind}</span>
      </a>
    )
  if (ip !== null)
    return (
      <>
        <span class="kind">{kind}</span> <code>{ip}</code>
      </>
    )
  return <span class="wrap">{sideText(side)}</span>
}

function Policies({ trial: { policies } }: { trial: Trial }) {
  return (
    <details>
      <summary>
        What each policy does <Badge>{count.format(policies.length)}</Badge>
      </summary>
      <ul class="plain-list">
        {policies.map(({ document, namespace, name, directions, workloads, evaluated, denied, unknown }, i) => (
          <li key={`${document} ${i}`}>
            <strong class="wrap">
              <bdi>{namespace}</bdi>/<bdi>{name}</bdi>
            </strong>{' '}
            isolates {directions.join(' and ') || 'nothing'} of {namesOf(workloads)}:{' '}
            {`${count.format(evaluated)} judged, ${count.format(denied)} denied, ${count.format(unknown)} not known`}
          </li>
        ))}
      </ul>
    </details>
  )
}

function namesOf(workloads: readonly string[]): string {
  if (workloads.length === 0) return 'no workload that is known'
  const more = workloads.length - MAX_WORKLOADS
  return `${workloads.slice(0, MAX_WORKLOADS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function Limits({ trial: { about, observedSince, labelsAsOf, asOf }, days }: { trial: Trial; days: string }) {
  const since = observedSince === null ? Number.NaN : toMs(observedSince)
  const isShort = since > toMs(asOf) - Number(days) * MS_PER_DAY + SLACK_MS
  return (
    <div class="faint">
      {isShort && (
        <p class="stale">
          Connections are only known since <Time at={observedSince} />: less than the days that you asked for.
        </p>
      )}
      <p>{about}</p>
      <p>
        Edges since <Time at={observedSince} />, counted as of <Time at={asOf} />. Labels, ports and addresses of pods
        are those of <Time at={labelsAsOf} />, not those of the time of a flow. Dropped flows are not judged.
      </p>
    </div>
  )
}
