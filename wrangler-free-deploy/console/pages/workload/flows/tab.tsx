/** Callers and callees of the workload, new edges, and unanswered connections. */
import { useMemo } from 'preact/hooks'
import { type Answer, addressOf, type Params } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { useWindow, WindowPicker } from '../../../frame/window-picker.tsx'
import { counted } from '../../../parts/plural.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { momentMs, Time } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import type { TabProps } from '../index.tsx'
import { type Named, wholeName } from '../name.ts'
import { type Direction, newEdges } from './edges.ts'
import { EdgeTable } from './table.tsx'

const PATH = '/flows/edges'
/** Number of edges read to find new ones: about 40 kB of JSON, 3 kB compressed. */
const READ_EDGES = 100
/** The tab shows the first callers and callees; the focus page shows all. */
const SHOWN_EDGES = 20
const SHOWN_DROPS = 20
const NEW_MS = 86_400_000

type Page = Answer<typeof PATH>
type Query = NonNullable<Params<typeof PATH>['query']>

export default function Flows({ workload }: TabProps) {
  const whole = wholeName(workload)
  const window = useWindow()
  const ask = (query: Query) => useEdges({ ...window, ...query })
  const callers = ask({ to_workload: [whole], limit: READ_EDGES })
  const callees = ask({ from_workload: [whole], limit: READ_EDGES })
  const drops = ask({ workload: [whole], verdict: ['DROP'], limit: SHOWN_DROPS })
  return (
    <>
      <div class="flow-window">
        <WindowPicker />
        <p class="faint">
          Edges with a new flow in the time window. A living pod never reports a flow twice: a connection without a new
          flow may be in use. Flows to the address of a service count as flows to the workload behind it, where that is
          one; the list of flows shows them under the service.
        </p>
      </div>
      <News callers={callers.reading.data} callees={callees.reading.data} workload={workload} />
      <section class="section">
        <h2>Not answered</h2>
        <p class="faint">
          Connections that were opened and not answered. A network policy is one cause; a port on which nobody listens
          behind a firewall, or a pod that is gone, are others.
        </p>
        <Shown reading={drops.reading}>
          {(page) => (
            <EdgeTable
              name="Connections that were not answered"
              workload={workload}
              edges={page.items}
              commands={{ ctb: drops.ctb, url: drops.url }}
              empty={<Empty title="No unanswered connection is recorded">{observedText(page)}</Empty>}
            />
          )}
        </Shown>
      </section>
      <Peers direction="callers" asked={callers} workload={workload} />
      <Peers direction="callees" asked={callees} workload={workload} />
    </>
  )
}

type Asked = ReturnType<typeof useEdges>

function useEdges(query: Query) {
  const reading = useRead(PATH, { query })
  const flags = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).flatMap((one) => [`--${name.replaceAll('_', '-')}`, String(one)]),
  )
  return { reading, url: addressOf(PATH, { query }), ctb: ['edges', ...flags] }
}

function observedText({ observedSince, unstamped }: Page) {
  return (
    <>
      {observedSince === null ? (
        'No flow was ever stored.'
      ) : (
        <>
          Flows are counted since <Time at={observedSince} />.
        </>
      )}
      {unstamped > 0 &&
        ` Left out: ${counted(unstamped, 'flow')} of which it is not known whether they are of this workload.`}
    </>
  )
}

function News({
  callers,
  callees,
  workload,
}: {
  callers?: Page | undefined
  callees?: Page | undefined
  workload: Named
}) {
  const { since } = useWindow()
  const news = useMemo(() => {
    if (callers === undefined || callees === undefined) return null
    const now = Date.now()
    // An edge without a new flow in the window is not in the answer, so new edges are known only within the window.
    const fromMs = since === undefined ? now - NEW_MS : momentMs(since, now)
    const parts = [newEdges(callers, fromMs), newEdges(callees, fromMs)]
    return { edges: parts.flatMap(({ edges }) => edges), isWhole: parts.every(({ isWhole }) => isWhole) }
  }, [callers, callees, since])
  if (news === null) return null
  return (
    <section class="section">
      <h2>{since === undefined ? 'New in the last 24 hours' : 'New in the time window'}</h2>
      {!news.isWhole && (
        <p class="faint">Only the edges with the newest flows were looked at; others may be new, too.</p>
      )}
      <EdgeTable
        name="New edges"
        workload={workload}
        edges={news.edges}
        empty={
          <Empty title={news.isWhole ? 'No edge was first seen then' : 'None of the edges that were read is new'} />
        }
      />
    </section>
  )
}

const WORDS = {
  callers: {
    title: 'Callers',
    name: 'Callers, by the newest flow',
    empty: 'Nobody was seen to connect to it',
    side: 'to_workload',
  },
  callees: {
    title: 'Callees',
    name: 'Callees, by the newest flow',
    empty: 'It was not seen to connect to anything',
    side: 'from_workload',
  },
} as const

function Peers({ direction, asked, workload }: { direction: Direction; asked: Asked; workload: Named }) {
  const { title, name, empty, side } = WORDS[direction]
  const { namespace, kind } = workload
  return (
    <section class="section">
      <h2>{title}</h2>
      <Shown reading={asked.reading}>
        {(page) => (
          <>
            {(page.nextAfter !== null || page.items.length > SHOWN_EDGES) && (
              <p class="faint">
                The {SHOWN_EDGES} with the newest flows; there are more.{' '}
                <a href={href(['focus', namespace, kind, workload.name])}>Callers and callees</a> has all, and{' '}
                <a href={href(['flows'], { [side]: wholeName(workload) })}>Flows</a> each connection.
              </p>
            )}
            {page.unstamped > 0 && page.items.length > 0 && <p class="faint">{observedText(page)}</p>}
            <EdgeTable
              name={name}
              workload={workload}
              direction={direction}
              edges={page.items.slice(0, SHOWN_EDGES)}
              commands={{ ctb: asked.ctb, url: asked.url }}
              empty={<Empty title={empty}>{observedText(page)}</Empty>}
            />
          </>
        )}
      </Shown>
    </section>
  )
}
