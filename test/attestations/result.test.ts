/**
 * Conversion of results, compared with a second statement of the rules (docs/contract.md#signatures-and-attestations).
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { UNRECOGNISED } from '../../lib/attestations/reasons.ts'
import { prepareResult } from '../../lib/attestations/result.ts'
import { HttpError } from '../../lib/errors.ts'
import { newDigest } from '../support/images.ts'
import { checkedAt, type Fields, keySignature, resultOf, signature, statement, unverified } from './results.ts'

const numRuns = 2_000
const NOW = Date.parse(checkedAt(0))
const digest = newDigest()

const prepare = (fields: Fields) => prepareResult(Buffer.from(JSON.stringify(resultOf(digest, fields))), digest, NOW)

/** The stored form of a result, or the text of its refusal. */
async function outcomeOf(fields: Fields): Promise<{ verdict: string | null; reason: string | null } | string> {
  try {
    const { verdict, reason } = (await prepare(fields)).document
    return { verdict: verdict!, reason: reason! }
  } catch (error) {
    assert.ok(error instanceof HttpError)
    assert.equal(error.status, 422)
    return error.message
  }
}

test('a check may be 60 seconds ahead, in whole seconds, and not one more', async () => {
  for (const ahead of [-1e9, 0, 60, 60.999])
    assert.equal(typeof (await outcomeOf({ checked_at: checkedAt(ahead) })), 'object', `${ahead}`)
  for (const ahead of [61, 3_600])
    assert.equal(await outcomeOf({ checked_at: checkedAt(ahead) }), 'checked_at: more than 60 seconds ahead')
})

// ---- Verdicts

const CODES = [
  'bad_signature',
  'digest_mismatch',
  'malformed',
  'untrusted_key',
  'network',
  'no_signer_identity',
  'a_new_code',
]
const code = fc.constantFrom(...CODES, undefined)

/** Signatures by their fields: verified or not, with a signer or without. */
const entry = fc.oneof(
  { weight: 3, arbitrary: code.map((error) => unverified(error as string)) },
  fc.tuple(fc.constantFrom(signature(), keySignature()), code).map(([one, error]) => ({ ...one, error })),
  fc
    .tuple(
      fc.constantFrom(signature({ issuer: '' }), signature({ san: ' ' }), keySignature({ key_fingerprint: ' ' })),
      code,
    )
    .map(([one, error]) => ({ ...one, error })),
)

/** The rules as a table over sets of errors, independent of the code. */
function expected(
  verdict: string,
  reason: string | undefined,
  signatures: readonly Fields[],
  attestations: readonly Fields[],
) {
  const filled = (text: unknown) => typeof text === 'string' && text.trim().length > 0
  const isNamed = (one: Fields) =>
    one.signer_kind === 'key' ? filled(one.key_fingerprint) : filled(one.issuer) && filled(one.san)
  const nameless = [...signatures, ...attestations].filter((one) => one.verified && !isNamed(one))
  const counted = signatures.filter((one) => one.verified && isNamed(one)).length
  const errors = signatures.flatMap((one) =>
    one.verified ? (isNamed(one) ? [] : ['no_signer_identity']) : [one.error as string],
  )
  const tampers = errors.filter((one) => ['bad_signature', 'digest_mismatch', 'malformed'].includes(one))
  const keys = errors.filter((one) => one === 'untrusted_key')
  const storedReason = reason === 'a_new_code' ? UNRECOGNISED : (reason ?? null)
  if (nameless.length > 0 && verdict === 'verified' && counted === 0) {
    if (tampers.length > 0) return { verdict: 'invalid', reason: tampers[0]! }
    return keys.length > 0
      ? { verdict: 'key_signed', reason: 'untrusted_key' }
      : { verdict: 'unknown', reason: 'no_signer_identity' }
  }
  const agrees: Record<string, boolean> = {
    verified: counted > 0,
    unsigned: signatures.length === 0,
    invalid: counted === 0 && (tampers.length > 0 || errors.includes('a_new_code')),
    key_signed: counted === 0 && tampers.length === 0 && keys.length > 0,
    unknown: counted === 0 && tampers.length === 0,
  }
  return agrees[verdict] ? { verdict, reason: storedReason } : null
}

