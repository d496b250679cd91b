/** Decisions about a vulnerability with their authors and reasons, including those that no longer hold. */
import { type Answer, addressOf } from '../../api/client.ts'
import { itemsOf, usePages } from '../../api/query.ts'
import { DecisionBadge, Scope, scopeText } from '../../parts/decision.tsx'
import { Empty, Shown } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'

type Decision = Answer<'/vulnerabilities/{id}/decisions'>['items'][number]

const PAGE_ROWS = 50

export function Decisions({ id }: { id: string }) {
  const asked = { path: { id }, query: { limit: PAGE_ROWS } }
  const reading = usePages('/vulnerabilities/{id}/decisions', asked)
  const rows = itemsOf(reading)
  return (
    <div class="section">
      <h2 id="decisions">Decisions</h2>
      <Shown reading={reading}>
        {() => (
          <Table
            name="Decisions"
            rows={rows}
            keyOf={(one) => String(one.id)}
            columns={COLUMNS}
            paged={reading}
            commands={{ ctb: ['decisions', id], url: addressOf('/vulnerabilities/{id}/decisions', asked) }}
            empty={
              <Empty title="Nobody has decided on it">
                Decisions come with PUT /vulnerabilities/{'{id}'}/decision, or with a VEX document. A decision hides
                nothing.
              </Empty>
            }
          />
        )}
      </Shown>
    </div>
  )
}

const ENDED: Readonly<Record<NonNullable<Decision['endedHow']>, string>> = {
  replaced: 'replaced',
  withdrawn: 'withdrawn',
  expired: 'expired',
}

function Holds({ decision: { holds, until, endedAt, endedHow, endedBy, endedWhy } }: { decision: Decision }) {
  if (holds) return <span>holds{until !== null && ` until ${until}, UTC`}</span>
  return (
    <span class="faint">
      {endedHow === null ? 'does not hold' : ENDED[endedHow]} <Time at={endedAt} />
      {endedBy !== null && ` by ${endedBy}`}
      {endedWhy !== null && endedWhy !== '' && `: ${endedWhy}`}
    </span>
  )
}

const COLUMNS: readonly Column<Decision>[] = [
  {
    title: 'Decision',
    cell: ({ decision }) => <DecisionBadge decision={decision} />,
    text: ({ decision }) => decision,
    width: '11rem',
  },
  {
    title: 'For',
    cell: ({ scope, package: name }) => (
      <>
        <Scope scope={scope} />
        {name !== null && <span class="faint"> package {name}</span>}
      </>
    ),
    text: ({ scope, package: name }) => `${scopeText(scope)} ${name ?? ''}`.trim(),
    width: '18rem',
  },
  {
    title: 'State',
    cell: (decision) => <Holds decision={decision} />,
    text: ({ holds, endedHow }) => (holds ? 'holds' : endedHow),
    width: '16rem',
  },
  {
    title: 'Why',
    cell: ({ why, justification }) => (
      <span class="wrap">
        {justification !== null && <span class="faint">{justification.replaceAll('_', ' ')}. </span>}
        {why}
      </span>
    ),
    text: ({ why }) => why,
    width: '22rem',
  },
  {
    title: 'By',
    cell: ({ by, origin }) => (
      <>
        {by}
        {origin !== null && <span class="faint wrap"> in the document {origin.document}</span>}
      </>
    ),
    text: ({ by }) => by,
    width: '14rem',
  },
  {
    title: 'When',
    cell: ({ decidedAt }) => <Time at={decidedAt} />,
    text: ({ decidedAt }) => decidedAt,
    width: '11rem',
  },
]
