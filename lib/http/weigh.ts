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
 * Keys and containers of a body: a body full of flows has 98 000. They are what parsing costs: as many of the dearest kind, in objects no
 * two of which have their keys in one order, take 45 ms, five times what the same bytes of flows do.
 */
export const MAX_BODY_MEMBERS = 130_000

/** Values and containers: more than the names of syscalls that a body has room for. As many numbers or short texts are parsed in 40 ms. */
export const MAX_BODY_VALUES = 400_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * How many objects and arrays there are at most in JSON text, found in a few milliseconds for 2 MiB and without parsing it. 400 for what
 * is nested too deep, 413 for more values, more keys and containers, or more elements of the outermost array than `maxElements`: told at
 * the byte that is too much. Text that is not JSON is weighed up to where it ceases to be, at least.
 */
export function weigh(bytes: Uint8Array, maxElements = Number.POSITIVE_INFINITY): number {
  let depth = 0
  let values = 1
  let members = 0
  let containers = 0
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
      case COLON:
        if (++members > MAX_BODY_MEMBERS) throw tooMany(MAX_BODY_MEMBERS, 'keys and containers')
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (depth === 0) isList = bytes[i] === OPEN_ARRAY
        containers++
        if (++members > MAX_BODY_MEMBERS) throw tooMany(MAX_BODY_MEMBERS, 'keys and containers')
        if (++values > MAX_BODY_VALUES) throw tooMany(MAX_BODY_VALUES, 'values')
        if (++depth > MAX_BODY_DEPTH) throw deserializeError(`nested deeper than ${MAX_BODY_DEPTH} levels`)
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--
        break
    }
  }
  return containers
}

/** How many objects there are at most in a body that is not weighed. */
export function countObjects(bytes: Buffer): number {
  let objects = 0
  for (let i = bytes.indexOf(OPEN_OBJECT); i !== -1; i = bytes.indexOf(OPEN_OBJECT, i + 1)) objects++
  return objects
}

export const tooMany = (max: number, what: string) => new HttpError(413, `body has more than ${max} ${what}`)
