import { HttpError } from './errors.ts'
import { deserializeError } from './json-text.ts'

/**
 * A body below this is parsed unweighed: what it may cost is little, and reading each of its bytes costs a tenth of what an ordinary batch
 * does.
 */
export const MIN_WEIGHED_BYTES = 64 * 1024

/** What a body below `MIN_WEIGHED_BYTES` cannot exceed. Objects of a cluster nest to 30. */
export const MAX_BODY_DEPTH = MIN_WEIGHED_BYTES / 2

/**
 * Values and containers of a body: those of 7 000 flows, which is a body full of them. As many objects of one key each, no two alike, are
 * parsed in 40 ms, four times what the same bytes of flows take.
 */
export const MAX_BODY_VALUES = 100_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * How many values and containers there are at most in JSON text, found in a few milliseconds for 2 MiB and without parsing it. 400 for what
 * is nested too deep, 413 for more values, or more elements of the outermost array than `maxElements`: told at the byte that is too much.
 * Text that is not JSON is weighed up to where it ceases to be, at least.
 */
export function weigh(bytes: Uint8Array, maxElements = Number.POSITIVE_INFINITY): number {
  let depth = 0
  let values = 1
  let elements = 1
  let isList = false
  for (let i = 0; i < bytes.length; i++) {
    switch (bytes[i]) {
      case QUOTE:
        for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++
        break
      case COMMA:
        if (++values > MAX_BODY_VALUES) throw tooMany(MAX_BODY_VALUES, 'values')
        if (depth === 1 && isList && ++elements > maxElements) throw tooMany(maxElements, 'elements')
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (depth === 0) isList = bytes[i] === OPEN_ARRAY
        if (++values > MAX_BODY_VALUES) throw tooMany(MAX_BODY_VALUES, 'values')
        if (++depth > MAX_BODY_DEPTH) throw deserializeError(`nested deeper than ${MAX_BODY_DEPTH} levels`)
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--
        break
    }
  }
  return values
}

export const tooMany = (max: number, what: string) => new HttpError(413, `body has more than ${max} ${what}`)
