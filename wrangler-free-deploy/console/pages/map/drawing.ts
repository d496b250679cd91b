/** The canvas of the map: draws after changes, and handles zoom, pan, drag and selection by pointer. */
import { quadtree } from 'd3-quadtree'
import { Fingers } from './fingers.ts'
import type { Graph, MapNode } from './graph.ts'
import { Layout } from './layout.ts'
import { startLayout } from './layout-script.ts'
import { type Line, linesOf, paint } from './paint.ts'
import { onThemeChange, type Palette, readPalette } from './palette.ts'
import { radiusOf } from './shapes.ts'
import { fitted, pinched, unitsAt, type View, zoomed } from './view.ts'

/** A pointer that moved less than this has clicked. */
const CLICK_PX = 4
const NEAR_PX = 5
const LARGEST_RADIUS = 30
const WHEEL_STEP = 0.0015

interface Pressed {
  readonly id: number
  /** The id of the node: a poll may return the nodes in another order. */
  readonly node: string | null
  readonly startX: number
  readonly startY: number
  x: number
  y: number
  hasMoved: boolean
}

export class Drawing {
  readonly #canvas: HTMLCanvasElement
  readonly #context: CanvasRenderingContext2D
  readonly #probe: HTMLElement
  readonly #layout = new Layout(startLayout(), () => this.#moved())
  readonly #onChoose: (node: MapNode) => void
  readonly #endings: (() => void)[]
  #graph: Graph = { nodes: [], edges: [], hiddenNodes: [], hiddenEdges: [], replaced: 0 }
  #lines: readonly Line[] = []
  #palette: Palette
  #view: View = { x: 0, y: 0, scale: 1 }
  #width = 0
  #height = 0
  #hovered: string | null = null
  #selected: string | null = null
  #pressed: Pressed | null = null
  readonly #fingers = new Fingers()
  /** Once the user zoomed or moved the map, it is not fitted automatically. */
  #isOwnView = false
  #frame = 0

