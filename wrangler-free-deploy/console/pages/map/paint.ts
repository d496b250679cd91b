/**
 * Draws the map on a canvas. Without a graphics card, lines of one pixel are fast in paths of some dozens, but wider
 * lines only one by one: 2 000 lines of 1.5 pixels took 14 ms, and more than 100 ms in one path. So while the map
 * moves, lines are one pixel wide and have no arrowheads, except those of the node under the pointer.
 */
import type { Graph, MapNode } from './graph.ts'
import type { Palette } from './palette.ts'
import { radiusOf, widthOf } from './shapes.ts'
import type { View } from './view.ts'

export interface Scene {
  readonly graph: Graph
  /** Node indexes of both ends of each edge, and its style. */
  readonly lines: readonly Line[]
  readonly positions: Float32Array
  readonly view: View
  readonly palette: Palette
  /** The node under the pointer, or the selected one; all edges of other nodes fade. */
  readonly centre: number | null
  readonly selected: number | null
  readonly isMoving: boolean
}

export interface Line {
  readonly from: number
  readonly to: number
  readonly isDropped: boolean
  readonly width: number
}

export function linesOf({ nodes, edges }: Graph): Line[] {
  const indexes = new Map(nodes.map(({ id }, i) => [id, i]))
  return edges.map((edge) => {
    const { from, to, isDropped } = edge
    return { from: indexes.get(from)!, to: indexes.get(to)!, isDropped, width: widthOf(edge) }
  })
}

const FADED = 0.12
const USUAL = 0.4
/** The edges of both directions of a pair run side by side. */
const BESIDE_PX = 2.5
const ARROW_PX = 5
const DASH = [6, 4]
const FINE_BATCH = 32

export function paint(context: CanvasRenderingContext2D, scene: Scene, width: number, height: number, ratio: number) {
  const { view, palette } = scene
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.fillStyle = palette.ground
  context.fillRect(0, 0, width, height)
  context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y)
  const hairline = 1 / (ratio * view.scale)
  paintEdges(context, scene, hairline)
  const near = nearOf(scene)
  paintNodes(context, scene, near, hairline)
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  paintLabels(context, scene, near, width, height)
}

/** The centre and its neighbours; null without a centre. */
function nearOf({ centre, lines }: Scene): ReadonlySet<number> | null {
  if (centre === null) return null
  const near = new Set([centre])
  for (const { from, to } of lines) {
    if (from === centre) near.add(to)
    if (to === centre) near.add(from)
  }
  return near
}

