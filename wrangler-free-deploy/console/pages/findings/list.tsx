/** Containers that wait for CPU or memory, and the containers that make them wait. */
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { FilterBar } from '../../parts/filter-bar.tsx'
import { flagsOf, NAMESPACE, NODE, useListFilter } from '../../parts/list-filter.ts'
import { counted } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import '../lists.css'
import { FindingTable } from './table.tsx'

type Findings = Answer<'/compute/findings'>
type Query = NonNullable<Params<'/compute/findings'>['query']>

const FIELDS = [NAMESPACE, NODE]

export default function FindingsPage() {
  const filter = useListFilter(FIELDS)
  const asked = { query: filter as Query }
  const reading = useRead('/compute/findings', asked)
  return (
    <>
      <h1>CPU and memory</h1>
      <FilterBar fields={FIELDS} fieldOf={() => 'namespace'} />
      <Shown reading={reading}>
        {(answer) => (
          <>
            <p class="lead">
              Containers that waited in the last five minutes; {counted(answer.victims_evaluated, 'container')}{' '}
              {answer.victims_evaluated === 1 ? 'was' : 'were'} looked at.
            </p>
            {answer.truncated && <p class="stale">Not everything was looked at. Narrow the filter.</p>}
            <FindingTable
              findings={answer.findings}
              commands={{ ctb: ['findings', ...flagsOf(filter)], url: addressOf('/compute/findings', asked) }}
              empty={<NoFindings answer={answer} />}
            />
          </>
        )}
      </Shown>
    </>
  )
}

export function NoFindings({ answer: { history_disabled, truncated, victims_evaluated } }: { answer: Findings }) {
  if (history_disabled)
    return (
      <Empty title="Not watched">The broker keeps no history of CPU and memory, from which findings are made.</Empty>
    )
  if (victims_evaluated === 0)
    return <Empty title="Not watched">No container was sampled in the last five minutes.</Empty>
  return (
    <Empty title={truncated ? 'None found among those that were looked at' : 'No container waits for CPU or memory'}>
      {counted(victims_evaluated, 'container')} {victims_evaluated === 1 ? 'was' : 'were'} looked at.
    </Empty>
  )
}
