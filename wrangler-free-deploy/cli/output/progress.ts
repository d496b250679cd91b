/** Rows and rate of a long export, for people who wait for it. */
const EVERY_MS = 1_000
const MS_PER_SECOND = 1_000

/** Tells how many rows there are by now; shown once in `everyMs`. */
export function progressOf(show: ((text: string) => void) | null, everyMs = EVERY_MS): (rows: number) => void {
  const startedAt = performance.now()
  let shownAt = startedAt
  return (rows) => {
    const now = performance.now()
    if (show === null || now - shownAt < everyMs) return
    shownAt = now
    show(`${rows} rows, ${Math.round((rows * MS_PER_SECOND) / (now - startedAt))} a second`)
  }
}
