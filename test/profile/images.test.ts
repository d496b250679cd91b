/** The dimension `images` without a database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ImageFacts, SignatureFacts, SignerFacts, VulnerabilityGroup } from '../../lib/profile/images/facts.ts'
import { imageSignedOf, imagesSnapshot, judgeImages } from '../../lib/profile/images/index.ts'
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import { Images, VERDICTS } from '../../lib/profile/record/images.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'
import { rowOf, staleOf } from './inventory.ts'

const AT = '2026-01-03T00:00:00Z'
const OPTIONS = { runningWindowSecs: 900, isDiscoveryConfigured: true, isTruncated: false }

const keyless = (fields: Partial<SignerFacts> = {}): SignerFacts => ({
  ...{ kind: 'keyless', issuer: 'https://issuer.test', san: 'release@team.test', keyName: null, keyFingerprint: null },
  ...fields,
})
const signed = (image: string, verdict: string, fields: Partial<SignatureFacts> = {}): SignatureFacts => {
  const signers = verdict === 'verified' ? [keyless()] : []
  const found = { digest: digestOf(image), verdict, reason: null, checkedAt: AT, signers, ...fields }
  return { ...found, signerCount: fields.signerCount ?? found.signers.length }
}
const facts = (fields: Partial<ImageFacts> & { images?: readonly string[] } = {}): ImageFacts => {
  const { images = [], ...rest } = fields
  const scanned = images.map(digestOf)
  return { ...{ signatures: [], scanned, oldestScanAt: images.length > 0 ? AT : null, vulnerabilities: [] }, ...rest }
}
const [CRITICAL, HIGH, MEDIUM, LOW, NONE, UNKNOWN] = [0, 1, 2, 3, 4, 5]
const [P0, P1, P2, BACKGROUND] = [0, 2, 3, 4]
const group = (severity: number, tier: number, fields: Partial<VulnerabilityGroup> = {}): VulnerabilityGroup => ({
  ...{ severity, tier, count: 1, fixable: 0, inUse: 0, ids: [`CVE-${severity}-${tier}`] },
  ...fields,
})

/** Judges, and checks the answer against its shape. */
function judge(rows: readonly InventoryRow[], given: ImageFacts = facts(), options: Partial<typeof OPTIONS> = {}) {
  const { dimension, findings } = judgeImages(rows, given, { ...OPTIONS, ...options })
  assert.deepEqual(Images.parse(dimension), dimension)
  return { ...dimension, findings, ids: findings.map(({ id }) => id), codes: dimension.reasons.map(({ code }) => code) }
}

test('every key, in wire order', () => {
  const rows = [rowOf('app', 'a'), rowOf('app', 'old', { isRunning: false, state: 'terminated', stateReason: 'Error' })]
  const {
    findings: _,
    ids: _ids,
    codes: _codes,
    ...images
  } = judge(
    rows,
    facts({
      images: ['a'],
      signatures: [signed('a', 'verified')],
      vulnerabilities: [group(HIGH, P1, { count: 2, fixable: 1, inUse: 1 })],
    }),
  )
  const signer = { signerKind: 'keyless', issuer: 'https://issuer.test', san: 'release@team.test' }
  const image = (row: InventoryRow) => {
    const {
      container: _c,
      kind: _k,
      isRunning: _r,
      isCurrent: _n,
      securityContext: _s,
      podSecurity: _p,
      ...shown
    } = row
    return shown
  }
  assert.equal(
    JSON.stringify(images),
    JSON.stringify({
      status: 'risk',
      coverage: {
        level: 'full',
        fraction: null,
        observedSince: '2026-01-01T00:00:00Z',
        note: 'images that ran in the last 900 seconds, or in pods that live, all scanned',
      },
      reasons: [
        { code: 'signatures', message: 'Signatures of 1 running image: 1 verified' },
        { code: 'vulnerabilities', message: '2 vulnerabilities in 1 running image: 2 high' },
      ],
      runningWindowSeconds: 900,
      containers: [
        {
          ...{ name: 'app', kind: 'regular', mixedDigests: false, stale: false },
          ...{ running: [image(rows[0]!)], previous: [image(rows[1]!)] },
        },
      ],
      truncated: false,
      vulnerabilities: {
        ...{ critical: 0, high: 2, medium: 0, low: 0, negligible: 0, unknown: 0, fixable: 1, inUse: 1 },
        ...{ tiers: { P0: 0, P1: 2, P2: 0, Background: 0 }, scannedDigests: 1, oldestScanAt: AT },
      },
      supplyChain: {
        ...{ status: 'configured', verdict: 'verified', reason: null, container: 'app', digest: digestOf('a') },
        ...{ signers: [signer], checkedAt: AT },
        counts: { verified: 1, keySigned: 0, unsigned: 0, invalid: 0, unknown: 0, notChecked: 0 },
        imageTrust: null,
        digests: [
          {
            container: 'app',
            digest: digestOf('a'),
            verdict: 'verified',
            reason: null,
            signers: [signer],
            checkedAt: AT,
          },
        ],
        truncated: false,
      },
    }),
  )
})

