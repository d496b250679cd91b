/**
 * Integers that a double cannot hold, under a key that is known before a body is parsed: ids of 64 bits.
 * `exact-integers.ts` parses a body twice; here the digits are replaced in the bytes by a text of the same length, and
 * the rest of the body costs nothing more.
 */
import { Slice } from '../event-loop/slices.ts'
import { CLOSE_OBJECT, COLON, COMMA } from './scanner.ts'

/** Stands before the digits in base 36. A client that sends it only chooses an id of its own. */
const MARK = '\x7f'
const BASE = 36
/** The shortest integer beyond 2^53, and the longest below 2^64. */
const MIN_DIGITS = 16
const MAX_DIGITS = 20
const LIMIT = 2n ** 64n
const ZERO = 0x30
const NINE = 0x39
const MARKED = new RegExp(`^${MARK}[0-9a-z]{1,13}$`)

/**
 * Replaces integers below 2^64 under `key` by texts for `longInteger`, in place and in slices. JSON stays JSON, and
 * what is not JSON does not become it.
 */
export async function markLongIntegers(bytes: Buffer, key: string): Promise<void> {
  const quoted = Buffer.from(`"${key}"`)
  const slice = new Slice()
  for (let at = bytes.indexOf(quoted); at !== -1; at = bytes.indexOf(quoted, at)) {
    at += quoted.length
    const colon = afterBlanks(bytes, at)
    if (bytes[colon] !== COLON) continue
    const from = afterBlanks(bytes, colon + 1)
    let to = from
    while (isDigit(bytes[to])) to++
    if (to - from >= MIN_DIGITS && to - from <= MAX_DIGITS && bytes[from] !== ZERO && isAfterValue(bytes[to]))
      mark(bytes, from, to)
    if (slice.isOver) await slice.next()
  }
}

/** The integer that a value of a body stands for; null for a value that was not marked. */
export function longInteger(value: unknown): bigint | null {
  if (typeof value !== 'string' || !MARKED.test(value)) return null
  let integer = 0n
  for (const digit of value.slice(MARK.length)) integer = integer * BigInt(BASE) + BigInt(Number.parseInt(digit, BASE))
  return integer < LIMIT ? integer : null
}

function mark(bytes: Buffer, from: number, to: number): void {
  const integer = BigInt(bytes.toString('latin1', from, to))
  if (integer < LIMIT) bytes.write(`"${MARK}${integer.toString(BASE)}"`.padEnd(to - from), from, 'latin1')
}

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= ZERO && byte <= NINE
const isBlank = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
const isAfterValue = (byte: number | undefined) => byte === COMMA || byte === CLOSE_OBJECT || isBlank(byte)

function afterBlanks(bytes: Buffer, from: number): number {
  let at = from
  while (isBlank(bytes[at])) at++
  return at
}
