/** A column of edges: the peers on one side of the workload. */

import { type Answer, addressOf, type Params } from '../../api/client.ts'
import type { Edge } from '../../api/edge.ts'
import type { PagedReading } from '../../api/query.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { csvText, download } from '../../parts/csv.ts'
import { flowsHref, SideName, seenByText, sideText, Verdict, workloadText } from '../../parts/edge.tsx'
import { Empty, Failure, Loading } from '../../parts/states.tsx'
import { Count, type WorkloadName } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'

export interface SideProps {
  /** The end of the edges at which the peers are. */
  readonly direction: 'from' | 'to'
  readonly title: string
  readonly workload: WorkloadName
  readonly reading: PagedReading<Answer<'/flows/edges'>>
  readonly edges: readonly Edge[]
  readonly params: Params<'/flows/edges'> & { readonly query: { readonly since?: string; readonly until?: string } }
}

export function Side(props: SideProps) {
  const { direction, title, workload, reading, edges, params } = props
  const own = direction === 'from' ? '--to-workload' : '--from-workload'
  const { since, until } = params.query
  const window = [...(since ? ['--since', since] : []), ...(until ? ['--until', until] : [])]
  const unstamped = reading.data?.pages.at(-1)?.unstamped ?? 0
  return (
    <section class={`focus-side ${direction}`} aria-labelledby={`focus-${direction}`}>
      <div class="focus-side-head">
        <h2 id={`focus-${direction}`}>{title}</h2>
        <span class="grow" />
        {edges.length > 0 && (
          <button
            type="button"
            class="quiet"
            onClick={() => download(`${title.toLowerCase()}.csv`, 'text/csv', csv(props))}
          >
            CSV
          </button>
        )}
        <CopyAs
          ctb={['edges', own, workloadText(workload), ...window, '--order', 'flows']}
          url={addressOf('/flows/edges', params)}
        />
      </div>
      {reading.data === undefined ? (
        reading.error === null ? (
          <Loading />
        ) : (
          <Failure error={reading.error} retry={reading.refetch} />
        )
      ) : edges.length === 0 ? (
        <Nothing {...props} />
      ) : (
        <ol class="edges">
          {edges.map((edge) => (
            <EdgeRow key={keyOf(edge)} edge={edge} direction={direction} />
          ))}
        </ol>
      )}
      {reading.hasNextPage && (
        <button type="button" disabled={reading.isFetchingNextPage} onClick={() => reading.fetchNextPage()}>
          {reading.isFetchingNextPage ? 'Reading…' : 'Read more'}
        </button>
      )}
      {unstamped > 0 && (
        <p class="faint">
          Left out: {unstamped} flows of which the broker cannot say whether they belong here, since the workload of
          their pod was not recorded.
        </p>
      )}
    </section>
  )
}

const keyOf = ({ from, to, port, protocol, verdict }: Edge) => JSON.stringify([from, to, port, protocol, verdict])

function EdgeRow({ edge, direction }: { edge: Edge; direction: 'from' | 'to' }) {
  const { port, protocol, verdict, pods, flows, seenBy, firstSeenAt, lastNewAt } = edge
  return (
    <li class={verdict === 'DROP' ? 'edge dropped' : 'edge'}>
      <div class="edge-name">
        <SideName side={edge[direction]} workloadTo={focusHref} />
        <Verdict verdict={verdict} />
      </div>
      <div>
        <span class="number">
          <bdi>{port === null ? 'no port' : port}</bdi>/<bdi>{protocol ?? 'unknown protocol'}</bdi>
        </span>{' '}
        ·{' '}
        <a href={flowsHref(edge)}>
          <Count value={flows} /> {flows === 1 ? 'flow' : 'flows'}
        </a>{' '}
        of <Count value={pods} /> {pods === 1 ? 'pod' : 'pods'}
      </div>
      <div class="faint edge-times">
        First seen <Time at={firstSeenAt} />, newest new flow <Ago at={lastNewAt} />
        {seenBy.length === 1 && <>; {seenByText(seenBy)}</>}
      </div>
    </li>
  )
}

const focusHref = ({ namespace, kind, name }: WorkloadName) => href(['focus', namespace, kind, name])

function Nothing({ direction, reading, params }: SideProps) {
  const first = reading.data?.pages[0]
  const { since, until } = params.query
  if (first?.observedSince === null)
    return <Empty title="No flow was ever stored">Agents post what they see, and none has posted a flow yet.</Empty>
  return (
    <Empty title={direction === 'from' ? 'No caller was seen' : 'No callee was seen'}>
      {since !== undefined || until !== undefined
        ? 'No edge had a new flow in this window. Older connections may still be in use; all that is kept shows them.'
        : `Since ${first?.observedSince?.slice(0, 10)} no agent reported one. Is the name right, and its node watched?`}
    </Empty>
  )
}

function csv({ edges, direction }: SideProps): string {
  const head = ['peer', 'port', 'protocol', 'verdict', 'flows', 'pods', 'seen by', 'first seen', 'newest new flow']
  const rows = edges.map((edge) => {
    const { port, protocol, verdict, flows, pods, seenBy, firstSeenAt, lastNewAt } = edge
    const numbers = [String(flows), String(pods)]
    return [
      ...[sideText(edge[direction]), port ?? '', protocol ?? '', verdict ?? '', ...numbers],
      ...[seenBy.join(' '), firstSeenAt ?? '', lastNewAt ?? ''],
    ]
  })
  return csvText([head, ...rows])
}