test('without an inventory nothing is known', () => {
  const { status, coverage, codes, supplyChain, vulnerabilities, containers, findings } = judge([])
  assert.deepEqual([status, coverage.level, coverage.observedSince, codes], ['unknown', 'none', null, ['no_inventory']])
  assert.deepEqual([supplyChain, vulnerabilities, containers, findings], [null, null, [], []])
})

test('a workload of which nothing runs has no signatures, and stale containers give no findings', () => {
  const old = { state: 'waiting', stateReason: 'ErrImagePull' } as const
  const images = judge([staleOf('app', 'a', old), staleOf('app', 'b', old)])
  assert.deepEqual([images.status, images.coverage.level, images.supplyChain], ['unknown', 'partial', null])
  assert.deepEqual([images.codes, images.findings], [['vulnerabilities_not_configured'], []])
  assert.deepEqual([images.containers[0]!.stale, imageSignedOf(images)], [true, null])
})

test('containers: mixed digests, crash loops and images that cannot be pulled', () => {
  const waiting = (stateReason: string) => ({ state: 'waiting', stateReason }) as const
  const gone = { isRunning: false, ...waiting('ImagePullBackOff') }
  const { ids, containers } = judge([
    rowOf('crash', 'a', waiting('CrashLoopBackOff')),
    rowOf('crash', 'b', waiting('CrashLoopBackOff')),
    rowOf('old', 'a', { lastSeen: '2026-01-02T00:00:00.5Z' }),
    rowOf('old', 'b', { ...gone, lastSeen: '2026-01-02T00:00:00Z' }),
    rowOf('pull', 'a', { lastSeen: '2026-01-02T00:00:00Z' }),
    rowOf('pull', 'b', { ...gone, lastSeen: '2026-01-02T00:00:00.5Z' }),
    rowOf('start', 'a', waiting('ContainerCreating')),
  ])
  assert.deepEqual(
    ids.filter((id) => !id.includes('ignature')),
    ['images.mixedDigests/crash', 'images.crashLoop/crash', 'images.pullBackOff/pull'],
  )
  assert.deepEqual(
    containers.map(({ mixedDigests }) => mixedDigests),
    [true, false, false, false],
  )
})

test('signatures: the worst decides, one finding for each container and fault', () => {
  const rows = [rowOf('a', '1'), rowOf('a', '2'), rowOf('a', '3'), rowOf('b', '4'), rowOf('b', '5'), rowOf('c', '6')]
  const { supplyChain, findings, ...images } = judge(
    rows,
    facts({
      signatures: [
        signed('1', 'verified'),
        signed('2', 'invalid', { reason: 'bad_signature' }),
        signed('3', 'invalid', { reason: 'malformed' }),
        signed('4', 'unsigned'),
        signed('5', 'key_signed', { reason: 'untrusted_key' }),
      ],
    }),
  )
  const { verdict, reason, container, digest, counts } = supplyChain!
  assert.deepEqual([verdict, reason, container, digest], ['invalid', 'bad_signature', 'a', digestOf('2')])
  assert.deepEqual(counts, { verified: 1, keySigned: 1, unsigned: 1, invalid: 2, unknown: 0, notChecked: 1 })
  assert.deepEqual(
    findings.filter(({ id }) => !id.includes('mixed')).map(({ id, severity }) => [id, severity]),
    [
      ['images.signatureInvalid/a', 'high'],
      ['images.unsigned/b', 'low'],
      ['images.signatureNotVerified/b', 'low'],
    ],
  )
  assert.match(findings.find(({ id }) => id === 'images.signatureInvalid/a')!.detail, /bad_signature.* 1 more/)
  assert.deepEqual([images.status, images.codes], ['risk', ['vulnerabilities_not_configured', 'signatures']])
  assert.equal(images.reasons[0]!.message, '6 of 6 running digests have no report of vulnerabilities')
})