  constructor(canvas: HTMLCanvasElement, probe: HTMLElement, onChoose: (node: MapNode) => void) {
    this.#canvas = canvas
    this.#context = canvas.getContext('2d', { alpha: false })!
    this.#probe = probe
    this.#palette = readPalette(probe)
    this.#onChoose = onChoose
    const resized = new ResizeObserver(() => this.#resize())
    resized.observe(canvas)
    this.#endings = [
      () => resized.disconnect(),
      onThemeChange(() => {
        this.#palette = readPalette(this.#probe)
        this.#draw()
      }),
      () => this.#layout.end(),
      () => cancelAnimationFrame(this.#frame),
    ]
    this.#listen()
  }

  setGraph(graph: Graph): void {
    this.#graph = graph
    this.#lines = linesOf(graph)
    const isGone = (id: string | null) => id !== null && !graph.nodes.some((node) => node.id === id)
    if (isGone(this.#hovered)) this.#hover(null)
    if (isGone(this.#pressed?.node ?? null)) this.#pressed = null
    this.#layout.setGraph(graph, window.matchMedia('(prefers-reduced-motion: reduce)').matches)
    this.#draw()
  }

  setSelected(id: string | null): void {
    this.#selected = id
    this.#draw()
  }

  zoomBy(factor: number): void {
    this.#see(zoomed(this.#view, factor, this.#width / 2, this.#height / 2))
  }

  /** Fits the whole map into the view. */
  fit(): void {
    this.#isOwnView = false
    this.#moved()
  }

  end(): void {
    for (const ending of this.#endings) ending()
  }

  #indexOf(id: string | null): number | null {
    const index = this.#graph.nodes.findIndex((node) => node.id === id)
    return index < 0 ? null : index
  }

  #see(view: View): void {
    this.#isOwnView = true
    this.#view = view
    this.#draw()
  }

  #moved(): void {
    if (!this.#isOwnView && this.#pressed === null)
      this.#view = fitted(this.#layout.positions, this.#width, this.#height)
    this.#draw()
  }

  #resize(): void {
    this.#width = this.#canvas.clientWidth
    this.#height = this.#canvas.clientHeight
    this.#moved()
  }

  #draw(): void {
    if (this.#frame !== 0) return
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0
      this.#paint()
    })
  }

  #paint(): void {
    const ratio = window.devicePixelRatio
    const [width, height] = [Math.round(this.#width * ratio), Math.round(this.#height * ratio)]
    if (width === 0 || height === 0) return
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height })
    // The layout of a new graph has its positions at once, but a frame may be drawn before.
    if (this.#layout.positions.length !== 2 * this.#graph.nodes.length) return
    const selected = this.#indexOf(this.#selected)
    paint(
      this.#context,
      {
        ...{ graph: this.#graph, lines: this.#lines, positions: this.#layout.positions, view: this.#view },
        ...{ palette: this.#palette, centre: this.#indexOf(this.#hovered) ?? selected, selected },
        isMoving: !this.#layout.isSettled || this.#pressed?.hasMoved === true,
      },
      this.#width,
      this.#height,
      ratio,
    )
    // For tests, and for debugging with the browser's tools.
    this.#canvas.dataset.settled = String(this.#layout.isSettled)
  }

  #nodeAt(px: number, py: number): string | null {
    const { positions } = this.#layout
    const { x, y } = unitsAt(this.#view, px, py)
    const tree = quadtree<number>(
      this.#graph.nodes.map((_, i) => i),
      (i) => positions[2 * i]!,
      (i) => positions[2 * i + 1]!,
    )
    const near = NEAR_PX / this.#view.scale
    const found = tree.find(x, y, LARGEST_RADIUS + near)
    if (found === undefined) return null
    const distance = Math.hypot(positions[2 * found]! - x, positions[2 * found + 1]! - y)
    const node = this.#graph.nodes[found]!
    return distance <= radiusOf(node) + near ? node.id : null
  }

  #listen(): void {
    const canvas = this.#canvas
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault()
      this.#see(zoomed(this.#view, Math.exp(-event.deltaY * WHEEL_STEP), event.offsetX, event.offsetY))
    })
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return
      canvas.setPointerCapture(event.pointerId)
      this.#fingers.down(event)
      if (this.#fingers.areTwo) this.#endDrag()
      if (this.#fingers.count > 1 || this.#pressed !== null) return
      const { pointerId: id, offsetX: x, offsetY: y } = event
      this.#pressed = { id, node: this.#nodeAt(x, y), startX: x, startY: y, x, y, hasMoved: false }
    })
    // One finger scrolls the page; two fingers zoom and move the map.
    for (const type of ['touchstart', 'touchmove'] as const)
      canvas.addEventListener(type, (event) => event.touches.length > 1 && event.cancelable && event.preventDefault(), {
        passive: false,
      })
    canvas.addEventListener('pointermove', (event) => this.#pointerMoved(event))
    canvas.addEventListener('pointerleave', () => this.#hover(null))
    canvas.addEventListener('pointerup', (event) => this.#released(event, true))
    canvas.addEventListener('pointercancel', (event) => this.#released(event, false))
  }

  #pointerMoved(event: PointerEvent): void {
    const { pointerId, offsetX, offsetY } = event
    const moved = this.#fingers.move(event)
    if (moved !== null) this.#see(pinched(this.#view, moved.before, moved.after))
    if (this.#fingers.count > 1) return
    const pressed = this.#pressed
    if (pressed === null) {
      this.#hover(this.#nodeAt(offsetX, offsetY))
      return
    }
    if (pointerId !== pressed.id) return
    pressed.hasMoved ||= Math.hypot(offsetX - pressed.startX, offsetY - pressed.startY) >= CLICK_PX
    if (!pressed.hasMoved) return
    if (pressed.node === null) {
      const { x, y, scale } = this.#view
      this.#see({ scale, x: x + offsetX - pressed.x, y: y + offsetY - pressed.y })
    } else {
      // The map must not be fitted while a node is dragged.
      this.#isOwnView = true
      const to = unitsAt(this.#view, offsetX, offsetY)
      this.#layout.drag(pressed.node, to.x, to.y)
    }
    pressed.x = offsetX
    pressed.y = offsetY
  }

  #endDrag(): void {
    this.#pressed = null
    this.#layout.release()
    this.#draw()
  }

  #released({ pointerId }: PointerEvent, isDone: boolean): void {
    this.#fingers.up(pointerId)
    const pressed = this.#pressed
    if (pressed === null || pressed.id !== pointerId) return
    this.#endDrag()
    const node = this.#graph.nodes.find(({ id }) => id === pressed.node)
    if (isDone && !pressed.hasMoved && node !== undefined) this.#onChoose(node)
  }

  #hover(id: string | null): void {
    if (id === this.#hovered) return
    this.#hovered = id
    this.#canvas.style.cursor = id === null ? 'grab' : 'pointer'
    this.#draw()
  }
}
