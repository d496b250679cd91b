import { randomInt } from 'node:crypto'
import { HttpError } from '../http/errors.ts'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './bytes.ts'
import { deserializeError } from './parse.ts'

/**
 * A body below this is parsed unweighed: what it may cost is little, and reading each of its bytes costs a tenth of what an ordinary batch
 * does.
 */
export const MIN_PRESCAN_BYTES = 64 * 1024

/** What a body below `MIN_PRESCAN_BYTES` cannot exceed. Objects of a cluster nest to 30. */
export const MAX_BODY_DEPTH = MIN_PRESCAN_BYTES / 2

/** Keys and containers of a body: a body full of flows has 98 000, and parsing as many takes 9 ms. */
export const MAX_BODY_MEMBERS = 130_000

/** Values and containers: more than the names of syscalls that a body has room for. As many numbers are parsed in 12 ms. */
export const MAX_BODY_VALUES = 400_000

/**
 * What is dear to parse is what was not there before: a key that no object had after the same keys (1 to 2 us each), and a text so short that
 * V8 keeps it but once (0.2 to 0.4 us). Bounded for what is parsed at once: a body, or a piece of a list. What is large in clusters is so by
 * repetition, or by long texts.
 */
export const MAX_KEY_SEQUENCES = 20_000
export const MAX_SHORT_TEXTS = 100_000
const MAX_SHORT_CHARS = 10

/** Texts end within so many bytes of an escape or their begin, mostly; what ends the others is sought by the machine's own means, at a tenth of the time. */
const MAX_WALKED_BYTES = 32

/** Escapes of texts, bounded in the same way: one is parsed in 5 ns, five times as long as a character. A body of 2 MiB has no room for more. */
export const MAX_ESCAPES = 1_048_576

/**
 * Numbers of more digits than a double has, in the same way: of one that lies between two doubles V8 takes 0.3 to 0.6 us to tell the next, and others cost
 * a tenth. The fullest post of samples has as many fractions.
 */
export const MAX_LONG_NUMBERS = 100_000
const MAX_SHORT_DIGITS = 16

/** Between two cuts of a list are at least so many: parsed in a millisecond or two, unless one element is larger. */
const MIN_PIECE_BYTES = 64 * 1024

export interface Prescan {
  /** Objects and arrays at most. */
  readonly containers: number
  /** Places of commas between elements of the outermost array, for `parseList`. */
  readonly cuts: readonly number[]
  /** Of an object, the first array in it that has places to cut. */
  readonly listed: Listed | null
}

/** An array that is a member of the outermost object: where it begins and ends, between its brackets, and commas between its elements. */
export interface Listed {
  readonly from: number
  to: number
  readonly cuts: number[]
}

/**
 * What there is in JSON text, found in a few milliseconds for 2 MiB and without parsing it. 400 for what is nested too deep, 413 for what
 * there is too much of, or for more elements of the outermost array than `maxElements`, or of an array that is a member of the outermost object than
 * `maxListed`: told at the byte that is too much. Text that is
 * not JSON is weighed up to where it ceases to be, at least.
 */
