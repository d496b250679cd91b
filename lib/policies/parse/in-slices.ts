import type { Slice } from '../../event-loop/slices.ts'

/** Maps the members of a list in their order, in slices of the event loop. */
export async function mapInSlices<T, R>(
  list: readonly T[],
  slice: Slice,
  map: (one: T, index: number) => R | Promise<R>,
): Promise<R[]> {
  const mapped: R[] = []
  for (const [index, one] of list.entries()) {
    if (slice.isOver) await slice.next()
    mapped.push(await map(one, index))
  }
  return mapped
}
