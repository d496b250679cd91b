/** Signatures as the existing broker of the ecosystem shows them, in keys, codes, verdicts and counts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SignatureFacts, SignerFacts } from '../../lib/profile/images/facts.ts'
import { imageSignedOf, judgeImages } from '../../lib/profile/images/index.ts'
import { digestOf } from '../support/images.ts'
import { rowOf } from './inventory.ts'

const AT = '2026-09-26T22:24:27.806086Z'
const NONE = { verified: 0, keySigned: 0, unsigned: 0, invalid: 0, unknown: 0, notChecked: 0 }
const keyless: SignerFacts = {
  kind: 'keyless',
  issuer: 'https://issuer.test',
  san: 'x',
  keyName: null,
  keyFingerprint: null,
}
const key: SignerFacts = { kind: 'key', issuer: null, san: null, keyName: 'release', keyFingerprint: 'd4d9' }
const KEYS = [
  ...['status', 'verdict', 'reason', 'container', 'digest', 'signers', 'checkedAt', 'counts', 'imageTrust', 'digests'],
  'truncated',
]
const DIGEST_KEYS = ['container', 'digest', 'verdict', 'reason', 'signers', 'checkedAt']

interface Capture {
  readonly found: Pick<SignatureFacts, 'verdict' | 'reason' | 'signers'> | null
  /** Verdict and reason of the block, then of the digest. */
  readonly shown: readonly [string, string | null, string | null, string | null]
  readonly counts: Partial<typeof NONE>
  readonly status: string
  readonly signed: boolean | null
  readonly findings: readonly string[]
}
const found = (verdict: string, reason: string | null = null, ...signers: SignerFacts[]) => ({
  verdict,
  reason,
  signers,
})

const CAPTURES: Readonly<Record<string, Capture>> = {
  'verified by an identity': {
    ...{ found: found('verified', null, keyless), shown: ['verified', null, 'verified', null] },
    ...{ counts: { verified: 1 }, status: 'unknown', signed: true, findings: [] },
  },
  'verified by a key': {
    ...{ found: found('verified', null, key), shown: ['verified', null, 'verified', null] },
    ...{ counts: { verified: 1 }, status: 'unknown', signed: true, findings: [] },
  },
  invalid: {
    ...{ found: found('invalid', 'bad_signature'), shown: ['invalid', 'bad_signature', 'invalid', 'bad_signature'] },
    ...{ counts: { invalid: 1 }, status: 'risk', signed: false, findings: ['images.signatureInvalid/app high P1'] },
  },
  'signed with an unknown key': {
    ...{ found: found('key_signed', 'untrusted_key') },
    shown: ['key_signed', 'untrusted_key', 'key_signed', 'untrusted_key'],
    ...{ counts: { keySigned: 1 }, status: 'unknown', signed: false },
    findings: ['images.signatureNotVerified/app low null'],
  },
  'not signed': {
    ...{ found: found('unsigned'), shown: ['unsigned', null, 'unsigned', null] },
    ...{ counts: { unsigned: 1 }, status: 'unknown', signed: false, findings: ['images.unsigned/app low null'] },
  },
  'not checked': {
    ...{ found: null, shown: ['unknown', 'not_checked', null, null], counts: { notChecked: 1 } },
    ...{ status: 'unknown', signed: null, findings: [] },
  },
}

for (const [name, { found, shown, counts, status, signed, findings }] of Object.entries(CAPTURES))
  test(`an image that is ${name}`, () => {
    const digest = digestOf('a')
    const checked = found && { ...found, digest, checkedAt: AT, signerCount: found.signers.length }
    const facts = { signatures: checked ? [checked] : [], scanned: [], oldestScanAt: null, vulnerabilities: [] }
    const options = { runningWindowSecs: 86_400, isDiscoveryConfigured: true, isTruncated: false }
    const { dimension, findings: all } = judgeImages([rowOf('app', 'a')], facts, options)
    const block = dimension.supplyChain!
    const [one] = block.digests
    assert.deepEqual([block.verdict, block.reason, one!.verdict, one!.reason], shown)
    assert.deepEqual([block.container, block.digest, block.counts], ['app', digest, { ...NONE, ...counts }])
    const at = found === null ? null : AT
    assert.deepEqual([block.checkedAt, one!.checkedAt, block.signers], [at, at, one!.signers])
    assert.deepEqual([Object.keys(block), Object.keys(one!)], [KEYS, DIGEST_KEYS])
    assert.deepEqual(
      [dimension.status, dimension.coverage.level, imageSignedOf(dimension)],
      [status, 'partial', signed],
    )
    assert.deepEqual(
      dimension.reasons.map(({ code }) => code),
      ['vulnerabilities_not_configured', 'signatures'],
    )
    assert.deepEqual(
      all.map(({ id, severity, tier }) => `${id} ${severity} ${tier}`),
      findings,
    )
  })
