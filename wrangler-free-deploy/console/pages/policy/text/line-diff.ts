/** The difference of two texts, line by line (Myers, "An O(ND) Difference Algorithm", 1986). */

/** If more lines changed, they are not matched: the work grows with the square of their number. */
const MAX_CHANGES = 1_000

export interface DiffRow {
  readonly kind: 'same' | 'gone' | 'new'
  /** Counted from 1; null if the text has no such line. */
  readonly oldLine: number | null
  readonly newLine: number | null
  readonly text: string
}

export interface LineDiff {
  readonly rows: readonly DiffRow[]
  readonly gone: number
  readonly added: number
  /** False if there were too many changes: then all lines between the first and the last change count as changed. */
  readonly isExact: boolean
}

export const linesOf = (text: string): string[] => text.split(/\r\n|[\n\r]/)

export function lineDiff(before: string, after: string): LineDiff {
  const old = linesOf(before)
  const now = linesOf(after)
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head++
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  const oldMiddle = old.slice(head, old.length - tail)
  const nowMiddle = now.slice(head, now.length - tail)
  const matched = matchedPairs(oldMiddle, nowMiddle)
  const pairs = [
    ...Array.from({ length: head }, (_, i) => [i, i] as const),
    ...(matched ?? []).map(([x, y]) => [head + x, head + y] as const),
    ...Array.from({ length: tail }, (_, i) => [old.length - tail + i, now.length - tail + i] as const),
  ]
  return { ...rowsOf(old, now, pairs), isExact: matched !== null }
}

function rowsOf(old: readonly string[], now: readonly string[], pairs: readonly (readonly [number, number])[]) {
  const rows: DiffRow[] = []
  let x = 0
  let y = 0
  for (const [toX, toY] of [...pairs, [old.length, now.length] as const]) {
    for (; x < toX; x++) rows.push({ kind: 'gone', oldLine: x + 1, newLine: null, text: old[x]! })
    for (; y < toY; y++) rows.push({ kind: 'new', oldLine: null, newLine: y + 1, text: now[y]! })
    if (x === old.length && y === now.length) break
    rows.push({ kind: 'same', oldLine: x + 1, newLine: y + 1, text: now[y]! })
    x++
    y++
  }
  const countOf = (kind: DiffRow['kind']) => rows.filter((row) => row.kind === kind).length
  return { rows, gone: countOf('gone'), added: countOf('new') }
}

/** The pairs of equal lines of a shortest edit script; null if it is longer than the limit. */
function matchedPairs(old: readonly string[], now: readonly string[]): [number, number][] | null {
  const most = Math.min(old.length + now.length, MAX_CHANGES)
  /** The furthest position in `old` on each diagonal, for each number of changes. */
  const steps: Int32Array[] = []
  const reach = new Int32Array(2 * most + 3)
  const middle = most + 1
  for (let changes = 0; changes <= most; changes++) {
    steps.push(reach.slice())
    for (let k = -changes; k <= changes; k += 2) {
      const isDown = k === -changes || (k !== changes && reach[middle + k - 1]! < reach[middle + k + 1]!)
      let x = isDown ? reach[middle + k + 1]! : reach[middle + k - 1]! + 1
      while (x < old.length && x - k < now.length && old[x] === now[x - k]) x++
      reach[middle + k] = x
      if (x >= old.length && x - k >= now.length) return walkBack(steps, old.length, now.length, middle)
    }
  }
  return null
}

function walkBack(steps: readonly Int32Array[], oldCount: number, nowCount: number, middle: number) {
  const pairs: [number, number][] = []
  let x = oldCount
  let y = nowCount
  for (let changes = steps.length - 1; changes >= 0; changes--) {
    const reach = steps[changes]!
    const k = x - y
    const isDown = k === -changes || (k !== changes && reach[middle + k - 1]! < reach[middle + k + 1]!)
    const fromK = isDown ? k + 1 : k - 1
    const fromX = changes === 0 ? 0 : reach[middle + fromK]!
    const fromY = changes === 0 ? 0 : fromX - fromK
    const startX = changes === 0 ? 0 : isDown ? fromX : fromX + 1
    while (x > startX && y > 0 && x - y === k && x - 1 >= startX) {
      x--
      y--
      pairs.push([x, y])
    }
    x = fromX
    y = fromY
  }
  return pairs.reverse()
}

/** Rows around changes. Each gap has the number of equal rows that it leaves out. */
export function hunksOf(rows: readonly DiffRow[], around: number): readonly (DiffRow | { readonly skipped: number })[] {
  const isNear = new Uint8Array(rows.length)
  rows.forEach(({ kind }, i) => {
    if (kind !== 'same') isNear.fill(1, Math.max(0, i - around), Math.min(rows.length, i + around + 1))
  })
  const shown: (DiffRow | { skipped: number })[] = []
  let skipped = 0
  rows.forEach((row, i) => {
    if (isNear[i] === 0) skipped++
    else {
      if (skipped > 0) shown.push({ skipped })
      skipped = 0
      shown.push(row)
    }
  })
  if (skipped > 0) shown.push({ skipped })
  return shown
}
