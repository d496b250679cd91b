/** Sizes of nodes and edges, and initial positions. */
import type { MapEdge, MapNode } from './graph.ts'

interface Point {
  readonly x: number
  readonly y: number
}

const NAMESPACE_PX = 13
const OTHER_PX = 7
const PX_PER_DECADE = 1.5

const SMALL: readonly MapNode['kind'][] = ['workload', 'pod', 'service', 'network']

/** In units of the drawing. */
export function radiusOf({ kind, flows }: MapNode): number {
  const base = SMALL.includes(kind) ? OTHER_PX : NAMESPACE_PX
  return base + PX_PER_DECADE * Math.log10(Math.max(flows, 1))
}

const MIN_WIDTH_PX = 0.75
const WIDTH_PX_PER_DECADE = 0.75
const MAX_WIDTH_PX = 4.5

/** Rounded to half a pixel, so that edges of equal width are drawn together. */
export function widthOf({ flows }: Pick<MapEdge, 'flows'>): number {
  const width = MIN_WIDTH_PX + WIDTH_PX_PER_DECADE * Math.log10(Math.max(flows, 1))
  return Math.min(Math.round(width * 2) / 2, MAX_WIDTH_PX)
}

const SPREAD_PX = 420
const NEAR_PX = 60

/** The same name always starts at the same position; workloads start around the position of their namespace. */
export function startOf({ id }: Pick<MapNode, 'id'>, around?: Point): Point {
  const hash = hashOf(id)
  const angle = ((hash & 0xffff) / 0x10000) * 2 * Math.PI
  const distance = Math.sqrt((hash >>> 16) / 0x10000) * (around ? NEAR_PX : SPREAD_PX)
  return { x: (around?.x ?? 0) + distance * Math.cos(angle), y: (around?.y ?? 0) + distance * Math.sin(angle) }
}

/** FNV-1a with a final mixing step, since names often differ only at their end. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