test('signatures: never checked is unknown with a reason, its own verdict null', () => {
  const { supplyChain } = judge([rowOf('a', '1')])
  const { verdict, reason, checkedAt, digests, counts } = supplyChain!
  assert.deepEqual([verdict, reason, checkedAt, counts.notChecked], ['unknown', 'not_checked', null, 1])
  assert.deepEqual([digests[0]!.verdict, digests[0]!.reason, digests[0]!.checkedAt], [null, null, null])
})

test('signatures: verified without an identity, and a word that is no verdict, are unknown', () => {
  const rows = [rowOf('a', '1'), rowOf('b', '2')]
  const odd = [signed('1', 'verified', { signers: [] }), signed('2', 'splendid', { reason: 'odd' })]
  const { supplyChain } = judge(rows, facts({ signatures: odd }))
  assert.deepEqual(
    supplyChain!.digests.map(({ verdict, reason }) => [verdict, reason]),
    [
      ['unknown', 'no_signer_identity'],
      ['unknown', 'odd'],
    ],
  )
  assert.deepEqual([supplyChain!.verdict, supplyChain!.counts.unknown], ['unknown', 2])
})

test('signatures: signers are cut to bytes, and those beyond the list are counted', () => {
  const key = {
    kind: 'key',
    issuer: null,
    san: null,
    keyName: 'k'.repeat(300),
    keyFingerprint: 'f'.repeat(200),
  } as const
  const signers = [keyless({ issuer: 'ä'.repeat(300), san: 's'.repeat(600) }), key, { ...key, keyName: null }]
  const { supplyChain } = judge(
    [rowOf('a', '1')],
    facts({ signatures: [signed('1', 'verified', { signers, signerCount: 12 })] }),
  )
  assert.deepEqual(supplyChain!.signers, [
    { signerKind: 'keyless', issuer: 'ä'.repeat(256), san: 's'.repeat(512) },
    { signerKind: 'key', keyName: 'k'.repeat(256), keyFingerprint: 'f'.repeat(128) },
    { signerKind: 'key', keyName: null, keyFingerprint: 'f'.repeat(128) },
  ])
  assert.deepEqual([supplyChain!.signersOmitted, supplyChain!.digests[0]!.signersOmitted], [9, 9])
})

test('signatures: 64 digests are listed, all are counted', () => {
  const rows = Array.from({ length: 65 }, (_, n) => rowOf(`c${n}`, String(n)))
  const at = (n: number) => judge(rows.slice(0, n), facts({ signatures: [signed('64', 'invalid')] })).supplyChain!
  assert.deepEqual([at(64).digests.length, at(64).truncated], [64, false])
  const { digests, truncated, verdict, container } = at(65)
  assert.deepEqual([digests.length, truncated, verdict, container], [64, true, 'invalid', 'c64'])
})

test('signatures: where nothing looks for them, there is no verdict and no finding', () => {
  const given = facts({ images: ['1'], signatures: [signed('1', 'invalid')] })
  const images = judge([rowOf('a', '1')], given, { isDiscoveryConfigured: false })
  assert.deepEqual(images.supplyChain, {
    ...{ status: 'not_configured', verdict: 'not_configured', reason: null, container: null, digest: null },
    ...{ signers: [], checkedAt: null },
    counts: { verified: 0, keySigned: 0, unsigned: 0, invalid: 0, unknown: 0, notChecked: 0 },
    ...{ imageTrust: null, digests: [], truncated: false },
  })
  assert.deepEqual([images.findings, images.codes], [[], ['signatures_not_configured', 'vulnerabilities']])
  assert.deepEqual([images.status, imageSignedOf(images)], ['ok', null])
})