export function prescanJson(
  bytes: Buffer,
  maxElements = Number.POSITIVE_INFINITY,
  maxListed = Number.POSITIVE_INFINITY,
): Prescan {
  const cuts: number[] = []
  let uncutFrom = 0
  const nextQuote = seeker(bytes, QUOTE)
  const nextBackslash = seeker(bytes, BACKSLASH)
  seen.fill(0)
  /** Of each container on the way down, its keys so far. */
  const sequences: number[] = [0]
  let newSequences = 0
  let newTexts = 0
  let escapes = 0
  let longNumbers = 0
  /** The last byte that was looked at: a number or blanks may follow. */
  let toldAt = -1
  /** The last text, between its quotes. */
  let textFrom = 0
  let textTo = 0
  let depth = 0
  let values = 1
  let members = 0
  let containers = 0
  let elements = 1
  let isList = false
  let listed = 1
  let isListed = false
  let cutList: Listed | null = null
  let isCut = false
  for (let i = 0; i < bytes.length; i++) {
    if (TELLS[bytes[i]!] === 0) continue
    if (i - toldAt > MAX_SHORT_DIGITS && endsLongNumber(bytes, toldAt + 1, i) && ++longNumbers > MAX_LONG_NUMBERS)
      throw tooMany(MAX_LONG_NUMBERS, `numbers of more than ${MAX_SHORT_DIGITS} digits`)
    switch (bytes[i]) {
      case QUOTE: {
        let walkedFrom = i
        textFrom = i + 1
        for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) {
          if (bytes[i] === BACKSLASH) {
            if (++escapes > MAX_ESCAPES) throw tooMany(MAX_ESCAPES, 'escapes')
            walkedFrom = ++i
          } else if (i - walkedFrom === MAX_WALKED_BYTES) {
            walkedFrom = Math.min(nextQuote(i), nextBackslash(i))
            i = walkedFrom - 1
          }
        }
        textTo = i
        if (
          textTo - textFrom <= MAX_SHORT_CHARS &&
          isNew(hashOf(bytes, textFrom, textTo)) &&
          ++newTexts > MAX_SHORT_TEXTS
        )
          throw tooMany(MAX_SHORT_TEXTS, 'different short texts')
        break
      }
      case COMMA:
        if (++values > MAX_BODY_VALUES) throw tooMany(MAX_BODY_VALUES, 'values')
        if (depth === 2 && isListed) {
          if (++listed > maxListed) throw tooMany(maxListed, 'elements')
          if (isCut && i - uncutFrom >= MIN_PIECE_BYTES) {
            cutList!.cuts.push(i)
            uncutFrom = i
          }
        }
        if (depth !== 1 || !isList) break
        if (++elements > maxElements) throw tooMany(maxElements, 'elements')
        if (i - uncutFrom >= MIN_PIECE_BYTES) {
          cuts.push(i)
          uncutFrom = i
          newSequences = 0
          newTexts = 0
          escapes = 0
          longNumbers = 0
        }
        break
      case COLON:
        if (++members > MAX_BODY_MEMBERS) throw tooMany(MAX_BODY_MEMBERS, 'keys and containers')
        sequences[depth] = mixed(sequences[depth]!, hashOf(bytes, textFrom, textTo))
        // Of what is no JSON, a long text is not read for each of many colons.
        textFrom = textTo
        if (isNew(sequences[depth]!) && ++newSequences > MAX_KEY_SEQUENCES)
          throw tooMany(MAX_KEY_SEQUENCES, 'different sequences of keys')
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (depth === 0) isList = bytes[i] === OPEN_ARRAY
        if (depth === 1) {
          isListed = !isList && bytes[i] === OPEN_ARRAY
          isCut = isListed && !cutList?.cuts.length
          if (isCut) cutList = { from: i + 1, to: -1, cuts: [] }
          if (isCut) uncutFrom = i
          listed = 1
        }
        containers++
        if (++members > MAX_BODY_MEMBERS) throw tooMany(MAX_BODY_MEMBERS, 'keys and containers')
        if (++values > MAX_BODY_VALUES) throw tooMany(MAX_BODY_VALUES, 'values')
        if (++depth > MAX_BODY_DEPTH) throw deserializeError(`nested deeper than ${MAX_BODY_DEPTH} levels`)
        sequences[depth] = 0
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (depth === 2 && isCut) {
          cutList!.to = i
          isCut = false
        }
        if (depth > 0) depth--
        break
    }
    toldAt = i
  }
  return { containers, cuts, listed: cutList !== null && cutList.to >= 0 && cutList.cuts.length > 0 ? cutList : null }
}

/** Whether the number before `to`, if there is one, is longer than one that costs little. */
function endsLongNumber(bytes: Buffer, from: number, to: number): boolean {
  let end = to
  while (end > from && bytes[end - 1]! <= SPACE) end--
  let begin = end
  while (begin > from && end - begin <= MAX_SHORT_DIGITS && bytes[begin - 1]! > SPACE) begin--
  return end - begin > MAX_SHORT_DIGITS
}

/** The greatest of the four that JSON has for blanks. */
const SPACE = 0x20

/** Where a byte is next, from places further and further on: no byte is looked at twice. The length where it is no more. */
function seeker(bytes: Buffer, byte: number): (from: number) => number {
  let next = -1
  return (from) => {
    if (next < from) next = bytes.indexOf(byte, from)
    if (next === -1) next = bytes.length
    return next
  }
}

/** 1 for the bytes that `prescanJson` looks at: of long numbers and blanks each byte costs a tenth so. */
const TELLS = new Uint8Array(256)
for (const byte of [QUOTE, COMMA, COLON, OPEN_ARRAY, OPEN_OBJECT, CLOSE_ARRAY, CLOSE_OBJECT]) TELLS[byte] = 1

/** Of another process, other texts meet. */
const SEED = randomInt(2 ** 31)

/** FNV-1a (draft-eastlake-fnv), a word at a time. */
const mixed = (hash: number, word: number) => Math.imul(hash ^ word, 0x0100_0193)

function hashOf(bytes: Buffer, from: number, to: number): number {
  let hash = SEED
  for (let i = from; i < to; i++) hash = mixed(hash, bytes[i]!)
  return hash
}

/** A bit for each of so many hashes: of 100 000 some 5 in 100 meet one that was there. */
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

/** How many objects there are at most in a body that is not weighed. */
export function countObjects(bytes: Buffer): number {
  let objects = 0
  for (let i = bytes.indexOf(OPEN_OBJECT); i !== -1; i = bytes.indexOf(OPEN_OBJECT, i + 1)) objects++
  return objects
}

export const tooMany = (max: number, what: string) => new HttpError(413, `body has more than ${max} ${what}`)
