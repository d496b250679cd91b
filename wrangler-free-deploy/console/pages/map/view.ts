/** Converts units of the drawing to pixels: `pixel = unit * scale + x`. */

export interface View {
  readonly x: number
  readonly y: number
  readonly scale: number
}

const MIN_SCALE = 0.05
const MAX_SCALE = 6
const MARGIN_PX = 40
/** A share of the smaller side, so that narrow screens lose less. */
const MARGIN_PART = 0.08
/** A small graph is not enlarged beyond this. */
const LARGEST_FIT = 1.4

/** Zooms by a factor; the given point stays in place. */
export function zoomed(view: View, factor: number, px: number, py: number): View {
  const scale = Math.min(Math.max(view.scale * factor, MIN_SCALE), MAX_SCALE)
  const by = scale / view.scale
  return { scale, x: px - (px - view.x) * by, y: py - (py - view.y) * by }
}

export interface Point {
  readonly x: number
  readonly y: number
}

const middleOf = ([one, other]: readonly [Point, Point]): Point => ({
  x: (one.x + other.x) / 2,
  y: (one.y + other.y) / 2,
})
const distanceOf = ([one, other]: readonly [Point, Point]) => Math.max(Math.hypot(one.x - other.x, one.y - other.y), 1)

/** Moves and zooms with two fingers: the content between them stays between them. */
export function pinched(view: View, before: readonly [Point, Point], after: readonly [Point, Point]): View {
  const [from, to] = [middleOf(before), middleOf(after)]
  const { scale, x, y } = zoomed(view, distanceOf(after) / distanceOf(before), from.x, from.y)
  return { scale, x: x + to.x - from.x, y: y + to.y - from.y }
}

/** A view that shows all nodes. */
export function fitted(positions: Float32Array, width: number, height: number): View {
  if (positions.length === 0) return { x: width / 2, y: height / 2, scale: 1 }
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity]
  for (let i = 0; i < positions.length; i += 2) {
    left = Math.min(left, positions[i]!)
    right = Math.max(right, positions[i]!)
    top = Math.min(top, positions[i + 1]!)
    bottom = Math.max(bottom, positions[i + 1]!)
  }
  const margin = Math.min(MARGIN_PX, MARGIN_PART * Math.min(width, height))
  const fit = Math.min(
    (width - 2 * margin) / Math.max(right - left, 1),
    (height - 2 * margin) / Math.max(bottom - top, 1),
  )
  const scale = Math.min(Math.max(fit, MIN_SCALE), LARGEST_FIT)
  return { scale, x: width / 2 - ((left + right) / 2) * scale, y: height / 2 - ((top + bottom) / 2) * scale }
}

/** The position in units at these pixels. */
export function unitsAt({ x, y, scale }: View, px: number, py: number): { readonly x: number; readonly y: number } {
  return { x: (px - x) / scale, y: (py - y) / scale }
}
