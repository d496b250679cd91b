/** The positions of the nodes: started from their names, kept while the page is open, moved by the worker. */
import type { Graph, MapNode } from './graph.ts'
import workerUrl from './layout.worker.ts?worker&url'
import type { FromLayout, StartLayout, ToLayout } from './layout-messages.ts'
import { radiusOf, startOf } from './shapes.ts'

/** The part of Trusted Types that is needed here; not all browsers have it. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL: (url: string) => URL }
}
const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
/** Lets one script of this build pass, and no other. */
const policy = trustedTypes?.createPolicy('map-layout', {
  createScriptURL: (url) => {
    if (url !== workerUrl) throw new TypeError('not the script of the layout')
    return url
  },
})

const HEAT_OF_ALL = 1
const HEAT_OF_FEW = 0.35

export class Layout {
  /** x and y of each node, in the order of the graph. */
  positions: Float32Array = new Float32Array()
  isSettled = false
  #nodes: readonly MapNode[] = []
  #links = ''
  #generation = 0
  #dragged: number | null = null
  readonly #known = new Map<string, { readonly x: number; readonly y: number }>()
  readonly #worker: Worker
  readonly #onMove: () => void

  constructor(onMove: () => void) {
    this.#onMove = onMove
    this.#worker = new Worker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module', name: 'map-layout' })
    this.#worker.onmessage = ({ data }: MessageEvent<FromLayout>) => this.#take(data)
  }

  /** Nodes that were there before stay where they are; the layout only runs again if something came or went. */
  setGraph({ nodes, edges }: Graph, onlyFinal: boolean): void {
    const indexes = new Map(nodes.map(({ id }, i) => [id, i]))
    const pairs = new Set<string>()
    for (const { from, to } of edges) if (from !== to) pairs.add([indexes.get(from)!, indexes.get(to)!].sort().join())
    const isSame = nodes.length === this.#nodes.length && nodes.every(({ id }, i) => this.#nodes[i]?.id === id)
    const links = [...pairs].join(';')
    if (isSame && links === this.#links) {
      this.#nodes = nodes
      return
    }
    const fresh = nodes.filter(({ id }) => !this.#known.has(id)).length
    this.positions = new Float32Array(2 * nodes.length)
    for (const [i, node] of nodes.entries()) {
      const { x, y } = this.#known.get(node.id) ?? startOf(node, this.#known.get(`namespace:${node.namespace}`))
      this.positions.set([x, y], 2 * i)
    }
    this.#nodes = nodes
    this.#links = links
    this.#dragged = null
    this.isSettled = false
    const start: StartLayout = {
      ...{ type: 'start', generation: ++this.#generation, positions: this.positions.slice(), onlyFinal },
      groups: groupsOf(nodes),
      radii: Float32Array.from(nodes, radiusOf),
      links: Uint32Array.from([...pairs].flatMap((pair) => pair.split(',').map(Number))),
      heat: fresh > nodes.length / 2 ? HEAT_OF_ALL : HEAT_OF_FEW,
    }
    this.#tell(start)
    this.#onMove()
  }

  drag(index: number, x: number, y: number): void {
    this.#dragged = index
    this.positions.set([x, y], 2 * index)
    this.#tell({ type: 'drag', index, x, y })
    this.#onMove()
  }

  release(): void {
    if (this.#dragged !== null) this.#tell({ type: 'release', index: this.#dragged })
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
    // The pointer is ahead of the worker.
    if (this.#dragged !== null) {
      const at = 2 * this.#dragged
      positions.set(this.positions.subarray(at, at + 2), at)
    }
    this.positions = positions
    this.isSettled = isSettled
    for (const [i, { id }] of this.#nodes.entries())
      this.#known.set(id, { x: positions[2 * i]!, y: positions[2 * i + 1]! })
    this.#onMove()
  }
}

function groupsOf(nodes: readonly MapNode[]): Int32Array {
  const numbers = new Map<string, number>()
  return Int32Array.from(nodes, ({ kind, namespace }) => {
    if (namespace === null || kind === 'namespace') return -1
    if (!numbers.has(namespace)) numbers.set(namespace, numbers.size)
    return numbers.get(namespace)!
  })
}
