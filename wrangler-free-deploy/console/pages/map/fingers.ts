/** The pointers that are down. Two of them together zoom and move the map. */
import type { Point } from './view.ts'

type Pointer = Pick<PointerEvent, 'pointerId' | 'offsetX' | 'offsetY'>
type Pair = readonly [Point, Point]

export class Fingers {
  readonly #down = new Map<number, Point>()

  get count(): number {
    return this.#down.size
  }

  get areTwo(): boolean {
    return this.#down.size === 2
  }

  down({ pointerId, offsetX: x, offsetY: y }: Pointer): void {
    this.#down.set(pointerId, { x, y })
  }

  /** Positions of two fingers before and after, if exactly two are down and one of them moved. */
  move({ pointerId, offsetX: x, offsetY: y }: Pointer): { readonly before: Pair; readonly after: Pair } | null {
    if (!this.#down.has(pointerId)) return null
    const before = this.#points()
    this.#down.set(pointerId, { x, y })
    return this.areTwo ? { before, after: this.#points() } : null
  }

  up(pointerId: number): void {
    this.#down.delete(pointerId)
  }

  #points(): Pair {
    return [...this.#down.values()] as unknown as Pair
  }
}
