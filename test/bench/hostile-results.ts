/** Results of checks that cost more than they look, and the fullest that are allowed: 256 KiB with 32 signatures and 64 attestations. */
import { createHash } from 'node:crypto'
import { type Attack, fixed } from './hostile-bodies.ts'

const MAX_BYTES = 262_144
const MAX_SIGNATURES = 32
const MAX_ATTESTATIONS = 64

/** An image that the inventory has to have. */
export const RESULT_IMAGE = `sha256:${createHash('sha256').update('hostile result').digest('hex')}`
export const RESULT_PATH = `/images/${RESULT_IMAGE}/attestation`

/** All results of a run are of one image: each is newer than the one before, and replaces it. */
const head = (checkedAt = 0, verdict = 'verified') =>
  `{"schema_version":1,"digest":"${RESULT_IMAGE}","repository":"r","checked_at":"${new Date(checkedAt).toISOString()}","verdict":"${verdict}",`

type Fields = Readonly<Record<string, unknown>>

const SIGNED = { format: 'f', verified: true, issuer: 'i', san: 's' }

/** As many entries as there may be, made of `entry`; `text` is as long in all of them as the body has room for. */
function full(start: string, entry: (text: string, i: number) => Fields): string {
  const make = (text: string) => {
    const of = (count: number, fields: Fields) =>
      Array.from({ length: count }, (_, i) => ({ ...entry(text, i), ...fields }))
    return `${start}"signatures":${JSON.stringify(of(MAX_SIGNATURES, {}))},"attestations":${JSON.stringify(of(MAX_ATTESTATIONS, { predicate_type: 'p' }))}}`
  }
  let [least, most] = [0, MAX_BYTES]
  while (least < most) {
    const middle = Math.ceil((least + most) / 2)
    if (Buffer.byteLength(make('x'.repeat(middle))) <= MAX_BYTES) least = middle
    else most = middle - 1
  }
  return make('x'.repeat(least))
}

/** A detail of every entry that is one word over and over. */
const detailed = (word: string, checkedAt = 0) =>
  full(head(checkedAt), (text) => ({
    ...SIGNED,
    detail: word.repeat(Math.floor(text.length / Buffer.byteLength(JSON.stringify(word).slice(1, -1)))),
  }))

const WORDS = ['=', ':', '1:', '?', 'x.y ', '1.2.3.4:', '[', '<url', 'key:"', 'Bearer ', 'a.', '::']

const refused = (name: string, make: () => string) => fixed(`results: ${name}`, RESULT_PATH, 'refused', make)
const plain = (attack: Attack): Attack => ({ ...attack, isPlainOnly: true })
const filledTo = (start: string, part: string, end: string) =>
  start + part.repeat(Math.floor((MAX_BYTES - start.length - end.length) / part.length)) + end

export const HOSTILE_RESULTS: Attack[] = [
  refused('256 KiB of [', () => '['.repeat(MAX_BYTES)),
  refused('256 KiB of {"a":', () => '{"a":'.repeat(MAX_BYTES / 5)),
  refused('[{},{},...]', () => filledTo(`${head()}"signatures":[`, '{},', '{}]}')),
  refused('[0,0,...] beside the lists', () => filledTo(`${head()}"x":[`, '0,', '0]}')),
  refused('16 000 containers', () => `${head()}"x":[${'[],'.repeat(5_400)}[]],"signatures":7}`),
  refused(
    '8 000 different keys',
    () => `${head()}${Array.from({ length: 8_000 }, (_, i) => `"k${i}":0`).join(',')},"signatures":7}`,
  ),
  refused('a key 8 000 times', () => `${head()}${'"a":0,'.repeat(8_000)}"b":0}`),
  refused('a value of 256 KiB, cut short', () => filledTo(`${head()}"x":"`, 'x', '')),
  refused('a number of 256 KiB', () => filledTo(`${head()}"signatures":[{"format":"f","tlog_index":`, '9', '}]}')),
  refused(
    '5 000 integers beyond 2^53',
    () =>
      `${head()}"x":[${'9223372036854775807,'.repeat(5_000)}0],"signatures":[{"format":"f","tlog_index":9223372036854775808}]}`,
  ),
  refused('the last text is forbidden', () =>
    full(head(), (text, i) => ({ ...SIGNED, detail: text, ...(i === MAX_ATTESTATIONS - 1 && { san: '\u202e' }) })),
  ),
  refused('the verdict is another', () =>
    full(head(0, 'unsigned'), (text) => ({ ...SIGNED, detail: `${'a.b '.repeat(Math.floor(text.length / 4))}` })),
  ),
  refused('an index of no image', () => detailed(':').replace(RESULT_IMAGE, RESULT_IMAGE.replace(/.$/, 'x'))),
].map(plain)

const DAY_MS = 86_400_000

/** The fullest that are allowed; those of a run are newer than those of the runs before. */
export function validResults(): Attack[] {
  let checkedAt = Date.now() - DAY_MS
  const newer = () => checkedAt++
  const provenance = (text: string) => {
    const long = text.slice(0, 330)
    return {
      builder_id: long,
      build_type: long,
      source_repo: long,
      source_commit: long.slice(0, 128),
      source_ref: long,
    }
  }
  const valid = (name: string, body: () => string): Attack =>
    plain({ name: `results: ${name}`, path: RESULT_PATH, expected: 'valid', body })
  return [
    valid('96 entries in 256 KiB', () =>
      full(head(newer()), (text, i) => ({
        ...{
          ...SIGNED,
          issuer: `i${text.slice(0, 500)}${i}`,
          san: `s${text.slice(0, 500)}${i}`,
          detail: text.slice(0, 300),
        },
        ...{ tlog_index: i, integrated_time: '2026-01-01T00:00:00Z', provenance: provenance(text) },
      })),
    ),
    valid('256 KiB that nobody reads', () =>
      filledTo(`${head(newer())}"signatures":[${JSON.stringify(SIGNED)}],"x":"`, 'x', '"}'),
    ),
    ...WORDS.map((word) => valid(`details of ${word.trim()}`, () => detailed(word, newer()))),
  ]
}