test('the severity of vulnerabilities is their rating, moved by their tier', () => {
  const expected = [
    [P0, ['critical', 'critical', 'critical', 'critical', 'critical', 'critical']],
    [P1, ['critical', 'high', 'high', 'high', 'high', 'high']],
    [P2, ['critical', 'medium', 'medium', 'low', 'info', 'medium']],
    [BACKGROUND, ['info', 'info', 'info', 'info', 'info', 'info']],
  ] as const
  for (const [tier, severities] of expected)
    for (const [rating, severity] of severities.entries()) {
      const { findings } = judge([rowOf('a', '1')], facts({ images: ['1'], vulnerabilities: [group(rating, tier)] }))
      assert.deepEqual(
        findings.map((one) => [one.id, one.severity, one.container]),
        [[`images.vulnerabilities.${severity}`, severity, null]],
      )
    }
})

test('one finding for each severity names the first vulnerabilities and counts them all', () => {
  const { findings, vulnerabilities } = judge(
    [rowOf('a', '1')],
    facts({
      images: ['1'],
      vulnerabilities: [
        group(MEDIUM, P0, { count: 3, fixable: 2, inUse: 1, ids: ['A', 'B', 'C'] }),
        group(CRITICAL, P1, { count: 9, fixable: 5, inUse: 4, ids: ['D', 'E', 'F', 'G', 'H'] }),
        group(UNKNOWN, P2),
        group(LOW, BACKGROUND, { ids: ['L'] }),
        group(NONE, P2, { ids: ['N'] }),
      ],
    }),
  )
  assert.deepEqual(
    findings.map(({ id, tier, title }) => [id, tier, title]),
    [
      ['images.vulnerabilities.critical', 'P0', 'The running images have 12 vulnerabilities of critical urgency'],
      ['images.vulnerabilities.medium', 'P2', 'The running images have 1 vulnerability of medium urgency'],
      [
        'images.vulnerabilities.info',
        null,
        'The running images have 2 vulnerabilities that are negligible or not seen in use',
      ],
    ],
  )
  assert.equal(findings[0]!.detail, 'A, B, C, D, E and 7 more. A fix exists for 7, in use are 5.')
  const { oldestScanAt: _, ...counts } = vulnerabilities!
  assert.deepEqual(counts, {
    ...{ critical: 9, high: 0, medium: 3, low: 1, negligible: 1, unknown: 1, fixable: 7, inUse: 5 },
    ...{ tiers: { P0: 3, P1: 9, P2: 2, Background: 1 }, scannedDigests: 1 },
  })
})

test('the status: unknown while a running digest has no report, else by the findings', () => {
  const rows = [rowOf('a', '1'), rowOf('b', '2'), rowOf('c', '2')]
  const signatures = [signed('1', 'verified'), signed('2', 'verified')]
  const of = (vulnerabilities: VulnerabilityGroup[], images = ['1', '2'], more: Partial<ImageFacts> = {}) =>
    judge(rows, facts({ images, signatures, vulnerabilities, ...more }))
  const partial = of([group(CRITICAL, P0)], ['1'])
  assert.deepEqual([partial.status, partial.vulnerabilities, partial.coverage.level], ['unknown', null, 'partial'])
  assert.equal(partial.reasons[0]!.message, '1 of 2 running digests have no report of vulnerabilities')
  assert.ok(partial.ids.includes('images.vulnerabilities.critical'), 'what is known is shown all the same')
  assert.equal(of([group(CRITICAL, P0)]).status, 'risk')
  assert.equal(of([group(HIGH, P1)]).status, 'risk')
  assert.equal(of([group(HIGH, P2)]).status, 'warn')
  assert.equal(of([group(LOW, P2)]).status, 'ok')
  assert.equal(of([group(CRITICAL, BACKGROUND)]).status, 'ok')
  assert.equal(of([]).status, 'ok')
  assert.equal(of([], [], { signatures: [signed('2', 'invalid')] }).status, 'risk', 'also without a report')
})

