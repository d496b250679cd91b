/** Values that several commands show in the same words. */

/** A value that may be unknown, which is not no. */
export const yesNo = (value: boolean | null): string => (value === null ? 'unknown' : value ? 'yes' : 'no')

/** As long as commands take it for a digest. */
const SHOWN_DIGITS = 12

export const shortDigest = (digest: string): string =>
  digest.replace(/^(sha\d+:[0-9a-f]+)$/, (whole) => whole.slice(0, whole.indexOf(':') + 1 + SHOWN_DIGITS))

export interface ImageNames {
  readonly repository: string | null
  readonly tags: readonly string[]
  readonly digest: string
}

/** The repository with the only tag; of several tags nobody knows which one runs, so the digest says it. */
export function imageText({ repository, tags, digest }: ImageNames): string {
  if (repository === null) return shortDigest(digest)
  return tags.length === 1 ? `${repository}:${tags[0]}` : `${repository}@${shortDigest(digest)}`
}

const MAX_LISTED = 3

/** The first of a list, and how many more there are. */
export function firstOf(texts: readonly string[], total: number): string[] {
  const first = texts.slice(0, MAX_LISTED)
  const more = total - first.length
  return more > 0 ? [...first, `${more} more`] : first
}

/** A probability with as many digits as matter. */
export const probability = (value: number | null): number | null =>
  value === null ? null : Number(value.toPrecision(2))
