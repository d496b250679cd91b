import { Slice } from './slices.ts'

/** Items sorted at once: a few milliseconds. */
const RUN_LENGTH = 4_096

/** Merge sort that yields to the event loop between slices. `isBefore` must be a strict order. */
export async function sortInSlices<T>(
  items: readonly T[],
  isBefore: (a: T, b: T) => boolean,
  slice = new Slice(),
): Promise<T[]> {
  const order = (a: T, b: T) => (isBefore(a, b) ? -1 : isBefore(b, a) ? 1 : 0)
  let runs: T[][] = []
  for (let at = 0; at < items.length; at += RUN_LENGTH) {
    runs.push(items.slice(at, at + RUN_LENGTH).sort(order))
    if (slice.isOver) await slice.next()
  }
  while (runs.length > 1) {
    const longer: T[][] = []
    for (let i = 0; i < runs.length; i += 2) longer.push(await merged(runs[i]!, runs[i + 1] ?? [], isBefore, slice))
    runs = longer
  }
  return runs[0] ?? []
}

async function merged<T>(
  a: readonly T[],
  b: readonly T[],
  isBefore: (a: T, b: T) => boolean,
  slice: Slice,
): Promise<T[]> {
  const all: T[] = []
  let [i, k] = [0, 0]
  while (i < a.length || k < b.length) {
    for (let n = 0; n < RUN_LENGTH && (i < a.length || k < b.length); n++)
      all.push(k === b.length || (i < a.length && !isBefore(b[k]!, a[i]!)) ? a[i++]! : b[k++]!)
    if (slice.isOver) await slice.next()
  }
  return all
}
