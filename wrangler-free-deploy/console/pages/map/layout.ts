/**
 * Positions of the nodes: derived from their names at first, moved by the worker, remembered while the page is open.
 */
import type { Graph, MapNode } from './graph.ts'
import type { FromLayout, StartLayout, ToLayout } from './layout-messages.ts'
import { radiusOf, startOf } from './shapes.ts'

const HEAT_OF_ALL = 1
const HEAT_OF_FEW = 0.35

/** The used part of the `Worker` interface. */
export type LayoutWorker = Pick<Worker, 'postMessage' | 'terminate' | 'onmessage'>

export class Layout {
  /** x and y of each node, in the order of the graph. */
  positions: Float32Array = new Float32Array()
  isSettled = false
  #nodes: readonly MapNode[] = []
  /** The index of each node in the graph. */
  #indexes: ReadonlyMap<string, number> = new Map()
  /** The ids of the nodes in the order in which the worker received them. */
  #started: readonly string[] = []
  #links: ReadonlySet<string> = new Set()
  #generation = 0
  #dragged: string | null = null
  readonly #known = new Map<string, { readonly x: number; readonly y: number }>()
  readonly #worker: LayoutWorker
  readonly #onMove: () => void

  constructor(worker: LayoutWorker, onMove: () => void) {
    this.#onMove = onMove
    this.#worker = worker
    worker.onmessage = ({ data }: MessageEvent<FromLayout>) => this.#take(data)
  }

  /**
   * Known nodes keep their positions, also the one that is dragged. The layout runs again only if nodes or edges
   * appeared or disappeared, and not for another order.
   */
  setGraph({ nodes, edges }: Graph, onlyFinal: boolean): void {
    const indexes = new Map(nodes.map(({ id }, i) => [id, i]))
    const links = new Set<string>()
    for (const { from, to } of edges) if (from !== to) links.add(JSON.stringify([from, to].sort()))
    const isSame = isSameSet(new Set(indexes.keys()), new Set(this.#started)) && isSameSet(links, this.#links)
    const fresh = nodes.filter(({ id }) => !this.#known.has(id)).length
    this.positions = new Float32Array(2 * nodes.length)
    for (const [i, node] of nodes.entries()) {
      const { x, y } = this.#known.get(node.id) ?? startOf(node, this.#known.get(`namespace:${node.namespace}`))
      this.positions.set([x, y], 2 * i)
    }
    this.#nodes = nodes
    this.#indexes = indexes
    if (!isSame) this.#start(links, fresh > nodes.length / 2 ? HEAT_OF_ALL : HEAT_OF_FEW, onlyFinal)
    this.#onMove()
  }

  #start(links: ReadonlySet<string>, heat: number, onlyFinal: boolean): void {
    this.#started = this.#nodes.map(({ id }) => id)
    this.#links = links
    this.isSettled = false
    const indexOf = (id: string) => this.#indexes.get(id)!
    const start: StartLayout = {
      ...{ type: 'start', generation: ++this.#generation, positions: this.positions.slice(), onlyFinal, heat },
      groups: groupsOf(this.#nodes),
      radii: Float32Array.from(this.#nodes, radiusOf),
      links: Uint32Array.from([...links].flatMap((link) => (JSON.parse(link) as string[]).map(indexOf))),
    }
    this.#tell(start)
    if (this.#dragged === null) return
    const dragged = this.#known.get(this.#dragged)
    if (this.#indexes.has(this.#dragged) && dragged !== undefined) this.drag(this.#dragged, dragged.x, dragged.y)
    else this.#dragged = null
  }

  drag(id: string, x: number, y: number): void {
    const [index, started] = [this.#indexes.get(id), this.#started.indexOf(id)]
    if (index === undefined || started < 0) return
    this.#dragged = id
    this.positions.set([x, y], 2 * index)
    this.#known.set(id, { x, y })
    this.#tell({ type: 'drag', index: started, x, y })
    this.#onMove()
  }

  release(): void {
    if (this.#dragged !== null) this.#tell({ type: 'release', index: this.#started.indexOf(this.#dragged) })
    this.#dragged = null
  }

  end(): void {
    this.#worker.terminate()
  }

  #tell(message: ToLayout): void {
    this.#worker.postMessage(message)
  }

  #take({ generation, positions, isSettled }: FromLayout): void {
    if (generation !== this.#generation) return
    for (const [i, id] of this.#started.entries()) {
      // The pointer is ahead of the worker.
      if (id === this.#dragged) continue
      const [x, y] = [positions[2 * i]!, positions[2 * i + 1]!]
      this.#known.set(id, { x, y })
      this.positions.set([x, y], 2 * this.#indexes.get(id)!)
    }
    this.isSettled = isSettled
    this.#onMove()
  }
}

const isSameSet = (one: ReadonlySet<string>, other: ReadonlySet<string>) =>
  one.size === other.size && [...one].every((value) => other.has(value))

function groupsOf(nodes: readonly MapNode[]): Int32Array {
  const numbers = new Map<string, number>()
  return Int32Array.from(nodes, ({ kind, namespace }) => {
    if (namespace === null || kind === 'namespace') return -1
    if (!numbers.has(namespace)) numbers.set(namespace, numbers.size)
    return numbers.get(namespace)!
  })
}
