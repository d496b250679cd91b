import { randomInt } from 'node:crypto'
import { HttpError } from '../errors.ts'
import {
  MAX_BODY_DEPTH,
  MAX_BODY_MEMBERS,
  MAX_BODY_VALUES,
  MAX_KEY_SEQUENCES,
  MIN_PIECE_BYTES,
} from '../limits/limits.ts'
import { deserializeError } from './parse.ts'
import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, END, JsonScanner, OPEN_ARRAY, OPEN_OBJECT } from './scanner.ts'

export interface Prescan {
  /** Objects and arrays at most. */
  readonly containers: number
  /** The outermost array or the first in the outermost object, if it is long enough to be cut. */
  readonly list: List | null
}

/** An array: where it begins and ends, between its brackets, and places of commas between its elements. */
export interface List {
  readonly isOutermost: boolean
  readonly from: number
  to: number
  readonly cuts: number[]
}

/** Depth of what is in the outermost container, and in a list that is a member of it. */
const IN_BODY = 1
const IN_LIST = 2

/**
 * Counts what JSON text holds before it is parsed, in a few milliseconds for 2 MiB, and refuses it at the byte that is
 * too much: 400 for nesting beyond `MAX_BODY_DEPTH`; 413 for too many values, members or different sequences of keys,
 * for more elements of the outermost array than `maxElements`, or of an array that is a member of the outermost object
 * than `maxListed`. Text that is not JSON passes.
 */
export function prescanJson(
  bytes: Buffer,
  maxElements = Number.POSITIVE_INFINITY,
  maxListed = Number.POSITIVE_INFINITY,
): Prescan {
  const scanner = new JsonScanner(bytes)
  seen.fill(0)
  let uncutFrom = 0
  /** For each open container the hash of its keys so far. */
  const sequences: number[] = [0]
  let newSequences = 0
  let containers = 0
  let members = 0
  let values = 1
  /** Depth of the elements that are counted, of the outermost array or an array in the outermost object; else -1. */
  let countedDepth = -1
  let elements = 1
  let maxCounted = maxElements
  let list: List | null = null
  /** Whether commas are noted for `list`. */
  let isCutting = false
  for (let token = scanner.next(); token !== END; token = scanner.next()) {
    const { at, depth } = scanner
    switch (token) {
      case COMMA:
        if (++values > MAX_BODY_VALUES) throw tooMany(MAX_BODY_VALUES, 'values')
        if (depth !== countedDepth) break
        if (++elements > maxCounted) throw tooMany(maxCounted, 'elements')
        if (isCutting && at - uncutFrom >= MIN_PIECE_BYTES) {
          list!.cuts.push(at)
          uncutFrom = at
          if (depth === IN_BODY) newSequences = 0
        }
        break
      case COLON:
        if (++members > MAX_BODY_MEMBERS) throw tooMany(MAX_BODY_MEMBERS, 'keys and containers')
        sequences[depth] = mixed(sequences[depth]!, hashOf(bytes, scanner.textFrom, scanner.textTo))
        // In text that is not JSON many colons may follow one long text: it is hashed once.
        scanner.textFrom = scanner.textTo
        if (isNew(sequences[depth]!) && ++newSequences > MAX_KEY_SEQUENCES)
          throw tooMany(MAX_KEY_SEQUENCES, 'different sequences of keys')
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        containers++
        if (++members > MAX_BODY_MEMBERS) throw tooMany(MAX_BODY_MEMBERS, 'keys and containers')
        if (++values > MAX_BODY_VALUES) throw tooMany(MAX_BODY_VALUES, 'values')
        if (depth > MAX_BODY_DEPTH) throw deserializeError(`nested deeper than ${MAX_BODY_DEPTH} levels`)
        sequences[depth] = 0
        if (depth > IN_LIST || (depth === IN_LIST && countedDepth === IN_BODY)) break
        countedDepth = token === OPEN_ARRAY ? depth : -1
        if (depth === IN_LIST) elements = 1
        maxCounted = depth === IN_BODY ? maxElements : maxListed
        isCutting = token === OPEN_ARRAY && !list?.cuts.length
        if (isCutting) {
          list = { isOutermost: depth === IN_BODY, from: at + 1, to: -1, cuts: [] }
          uncutFrom = depth === IN_BODY ? 0 : at
        }
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (isCutting && depth === countedDepth - 1) {
          list!.to = at
          isCutting = false
        }
        break
    }
  }
  return { containers, list: list !== null && list.to >= 0 && list.cuts.length > 0 ? list : null }
}

/** Random for each process, so that nobody can choose keys whose hashes meet. */
const SEED = randomInt(2 ** 31)

/** FNV-1a (draft-eastlake-fnv), a word at a time. */
const mixed = (hash: number, word: number) => Math.imul(hash ^ word, 0x0100_0193)

function hashOf(bytes: Buffer, from: number, to: number): number {
  let hash = SEED
  for (let i = from; i < to; i++) hash = mixed(hash, bytes[i]!)
  return hash
}

/** One bit for each hash: of 100 000 hashes some 5 in 100 meet one that is set already. */
const SEEN_BITS = 21
const seen = new Uint32Array(2 ** (SEEN_BITS - 5))

function isNew(hash: number): boolean {
  // The upper bits of a product depend on all of its factors.
  const bit = Math.imul(hash ^ (hash >>> 15), 0x9e37_79b1) >>> (32 - SEEN_BITS)
  const before = seen[bit >>> 5]!
  const after = before | (1 << (bit & 31))
  seen[bit >>> 5] = after
  return before !== after >>> 0
}

/** The number of objects, at most, in a body that is too small to be prescanned. */
export function countObjects(bytes: Buffer): number {
  let objects = 0
  for (let i = bytes.indexOf(OPEN_OBJECT); i !== -1; i = bytes.indexOf(OPEN_OBJECT, i + 1)) objects++
  return objects
}

/** 413; `what` is the limit's name. */
export const tooMany = (max: number, what: string) => new HttpError(413, `body has more than ${max} ${what}`)
