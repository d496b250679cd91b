/** Containers of a node that waited for a processor, and the ones that kept it busy. */
import { type Answer, addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { numberText } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge } from '../../parts/text.tsx'
import { go, hrefWith, usePlace } from '../../place.ts'
import { type PairRow, pairsOf } from './pairs.ts'

const WINDOWS = [5, 15, 60] as const
const DEFAULT_MINUTES = 5
/** The route returns at most this many rows. */
const MAX_ROWS = 10_000
/** Rows of a container, each of a minute and a culprit: for a thousand containers these are about 200 kB. */
const PER_VICTIM = 5

const questionOf = (node: string, minutes: number) => ({ query: { node, minutes, per_victim: PER_VICTIM } })

export function NodeContention({ node }: { node: string }) {
  const given = Number(usePlace().query.get('minutes'))
  const minutes = WINDOWS.find((one) => one === given) ?? DEFAULT_MINUTES
  const asked = questionOf(node, minutes)
  const reading = useRead('/compute/contention', asked)
  return (
    <div class="section">
      <h2 id="contention">Who waited for whom</h2>
      <Shown reading={reading}>{({ pairs }) => <Pairs {...{ node, minutes, pairs }} />}</Shown>
    </div>
  )
}

interface PairsProps {
  readonly node: string
  readonly minutes: number
  readonly pairs: Answer<'/compute/contention'>['pairs']
}

function Pairs({ node, minutes, pairs }: PairsProps) {
  const url = addressOf('/compute/contention', questionOf(node, minutes))
  return (
    <>
      <p class="faint">
        Of each container the {PER_VICTIM} longest waits of the time chosen, each the wait of a minute for one other.
      </p>
      {pairs.length === MAX_ROWS && <p class="stale">The node has more containers than the broker lists.</p>}
      <Table
        name="Who waited for whom"
        rows={pairsOf(pairs)}
        keyOf={({ victim, culprit }) => `${victim} ${culprit}`}
        columns={COLUMNS}
        commands={{
          ctb: ['contention', '--node', node, '--minutes', `${minutes}`, '--per-victim', `${PER_VICTIM}`],
          url,
        }}
        empty={
          <Empty title="No wait is recorded">
            That says something only where the agent of the node watches who waits for whom.
          </Empty>
        }
        tools={
          <label>
            Last{' '}
            <select value={minutes} onChange={({ currentTarget }) => go(hrefWith({ minutes: currentTarget.value }))}>
              {WINDOWS.map((one) => (
                <option key={one} value={one}>
                  {one} minutes
                </option>
              ))}
            </select>
          </label>
        }
      />
    </>
  )
}

const NS_PER_MS = 1_000_000

const waitText = (ns: number) => {
  const ms = ns / NS_PER_MS
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${ms.toFixed(1)} ms`
}

const COLUMNS: readonly Column<PairRow>[] = [
  {
    title: 'Waited',
    cell: ({ namespace, victim }) => (
      <>
        {namespace} <span class="faint">{victim}</span>
      </>
    ),
    text: ({ victim }) => victim,
    width: '26rem',
  },
  {
    title: 'For',
    cell: ({ culprit, kind }) => (
      <>
        {culprit} <Badge>{kind}</Badge>
      </>
    ),
    text: ({ culprit }) => culprit,
    width: '26rem',
  },
  {
    title: 'Wait',
    cell: ({ waitNs }) => <span class="number">{waitText(waitNs)}</span>,
    text: ({ waitNs }) => waitNs,
    isNumber: true,
    width: '7rem',
  },
  {
    title: 'Times',
    cell: ({ count }) => <span class="number">{numberText(count)}</span>,
    text: ({ count }) => count,
    isNumber: true,
    width: '7rem',
  },
]
