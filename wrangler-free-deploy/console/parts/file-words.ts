/** Words for the origins of files that ran. */

const ORIGINS: Readonly<Record<string, string>> = {
  image: 'of the image',
  otherFs: 'mounted',
  deleted: 'deleted while it ran',
  writableLayer: 'written after the start',
  memfd: 'only in memory',
  unknown: 'not known',
}

export const originText = (origin: string): string => ORIGINS[origin] ?? origin

export const isUnshipped = (origin: string): boolean => ['deleted', 'writableLayer', 'memfd'].includes(origin)