/** `hairline` is the width of one screen pixel. */
function paintEdges(context: CanvasRenderingContext2D, scene: Scene, hairline: number): void {
  const { lines, palette, centre, isMoving } = scene
  const groups = new Map<string, Line[]>()
  for (const line of lines) {
    const isNear = centre !== null && (line.from === centre || line.to === centre)
    const key = `${isNear ? 1 : 0} ${line.isDropped ? 1 : 0} ${line.width}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [line])
    else group.push(line)
  }
  // Edges of the centre and dropped ones are drawn last, above the others.
  for (const key of [...groups.keys()].sort()) {
    const group = groups.get(key)!
    const { isDropped, width } = group[0]!
    const isNear = key.startsWith('1')
    const isFine = isMoving && !isNear
    const colour = isDropped ? palette.bad : isNear ? palette.accent : palette['line-strong']
    context.globalAlpha = isNear ? 1 : centre !== null ? FADED : isDropped ? 0.9 : USUAL
    context.strokeStyle = colour
    context.fillStyle = colour
    context.lineWidth = isFine ? hairline : width
    context.setLineDash(isDropped ? DASH : [])
    const arrows = group.flatMap((line) => arrowOf(line, scene) ?? [])
    strokeAll(context, arrows, isFine ? FINE_BATCH : 1)
    context.setLineDash([])
    if (!isFine) fillHeads(context, arrows)
    for (const line of group) if (line.from === line.to) strokeLoop(context, line, scene)
  }
  context.globalAlpha = 1
}

interface Arrow {
  readonly x1: number
  readonly y1: number
  /** The tip of the arrowhead. */
  readonly x2: number
  readonly y2: number
  /** A vector in the direction of the edge, as long as the arrowhead. */
  readonly dx: number
  readonly dy: number
}

function arrowOf({ from, to, isDropped, width }: Line, { positions, graph }: Scene): Arrow | null {
  const [x1, y1, x2, y2] = [positions[2 * from]!, positions[2 * from + 1]!, positions[2 * to]!, positions[2 * to + 1]!]
  const radius = radiusOf(graph.nodes[to]!)
  const length = Math.hypot(x2 - x1, y2 - y1)
  if (from === to || length < radius) return null
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length]
  const beside = isDropped ? 3 * BESIDE_PX : BESIDE_PX
  const [ox, oy] = [-uy * beside, ux * beside]
  const head = ARROW_PX + width
  const end = radius + 1
  return { x1: x1 + ox, y1: y1 + oy, x2: x2 - ux * end + ox, y2: y2 - uy * end + oy, dx: ux * head, dy: uy * head }
}

function strokeAll(context: CanvasRenderingContext2D, arrows: readonly Arrow[], batch: number): void {
  for (let first = 0; first < arrows.length; first += batch) {
    context.beginPath()
    for (const { x1, y1, x2, y2, dx, dy } of arrows.slice(first, first + batch)) {
      context.moveTo(x1, y1)
      context.lineTo(x2 - dx, y2 - dy)
    }
    context.stroke()
  }
}

function fillHeads(context: CanvasRenderingContext2D, arrows: readonly Arrow[]): void {
  for (let first = 0; first < arrows.length; first += FINE_BATCH) {
    context.beginPath()
    for (const { x2, y2, dx, dy } of arrows.slice(first, first + FINE_BATCH)) {
      context.moveTo(x2, y2)
      context.lineTo(x2 - dx - dy * 0.5, y2 - dy + dx * 0.5)
      context.lineTo(x2 - dx + dy * 0.5, y2 - dy - dx * 0.5)
    }
    context.fill()
  }
}

/** A loop: an edge from a node to itself. */
function strokeLoop(context: CanvasRenderingContext2D, { from }: Line, { positions, graph }: Scene): void {
  const radius = radiusOf(graph.nodes[from]!)
  context.beginPath()
  context.arc(
    positions[2 * from]! + radius * 0.9,
    positions[2 * from + 1]! - radius * 0.9,
    radius * 0.6,
    0,
    2 * Math.PI,
  )
  context.stroke()
}

function paintNodes(
  context: CanvasRenderingContext2D,
  scene: Scene,
  near: ReadonlySet<number> | null,
  hairline: number,
): void {
  const { graph, positions, palette, selected, isMoving } = scene
  for (const [i, node] of graph.nodes.entries()) {
    const [x, y, radius] = [positions[2 * i]!, positions[2 * i + 1]!, radiusOf(node)]
    const [line, fill] = coloursOf(node, palette)
    context.globalAlpha = near === null || near.has(i) ? 1 : 0.3
    context.beginPath()
    outline(context, node, x, y, radius)
    context.fillStyle = fill
    context.fill()
    context.strokeStyle = line
    context.lineWidth = i === selected ? 4 : isMoving ? hairline : 1.5
    context.setLineDash(node.kind === 'unresolved' ? [3, 3] : [])
    context.stroke()
  }
  context.setLineDash([])
  context.globalAlpha = 1
}

/** The shape shows the kind as well, not the colour alone. */
function outline(context: CanvasRenderingContext2D, { kind }: MapNode, x: number, y: number, radius: number): void {
  if (kind === 'namespace') context.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, radius / 3)
  else if (kind === 'external' || kind === 'network') {
    context.moveTo(x, y - radius)
    context.lineTo(x + radius, y)
    context.lineTo(x, y + radius)
    context.lineTo(x - radius, y)
    context.closePath()
  } else if (kind === 'node') context.rect(x - radius, y - radius * 0.7, 2 * radius, 1.4 * radius)
  else context.arc(x, y, radius, 0, 2 * Math.PI)
}

function coloursOf({ kind }: MapNode, palette: Palette): readonly [string, string] {
  if (kind === 'namespace') return [palette.accent, palette['accent-ground']]
  if (kind === 'external' || kind === 'network') return [palette.info, palette['info-ground']]
  if (kind === 'unresolved') return [palette.warn, palette['warn-ground']]
  return [kind === 'workload' ? palette.text : palette.faint, palette['ground-raised']]
}

const LABEL_PX = 12
const LABEL_CHARS = 28
/** More labels take too much of a frame and cannot be read. */
const MAX_LABELS = 120
const CHAR_PX = 6.6

/** Labels of the largest nodes first; a label that would overlap another is left out. */
function paintLabels(
  context: CanvasRenderingContext2D,
  { graph, positions, view, palette, centre }: Scene,
  near: ReadonlySet<number> | null,
  width: number,
  height: number,
): void {
  context.font = `${LABEL_PX}px ${palette.font}`
  context.textAlign = 'center'
  context.textBaseline = 'top'
  context.lineWidth = 3
  context.lineJoin = 'round'
  context.strokeStyle = palette.ground
  context.fillStyle = palette.text
  const taken: { x: number; y: number; half: number }[] = []
  const usual = graph.nodes.keys()
  const order = near === null ? usual : [...new Set([...(centre === null ? [] : [centre]), ...near])]
  for (const i of order) {
    const node = graph.nodes[i]!
    const x = positions[2 * i]! * view.scale + view.x
    const y = (positions[2 * i + 1]! + radiusOf(node)) * view.scale + view.y + 2
    if (x < 0 || y < -LABEL_PX || x > width || y > height) continue
    const text = node.label.length > LABEL_CHARS ? `${node.label.slice(0, LABEL_CHARS - 1)}…` : node.label
    const half = (text.length * CHAR_PX) / 2 + 2
    const isCovered = taken.some((one) => Math.abs(one.y - y) < LABEL_PX + 2 && Math.abs(one.x - x) < one.half + half)
    if (isCovered && i !== centre) continue
    taken.push({ x, y, half })
    context.strokeText(text, x, y)
    context.fillText(text, x, y)
    if (taken.length >= MAX_LABELS) return
  }
}