test('a verdict is kept, derived again or refused as its signatures require; attestations take no part', async () => {
  const seen = new Set<string>()
  const model = fc.asyncProperty(
    fc.constantFrom('verified', 'key_signed', 'unsigned', 'invalid', 'unknown'),
    code,
    fc.array(entry, { maxLength: 5 }),
    fc.array(entry, { maxLength: 2 }),
    async (verdict, reason, signatures, entries) => {
      const attestations = entries.map((one) => ({ ...one, predicate_type: 'p' }))
      const should = expected(verdict, reason, signatures, attestations)
      const is = await outcomeOf({ verdict, reason, signatures, attestations })
      if (should === null) assert.match(is as string, /^verdict: /)
      else assert.deepEqual(is, should)
      seen.add(should === null ? `${verdict} refused` : `${verdict} ${should.verdict}`)
    },
  )
  await fc.assert(model, { numRuns })
  // All ways through the rules occurred.
  const ways = ['verified', 'key_signed', 'unsigned', 'invalid', 'unknown'].flatMap((one) => [
    `${one} refused`,
    `${one} ${one}`,
  ])
  for (const way of [...ways, 'verified invalid', 'verified key_signed', 'verified unknown'])
    assert.ok(seen.has(way), way)
})

// ---- Signers

const text = (maxLength: number) =>
  fc
    .oneof(
      fc.string({ unit: 'grapheme', maxLength }),
      fc.string({ unit: 'grapheme', minLength: Math.ceil(maxLength / 3), maxLength }),
    )
    .filter((one) => !/[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u.test(one))
const bytes = (one: unknown) => Buffer.byteLength(one as string)

test('a signer is stored whole or refused, and only for verified entries with the fields of its kind', async () => {
  const identity = fc.record({
    verified: fc.boolean(),
    signer_kind: fc.constantFrom('keyless', 'key', '', null),
    issuer: text(1_100),
    san: text(1_100),
    key_name: text(140),
    key_fingerprint: text(70),
    key_hint: text(140),
    subject: text(220),
  })
  const LIMITS = { issuer: 1_024, san: 1_024, key_name: 128, key_fingerprint: 64 } as const
  await fc.assert(
    fc.asyncProperty(identity, async (one) => {
      const isKey = one.signer_kind === 'key'
      const isNamed = isKey ? one.key_fingerprint.trim() !== '' : one.issuer.trim() !== '' && one.san.trim() !== ''
      const isVerified = one.verified && isNamed
      const tooLong = Object.entries(LIMITS).find(([key, max]) => bytes(one[key as keyof typeof LIMITS]) > max)?.[0]
      const fields = { signatures: [{ format: 'f', ...one }, signature()] }
      if (isVerified && tooLong !== undefined) {
        assert.match((await outcomeOf(fields)) as string, new RegExp(`^signatures\\[0\\]\\.${tooLong}: longer than`))
        return
      }
      const { document } = await prepare(fields)
      const [stored] = JSON.parse(document.signatures!)
      const cut = (whole: string, kept: string | undefined, max: number) => {
        assert.ok(whole.startsWith(kept ?? '') && bytes(kept ?? '') <= max)
        // One more character would not have fitted.
        const next = [...whole.slice((kept ?? '').length)][0]
        assert.ok(next === undefined || bytes((kept ?? '') + next) > max)
      }
      cut(one.key_hint, stored.keyHint, 128)
      cut(one.subject, stored.subject, 192)
      const { signerKind, issuer, san, keyName, keyFingerprint } = stored
      const shown = { signerKind, issuer, san, keyName, keyFingerprint }
      const none = {
        signerKind: undefined,
        issuer: undefined,
        san: undefined,
        keyName: undefined,
        keyFingerprint: undefined,
      }
      if (!isVerified) assert.deepEqual(shown, none)
      else if (!isKey) assert.deepEqual(shown, { ...none, signerKind: 'keyless', issuer: one.issuer, san: one.san })
      else
        assert.deepEqual(shown, {
          ...{ ...none, signerKind: 'key', keyName: one.key_name || undefined, keyFingerprint: one.key_fingerprint },
        })
      assert.equal(stored.error, one.verified && !isNamed ? 'no_signer_identity' : undefined)
      assert.equal(JSON.parse(document.signers!).length, isVerified ? 2 : 1)
      assert.equal(JSON.parse(document.verified_signatures!).length, isVerified ? 2 : 1)
    }),
    { numRuns },
  )
})

// ---- Characters

const KNOWN_TEXTS = {
  signatures: [
    'format',
    'source',
    'error',
    'detail',
    'subject',
    'signer_kind',
    'issuer',
    'san',
    'key_name',
    'key_fingerprint',
    'key_hint',
  ],
  attestations: ['predicate_type', 'payload_sha256'],
} as const

test('a forbidden character in a known text is refused with the name of the field; all others are accepted', async () => {
  const isForbidden = (point: number) =>
    point < 0x20 ||
    (point >= 0x7f && point <= 0x9f) ||
    (point >= 0xd800 && point <= 0xdfff) ||
    [0x2028, 0x2029, 0x200e, 0x200f, 0xfeff].includes(point) ||
    (point >= 0x202a && point <= 0x202e) ||
    (point >= 0x2066 && point <= 0x2069)
  const point = fc.oneof(
    fc.integer({ min: 0, max: 0x2_ffff }),
    fc.integer({ min: 0, max: 0xff }),
    fc.integer({ min: 0x2000, max: 0x2070 }),
  )
  const field = fc.constantFrom(
    ...Object.entries(KNOWN_TEXTS).flatMap(([list, keys]) => keys.map((key) => [list, key] as const)),
    ['attestations', 'provenance.source_ref'] as const,
  )
  await fc.assert(
    fc.asyncProperty(point, field, fc.nat(3), async (one, [list, key], before) => {
      const value = `${'x'.repeat(before)}${String.fromCodePoint(one)}y`
      const made = list === 'signatures' ? signature : statement
      const entry = made(key.startsWith('provenance') ? { provenance: { source_ref: value } } : { [key]: value })
      const is = await outcomeOf({
        [list]: [made(), entry],
        ...(list === 'attestations' && { signatures: [signature()] }),
      })
      const where = `${list}[1].${key}: a control`
      assert.equal(
        typeof is === 'string' && is.startsWith(where),
        isForbidden(one),
        `${one.toString(16)} ${JSON.stringify(is)}`,
      )
    }),
    { numRuns },
  )
})

// ---- Transparency log

test('an index of the transparency log is stored exactly, or refused', async () => {
  const index = fc.oneof(
    fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }),
    fc.bigInt({ min: 2n ** 53n - 4n, max: 2n ** 53n + 4n }),
    fc.bigInt({ min: 2n ** 63n - 4n, max: 2n ** 63n + 4n }),
    fc.bigInt({ min: -(2n ** 63n) - 4n, max: -(2n ** 63n) + 4n }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(index, { maxLength: 4 }), async (list) => {
      const text = JSON.stringify(
        resultOf(digest, { signatures: [signature(), ...list.map((_, i) => signature({ tlog_index: `@${i}@` }))] }),
      )
      const body = Buffer.from(text.replace(/"@(\d)@"/g, (_, i) => String(list[Number(i)])))
      const bad = list.findIndex((one) => one < -(2n ** 63n) || one >= 2n ** 63n)
      if (bad >= 0) {
        await assert.rejects(
          () => prepareResult(body, digest, NOW),
          new RegExp(`signatures\\[${bad + 1}\\]\\.tlog_index`),
        )
        return
      }
      const { signatures } = (await prepareResult(body, digest, NOW)).document
      assert.deepEqual(
        [...signatures!.matchAll(/"tlogIndex":(-?\d+)/g)].map(([, one]) => BigInt(one!)),
        list,
      )
    }),
    { numRuns: Math.ceil(numRuns / 4) },
  )
})
