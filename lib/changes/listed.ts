/** A list of an answer that shows its first items and counts all. */
export interface Listed<T> {
  readonly items: readonly T[]
  readonly total: number
  readonly truncated: boolean
}

/** The first `most` items of a list that is whole. */
export const listed = <T>(all: readonly T[], most: number): Listed<T> => ({
  items: all.slice(0, most),
  total: all.length,
  truncated: all.length > most,
})

/** By UTF-16 code units, like the names of the snapshot of a profile. */
export const compareTexts = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)
