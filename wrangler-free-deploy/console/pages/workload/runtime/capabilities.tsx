/** Used Linux capabilities compared with those that the manifest grants. */

import { addressOf } from '../../../api/client.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Empty } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, Count } from '../../../parts/text.tsx'
import { Ago, Time } from '../../../parts/time.tsx'
import { Because } from '../because.tsx'
import type { Profile } from '../words.ts'
import { CAPABILITY_WORDS, type CapabilityRow, capabilityRows, grantedText } from './capability-rows.ts'

type Container = Profile['capabilities']['containers'][number]

export function Capabilities({ profile }: { profile: Profile }) {
  const { containers, windowHours } = profile.capabilities
  const { namespace, kind, name } = profile.workload
  return (
    <section class="section">
      <h2>Capabilities</h2>
      {containers.length === 0 && (
        <Empty title="No container is in the inventory">So nothing is known of its capabilities.</Empty>
      )}
      {containers.map((container) => (
        <Capability key={container.container} container={container} profile={profile} windowHours={windowHours} />
      ))}
      <div class="table-tools">
        <CopyAs
          url={addressOf('/workloads/{namespace}/{kind}/{name}/capabilities', { path: { namespace, kind, name } })}
        />
      </div>
    </section>
  )
}

function Capability({
  container,
  profile,
  windowHours,
}: {
  container: Container
  profile: Profile
  windowHours: number
}) {
  const { evidence, reason, reasonDetail, observedSince, recommendation } = container
  const rows = capabilityRows(container)
  return (
    <div class="section">
      <h3>{container.container}</h3>
      <dl class="pairs">
        <dt>In the manifest</dt>
        <dd>{grantedText(profile, container.container)}</dd>
        <dt>Evidence</dt>
        <dd>
          <Badge tone={evidence === 'sufficient' ? 'good' : 'plain'}>{evidence}</Badge>{' '}
          {reason === null ? (
            <>
              watched for {windowHours} hours or more
              {observedSince !== null && (
                <>
                  , since <Time at={observedSince} />
                </>
              )}
            </>
          ) : (
            <Because reason={reason} detail={reasonDetail} />
          )}
        </dd>
        <dt>Recommended</dt>
        <dd>
          {recommendation === null ? 'nothing, without sufficient evidence' : <Recommended {...recommendation} />}
        </dd>
      </dl>
      <Table
        name={`Capabilities of ${container.container}`}
        rows={rows}
        keyOf={({ capability, state }) => `${capability} ${state}`}
        columns={COLUMNS}
        empty={
          <p class="faint">
            {evidence === 'sufficient'
              ? 'The kernel was asked for no capability while it was watched.'
              : 'No check was seen, and it was not watched well enough to say that there was none.'}
          </p>
        }
      />
    </div>
  )
}

function Recommended({ add, probedKept, probedOmitted, requires }: NonNullable<Container['recommendation']>) {
  return (
    <>
      drop ALL, add {add.length === 0 ? 'none' : add.join(', ')}
      {requires !== undefined && ', with allowPrivilegeEscalation: false'}
      {probedKept.length > 0 && <span class="faint"> (only asked for and kept: {probedKept.join(', ')})</span>}
      {probedOmitted.map(({ capability, reason }) => (
        <span key={capability} class="faint">
          {' '}
          (left out: {capability}, {reason})
        </span>
      ))}
    </>
  )
}

const TONES = { used: 'info', probed: 'plain', denied: 'bad', unused: 'warn' } as const

const COLUMNS: readonly Column<CapabilityRow>[] = [
  { title: 'Capability', cell: ({ capability }) => <code>{capability}</code>, text: ({ capability }) => capability },
  {
    title: 'State',
    cell: ({ state }) => <Badge tone={TONES[state]}>{CAPABILITY_WORDS[state]}</Badge>,
    text: ({ state }) => CAPABILITY_WORDS[state],
  },
  {
    title: 'Checks',
    cell: ({ count }) => (count === null ? <span class="faint">–</span> : <Count value={count} />),
    text: ({ count }) => count,
    isNumber: true,
  },
  {
    title: 'First',
    cell: ({ firstSeen }) => (firstSeen === null ? <span class="faint">–</span> : <Ago at={firstSeen} />),
    text: ({ firstSeen }) => firstSeen,
  },
  {
    title: 'Last',
    cell: ({ lastSeen }) => (lastSeen === null ? <span class="faint">–</span> : <Ago at={lastSeen} />),
    text: ({ lastSeen }) => lastSeen,
  },
]
