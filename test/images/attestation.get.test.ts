import assert from 'node:assert/strict'
import test from 'node:test'
import { VERDICTS } from '../../lib/attestations/entry.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { signature, statement, storeAttestation, unverified } from '../support/attestations.ts'
import { container, digestOf, newDigest, newNamespace, replica } from '../support/images.ts'
import { assertDatabaseBusy, assertNoData, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const unknown = digestOf('unknown')

const path = (digest: string) => `/images/${digest}/attestation`
const read = async (digest: string, target = app) => {
  const answer = await target.get(path(digest))
  assert.equal(answer.status, 200, answer.text)
  return answer
}

test('GET /images/{digest}/attestation 200: every key, in wire order; the lists byte for byte and with exact integers', async () => {
  const [digest, index] = [newDigest(), newDigest()]
  const pem = '-----BEGIN PUBLIC KEY-----\nMFkw"\\é\n-----END PUBLIC KEY-----'
  const row = await storeAttestation(app, digest, {
    repository: 'registry.test/team/"app"',
    verdict: 'verified',
    reason: 'timeout',
    trust_root: 'public-good',
    signed_via: 'index',
    signed_digest: index,
    signatures: [
      signature({
        tlogIndex: 9_223_372_036_854_775_807n,
        integratedTime: '2025-01-02T03:04:05Z',
        subject: index,
        keyHint: 'aGludA',
      }),
      signature({
        signerKind: 'key',
        issuer: undefined,
        san: undefined,
        keyName: 'release',
        keyFingerprint: 'ab'.repeat(32),
        keyPem: pem,
      }),
      unverified('bad_signature', { detail: 'no configured key matches' }),
    ],
    attestations: [
      statement({ tlogIndex: 9_007_199_254_740_993n }),
      { ...unverified('network'), predicateType: 'https://p.test/é' },
    ],
    checked_at: '2026-01-01T09:00:00.5',
  })
  const answer = await read(digest)
  const { receivedAt } = answer.json
  assert.equal(
    answer.text,
    `{"digest":"${digest}","repository":"registry.test/team/\\"app\\"","verdict":"verified","reason":"timeout","trustRoot":"public-good",` +
      `"signedVia":"index","signedDigest":"${index}","signatures":${row.signatures},"attestations":${row.attestations},` +
      `"checkedAt":"2026-01-01T09:00:00.500","receivedAt":"${receivedAt}"}`,
  )
  assert.ok(
    answer.text.includes('"tlogIndex":9223372036854775807') && answer.text.includes('"tlogIndex":9007199254740993'),
  )
  const [now] =
    await app.sql`select extract(epoch from now() at time zone 'utc' - ${receivedAt}::text::timestamp)::float8 as ago`
  assert.ok(now!.ago >= 0 && now!.ago < 600)
  assert.equal(answer.headers.get('content-type'), 'application/json')
})

test('GET /images/{digest}/attestation 200: unknown values are null, lists without entries are empty', async () => {
  const digest = newDigest()
  await storeAttestation(app, digest)
  const { receivedAt: _, checkedAt: __, ...result } = (await read(digest)).json
  assert.deepEqual(result, {
    digest,
    repository: 'registry.test/team/app',
    verdict: 'unsigned',
    reason: null,
    trustRoot: null,
    signedVia: null,
    signedDigest: null,
    signatures: [],
    attestations: [],
  })
})

test('GET /images/{digest}/attestation 200: every verdict, and always the newest result', async () => {
  const digest = newDigest()
  for (const verdict of VERDICTS) {
    await storeAttestation(app, digest, { verdict })
    assert.equal((await read(digest)).json.verdict, verdict)
  }
})

test('GET /images/{digest}/attestation 200: details stored by an older version are redacted again, and nothing else changes', async () => {
  const digest = newDigest()
  const secret = 'GET https://user:pw@registry.secret.test/v2 dial tcp 10.1.2.3:443 Bearer abcdefgh said \\"no\\"'
  const san = '"detail":"10.1.2.3", at 10.1.2.3'
  await storeAttestation(app, digest, {
    signatures: [unverified('network', { detail: secret }), signature({ san })],
    attestations: [{ ...unverified('network', { detail: secret }), predicateType: 'https://10.1.2.3/p' }],
  })
  const { text, json } = await read(digest)
  for (const detail of [json.signatures[0].detail, json.attestations[0].detail]) {
    assert.match(detail, /<url>/)
    assert.doesNotMatch(detail, /secret\.test|10\.1\.2\.3|abcdefgh|user|pw@/)
  }
  assert.equal(json.signatures[1].san, san)
  assert.equal(json.attestations[0].predicateType, 'https://10.1.2.3/p')
  assert.equal(text.includes('secret'), false)
})

test('GET /images/{digest}/attestation 200: product names of formats', async () => {
  const digest = newDigest()
  const san = '"format":"signer-legacy"'
  const lists = {
    signatures: [signature({ format: 'signer-legacy', san }), signature()],
    attestations: [statement({ format: 'signer-legacy' }), statement()],
  }
  for (const [target, legacy] of [
    [app, 'signer-legacy'],
    [products, 'cosign-legacy'],
  ] as const) {
    await storeAttestation(target, digest, lists)
    const { signatures, attestations } = (await read(digest, target)).json
    assert.deepEqual([signatures[0].format, signatures[1].format], [legacy, 'cosign-bundle'])
    assert.deepEqual([attestations[0].format, attestations[1].format, signatures[0].san], [legacy, 'bundle', san])
  }
})

test('GET /images/{digest}/attestation 200: a result stays when its image leaves the inventory', async () => {
  const digest = newDigest()
  await storeAttestation(app, digest)
  await app.sql`delete from image where digest = ${digest}`
  assert.equal((await read(digest)).json.verdict, 'unsigned')
})

test('GET /images/{digest}/attestation 200: a digest with an escaped colon, and one of sha512', async () => {
  const [digest, long] = [newDigest(), `sha512:${'0a'.repeat(64)}`]
  await storeAttestation(app, digest)
  await storeAttestation(app, long)
  assert.equal((await app.get(path(digest.replace(':', '%3A')))).json.digest, digest)
  assert.equal((await read(long)).json.digest, long)
})

test('GET /images/{digest}/attestation 404: no result, though the image runs', async () => {
  const digest = newDigest()
  assert.equal((await app.post('/pod/spec', replica(newNamespace(), [container('app', digest)]))).status, 200)
  for (const one of [unknown, digest]) assertNoData(await app.get(path(one)))
})

test('GET /images/{digest}/attestation 400: an invalid digest', async () => {
  for (const bad of [
    'latest',
    'sha256:abc',
    unknown.toUpperCase(),
    `${unknown}0`,
    `sha384:${'0'.repeat(96)}`,
    'a%00b',
  ]) {
    const answer = await app.get(path(bad))
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Path deserialize error: digest: expected sha256: and 64 /)
  }
})

test('GET /images/{digest}/attestation 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get(path(unknown)))
  assertUnauthorized(await guarded.get(path('latest'), { token: 'unknown' }))
})

test('GET /images/{digest}/attestation 404: any token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get(path(unknown), { token: one })).status, 404)
})

test('GET /images/{digest}/attestation 503: refused when the read budget is used up; 512 KiB', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - 511)
  assertShed(await guarded.get(path(unknown), { token }), 512, budget.totalKib)
  release()
  assert.equal((await guarded.get(path(unknown), { token })).status, 404)
})

test('GET /images/{digest}/attestation 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'image_attestation', async () =>
    assertDatabaseBusy(await guarded.get(path(unknown), { token })),
  )
})
