/** Three columns: callers, the workload, callees. */
import type { Edge } from '../../api/edge.ts'
import { itemsOf, usePages } from '../../api/query.ts'
import { useWindow } from '../../frame/window-picker.tsx'
import { workloadText } from '../../parts/edge.tsx'
import { Stale } from '../../parts/states.tsx'
import { Badge, type WorkloadName } from '../../parts/text.tsx'
import { Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import { Side } from './side.tsx'

const PAGE_ROWS = 100

export function Focus({ workload }: { workload: WorkloadName }) {
  const { namespace, kind, name } = workload
  const text = workloadText(workload)
  const window = useWindow()
  const shared = { ...window, order: 'flows', limit: PAGE_ROWS } as const
  const callers = { query: { to_workload: [text], ...shared } }
  const callees = { query: { from_workload: [text], ...shared } }
  const callersReading = usePages('/flows/edges', callers)
  const calleesReading = usePages('/flows/edges', callees)
  const incoming = itemsOf(callersReading)
  const outgoing = itemsOf(calleesReading)
  const known = (calleesReading.data ?? callersReading.data)?.pages[0]
  return (
    <>
      <header class="focus-head">
        <h1>
          <span class="faint">
            <bdi>{namespace}</bdi>/
          </span>
          <bdi>{name}</bdi> <span class="kind">{kind}</span>
        </h1>
        <p class="lead">
          The edges of this workload: each stands for all flows with the same ends, port, protocol and verdict.
          {known !== undefined && (
            <>
              {' '}
              {known.observedSince === null ? (
                'No flow was ever stored.'
              ) : (
                <>
                  Edges are known since <Time at={known.observedSince} />, and counted until <Time at={known.asOf} />.
                </>
              )}
            </>
          )}
        </p>
        {window.since !== undefined && (
          <p class="faint">
            The window leaves out edges without a new flow in it, which may be in use: a living pod reports a flow once.
            All numbers are of the whole edge.
          </p>
        )}
      </header>
      <Stale reading={callersReading.error === null ? calleesReading : callersReading} />
      <div class="focus">
        <section class="focus-middle" aria-labelledby="focus-workload">
          <h2 id="focus-workload">
            <bdi>{name}</bdi> <span class="kind">{kind}</span>
          </h2>
          <p class="faint">
            in <bdi>{namespace}</bdi>
          </p>
          <p>
            {peersText(incoming, callersReading.hasNextPage, 'from')} →<br />→{' '}
            {peersText(outgoing, calleesReading.hasNextPage, 'to')}
          </p>
          <Dropped
            edges={[...incoming, ...outgoing]}
            hasMore={callersReading.hasNextPage || calleesReading.hasNextPage}
            workload={text}
          />
          <ul class="focus-links">
            <li>
              <a href={href(['workload', namespace, kind, name])}>Dossier</a>
            </li>
            <li>
              <a href={href(['policy', namespace, kind, name])}>Network policy</a>
            </li>
            <li>
              <a href={href(['flows'], { workload: text })}>Flows</a>
            </li>
            <li>
              <a href={href(['map'], { open: namespace, selected: `workload:${text}` })}>On the map</a>
            </li>
          </ul>
        </section>
        <Side
          direction="from"
          title="Callers"
          workload={workload}
          reading={callersReading}
          edges={incoming}
          params={callers}
        />
        <Side
          direction="to"
          title="Callees"
          workload={workload}
          reading={calleesReading}
          edges={outgoing}
          params={callees}
        />
      </div>
      <p class="faint">
        Flows to the address of a service count as flows to the workload behind it, where that is one. The list of flows
        shows them under the service, and has no flows that are older than what is kept, so it may be shorter than an
        edge. Where one side’s agent alone reported an edge, the other node may have no agent.
      </p>
    </>
  )
}

function peersText(edges: readonly Edge[], hasMore: boolean, direction: 'from' | 'to'): string {
  const peers = new Set(edges.map((edge) => JSON.stringify(edge[direction]))).size
  const word = direction === 'from' ? 'caller' : 'callee'
  return `${hasMore ? 'at least ' : ''}${peers} ${word}${peers === 1 ? '' : 's'}`
}

interface DroppedProps {
  readonly edges: readonly Edge[]
  readonly hasMore: boolean
  readonly workload: string
}

function Dropped({ edges, hasMore, workload }: DroppedProps) {
  const dropped = edges.filter(({ verdict }) => verdict === 'DROP').length
  if (dropped === 0) return null
  return (
    <p>
      <a href={href(['flows'], { workload, verdict: 'DROP' })}>
        <Badge tone="bad">
          {hasMore && 'at least '}
          {dropped} {dropped === 1 ? 'edge' : 'edges'} dropped
        </Badge>
      </a>
    </p>
  )
}
