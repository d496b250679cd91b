/** The pointers that are down, of which two move the map together. */
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

  /** Where two fingers were and are, if one of just two moved. */
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