test('the status: ok needs a verified signature of every running image, and a whole inventory', () => {
  const rows = [rowOf('a', '1'), rowOf('b', '2')]
  for (const verdict of ['unsigned', 'key_signed', 'unknown']) {
    const given = facts({ images: ['1', '2'], signatures: [signed('1', 'verified'), signed('2', verdict)] })
    assert.equal(judge(rows, given).status, 'unknown', verdict)
    assert.equal(judge(rows, { ...given, vulnerabilities: [group(MEDIUM, P2)] }).status, 'warn', verdict)
  }
  const whole = facts({ images: ['1', '2'], signatures: [signed('1', 'verified'), signed('2', 'verified')] })
  assert.equal(judge(rows, whole).status, 'ok')
  const cut = judge(rows, whole, { isTruncated: true })
  assert.deepEqual(
    [cut.status, cut.truncated, cut.coverage.level, cut.codes.at(-1)],
    ['unknown', true, 'partial', 'truncated'],
  )
  assert.equal(imageSignedOf(cut), null)
})

test('imageSigned: false for a known fault, null for a doubt, true if all are verified', () => {
  const of = (...verdicts: (string | null)[]) => {
    const rows = verdicts.map((_, n) => rowOf(`c${n}`, String(n)))
    const signatures = verdicts.flatMap((verdict, n) => (verdict === null ? [] : [signed(String(n), verdict)]))
    return imageSignedOf(judge(rows, facts({ signatures })))
  }
  assert.equal(of('verified', 'verified'), true)
  for (const verdict of ['invalid', 'unsigned', 'key_signed'])
    assert.equal(of('verified', verdict, null), false, verdict)
  for (const verdict of ['unknown', null]) assert.equal(of('verified', verdict), null)
  assert.equal(of(), null)
})

test('the snapshot has the running digests of containers that are not stale', () => {
  const [a, b] = [digestOf('a'), digestOf('b')].sort()
  const snapshot = imagesSnapshot([
    rowOf('app', 'b'),
    rowOf('app', 'a'),
    rowOf('app', 'old', { isRunning: false }),
    rowOf('__proto__', 'a', { isRunning: false, kind: 'init' }),
    staleOf('gone', 'a'),
  ])
  assert.equal(
    JSON.stringify(snapshot),
    JSON.stringify({ containers: { app: [a, b] } }).replace('}}', ',"__proto__":[]}}'),
  )
})

test('property: the merged verdict is the worst, and nothing unknown becomes verified', () => {
  const verdict = fc.constantFrom(...VERDICTS, null, 'odd', 'unnamed')
  fc.assert(
    fc.property(fc.array(verdict, { minLength: 1, maxLength: 8 }), fc.boolean(), (verdicts, isScanned) => {
      const rows = verdicts.map((_, n) => rowOf(`c${n}`, String(n)))
      const signatures = verdicts.flatMap((one, n) =>
        one === null
          ? []
          : [one === 'unnamed' ? signed(String(n), 'verified', { signers: [] }) : signed(String(n), one)],
      )
      const images = judge(rows, facts({ signatures, images: isScanned ? verdicts.map((_, n) => String(n)) : [] }))
      const effective = verdicts.map((one) => VERDICTS.find((known) => known === one) ?? 'unknown')
      const worst = VERDICTS.find((one) => effective.includes(one))!
      assert.equal(images.supplyChain!.verdict, worst)
      const isAllVerified = verdicts.every((one) => one === 'verified')
      assert.equal(imageSignedOf(images) === true, isAllVerified)
      assert.equal(images.status === 'ok', isAllVerified && isScanned)
      assert.equal(
        Object.values(images.supplyChain!.counts).reduce((sum, n) => sum + n),
        verdicts.length,
      )
    }),
    { numRuns: depth(100, 10_000) },
  )
})
