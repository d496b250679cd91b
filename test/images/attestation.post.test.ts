import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import test, { after } from 'node:test'
import { gzipSync } from 'node:zlib'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { listen } from '../../lib/http/server/listen.ts'
import { createTokens } from '../../lib/http/tokens.ts'
import { MemoryBudget } from '../../lib/limits/memory-budget.ts'
import {
  checkedAt,
  FINGERPRINT,
  type Fields,
  ISSUER,
  keySignature,
  knownImage,
  newImage,
  PAYLOAD_SHA256,
  PEM,
  resultOf,
  SAN,
  SLSA,
  signature,
  statement,
  unverified,
} from '../attestations/results.ts'
import { type Answer, startApp, TOKENS } from '../support/app.ts'
import { startLossyApp } from '../support/lossy.ts'
import {
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  whileLocked,
  whileRefused,
} from '../support/routes.ts'

const token = TOKENS.BROKER_TOKEN_SUPPLYCHAIN
const app = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '20000' })
const { sql } = app
const { server } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

const path = (digest: string) => `/images/${digest}/attestation`
const send = (digest: string, body: string | Uint8Array, headers: Record<string, string> = {}) =>
  app.request('POST', path(digest), { body, headers, token })
const post = (result: Fields, digest = result.digest as string) => send(digest, JSON.stringify(result))

async function assertAnswer(answer: Promise<Answer>, status: number, says: RegExp | '' = ''): Promise<Answer> {
  const got = await answer
  assert.equal(got.status, status, got.text)
  if (says === '') assert.equal(got.text, '')
  else assert.match(got.text, says)
  return got
}

interface Row {
  readonly [column: string]: unknown
}

const rowOf = async (digest: string): Promise<Row | undefined> =>
  (await sql<{ row: Row }[]>`select to_json(a) as row from image_attestation a where digest = ${digest}`)[0]?.row
const signaturesOf = async (digest: string): Promise<Row[]> => JSON.parse((await rowOf(digest))!.signatures as string)
const attestationsOf = async (digest: string): Promise<Row[]> =>
  JSON.parse((await rowOf(digest))!.attestations as string)

/** The refusal of a result; asserts that nothing was stored. */
async function assertRefused(digest: string, fields: Fields, status: number, says: RegExp): Promise<void> {
  await assertAnswer(post(resultOf(digest, fields), digest), status, says)
  assert.equal(await rowOf(digest), undefined)
}

// ---- Tokens

test('POST /images/{digest}/attestation 401: no token, or an unknown one', async () => {
  for (const one of [undefined, 'nobody'])
    assertUnauthorized(await app.post(path(newImage()), resultOf(newImage()), one ? { token: one } : {}))
})

test('POST /images/{digest}/attestation 403: a token of another scope, the shared one too, before a byte is read', async () => {
  for (const one of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assertForbidden(
      await app.request('POST', path('x'), { body: '{', headers: { 'content-encoding': 'br' }, token: one }),
      'supplychain',
    )
})

test('POST /images/{digest}/attestation 403: every client, while authentication is off or only the shared token is set', async () => {
  for (const env of [{}, { BROKER_AUTH_TOKEN: TOKENS.BROKER_AUTH_TOKEN }]) {
    const { authenticate } = createTokens(loadConfig(env))
    const open = createApp({ ...app.deps, authenticate }, routes)
    const headers = { authorization: `Bearer ${TOKENS.BROKER_AUTH_TOKEN}` }
    assert.equal((await open.request(path(newImage()), { method: 'POST', body: '{', headers })).status, 403)
  }
})

// ---- Stored fields

test('POST /images/{digest}/attestation 201: a result is stored completely, as answers hold it, with its summary for lists', async () => {
  const digest = await knownImage(sql)
  const index = newImage()
  const answer = await assertAnswer(
    post(
      resultOf(digest, {
        ...{
          trust_root: 'public-good',
          signed_via: 'index',
          signed_digest: index,
          checked_at: '2026-01-01T02:00:00.123456789+02:00',
        },
        signatures: [
          signature({
            integrated_time: '2025-01-02T03:04:05.5Z',
            tlog_index: 123_456_789,
            detail: 'fine',
            key_name: 'of a key',
            key_hint: 'h',
          }),
          keySignature({
            format: 'cosign-legacy',
            key_pem: `\n ${PEM}\r\n`,
            issuer: 'of a certificate',
            san: 'likewise',
            source: 'sig-tag',
          }),
          unverified('untrusted_root', {
            ...signature(),
            verified: false,
            error: 'untrusted_root',
            detail: 'at registry.test',
            subject: index,
          }),
        ],
        attestations: [
          statement({
            provenance: {
              builder_id: 'https://builder.test',
              build_type: 't',
              source_repo: 'r',
              source_commit: 'c',
              source_ref: 'refs/heads/main',
            },
          }),
          statement({
            verified: false,
            error: 'network',
            detail: 'dial tcp 10.0.0.1:443',
            provenance: { builder_id: 'b' },
          }),
          statement({ provenance: {}, payload_sha256: '' }),
        ],
      }),
    ),
    201,
  )
  assert.deepEqual([answer.headers.get('content-type'), answer.headers.get('content-length')], [null, '0'])
  const { post: id, received_at, ...row } = (await rowOf(digest))!
  assert.match(id as string, /^[\w-]{36}$/)
  assert.ok(Math.abs(Date.parse(`${received_at}Z`) - Date.now()) < 120_000)
  const keyless = `"signerKind":"keyless","issuer":"${ISSUER}","san":"${SAN}"`
  const first = `{"format":"cosign-bundle","source":"referrers","verified":true,`
  const key = `{"format":"signer-legacy","source":"sig-tag","verified":true,"signerKind":"key","keyName":"release","keyFingerprint":"${FINGERPRINT}","keyPem":${JSON.stringify(PEM.trim())}}`
  const rest = `${keyless},"keyHint":"h","integratedTime":"2025-01-02T03:04:05.500Z","tlogIndex":123456789}`
  const built =
    '"provenance":{"builderId":"https://builder.test","buildType":"t","sourceRepo":"r","sourceCommit":"c","sourceRef":"refs/heads/main"}'
  const stated = `{"format":"bundle","source":"referrers","verified":true,${keyless},"predicateType":"${SLSA}"`
  assert.deepEqual(row, {
    ...{
      digest,
      repository: 'registry.test/team/app',
      verdict: 'verified',
      reason: null,
      trust_root: 'public-good',
      signed_via: 'index',
    },
    ...{ signed_digest: index, checked_at: '2026-01-01T00:00:00.123456' },
    signatures: `[${first}"detail":"fine",${rest},${key},{"format":"cosign-bundle","source":"referrers","verified":false,"error":"untrusted_root","detail":"at <host>","subject":"${index}"}]`,
    verified_signatures: `[${first}${rest},${key}]`,
    attestations: `[${stated},"payloadSha256":"${PAYLOAD_SHA256}",${built}},{"format":"bundle","source":"referrers","verified":false,"error":"network","detail":"dial tcp <host>","predicateType":"${SLSA}","payloadSha256":"${PAYLOAD_SHA256}"},${stated}}]`,
    verified_attestations: `[${stated},${built}},${stated}}]`,
    signers: `[{"kind":"keyless","issuer":"${ISSUER}","san":"${SAN}"},{"kind":"key","keyName":"release","keyFingerprint":"${FINGERPRINT}"}]`,
    verified_predicates: `["${SLSA}"]`,
  })
})

test('POST /images/{digest}/attestation 201: empty texts and null lists are absent, unknown keys are ignored, times may have another zone', async () => {
  const digest = await knownImage(sql)
  const none = {
    reason: '',
    trust_root: null,
    signed_via: '',
    signed_digest: '',
    checked_at: '0001-01-01T00:00:00Z',
    signer_kind: 'magic',
  }
  await assertAnswer(
    post(resultOf(digest, { ...none, verdict: 'unsigned', signatures: null, attestations: null, extra: [{ a: [1] }] })),
    201,
  )
  const { reason, trust_root, signed_via, signed_digest, signatures, attestations, checked_at, signers } = (await rowOf(
    digest,
  ))!
  assert.deepEqual([reason, trust_root, signed_via, signed_digest], [null, null, null, null])
  assert.deepEqual([signatures, attestations, signers, checked_at], ['[]', '[]', '[]', '0001-01-01T00:00:00'])
  const empty = {
    source: '',
    error: '',
    detail: ' ',
    subject: '',
    key_name: '',
    key_hint: '',
    integrated_time: null,
    tlog_index: null,
  }
  await assertAnswer(post(resultOf(digest, { signatures: [signature({ ...empty, signer_kind: '' })] })), 201)
  assert.equal(
    (await rowOf(digest))!.signatures,
    `[{"format":"cosign-bundle","verified":true,"signerKind":"keyless","issuer":"${ISSUER}","san":"${SAN}"}]`,
  )
})

test('POST /images/{digest}/attestation 201: an empty text is absent in every optional field of any type', async () => {
  const digest = await knownImage(sql)
  const empty = { verified: '', integrated_time: '', tlog_index: '', key_pem: '', issuer: '', san: '' }
  const entry = { ...unverified('network'), ...empty }
  await assertAnswer(
    post(
      resultOf(digest, {
        ...{ verdict: 'unknown', reason: 'network', signatures: [entry] },
        attestations: [{ ...entry, predicate_type: SLSA, payload_sha256: '', provenance: ' ' }],
      }),
    ),
    201,
  )
  const [one] = await signaturesOf(digest)
  assert.deepEqual(
    [one!.verified, one!.error, one!.integratedTime, one!.tlogIndex],
    [false, 'network', undefined, undefined],
  )
  assert.equal((await attestationsOf(digest))[0]!.provenance, undefined)
})

test('POST /images/{digest}/attestation 201: an unreadable time is absent and counted', async () => {
  const digest = await knownImage(sql)
  const counted = async () =>
    (await app.deps.metrics.unreadableTimes.get()).values.find((v) => v.labels.kind === 'attestation')?.value ?? 0
  const before = await counted()
  await assertAnswer(
    post(
      resultOf(digest, {
        signatures: [
          signature({ integrated_time: '2025-01-02T03:04:05' }),
          signature({ integrated_time: 'yesterday', tlog_index: 7 }),
        ],
      }),
    ),
    201,
  )
  assert.deepEqual(
    (await signaturesOf(digest)).map((one) => [one.integratedTime, one.tlogIndex]),
    [
      [undefined, undefined],
      [undefined, 7],
    ],
  )
  assert.equal((await counted()) - before, 2)
})

test('POST /images/{digest}/attestation 201: the index in the transparency log stays exact', async () => {
  const digits = [
    '0',
    '9007199254740991',
    '9007199254740992',
    '9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
    '1e3',
  ]
  const digest = await knownImage(sql)
  const entry = (tlog: string) => JSON.stringify(signature({ tlog_index: '@' })).replace('"@"', tlog)
  const body = (list: string[]) =>
    JSON.stringify(resultOf(digest, { signatures: '@' })).replace('"@"', `[${list.map(entry).join(',')}]`)
  await assertAnswer(send(digest, body(digits)), 201)
  const { signatures, verified_signatures } = (await rowOf(digest))!
  for (const stored of [signatures, verified_signatures] as string[])
    assert.deepEqual(
      [...stored.matchAll(/"tlogIndex":([^}]+)/g)].map(([, one]) => one),
      [...digits.slice(0, -1), '1000'],
    )
  await assertAnswer(send(digest, body(digits)), 200)
  await assertAnswer(send(digest, body(['9007199254740992', ...digits.slice(1)])), 409, /^Another result/)
  for (const bad of [
    '9223372036854775808',
    '-9223372036854775809',
    '1.5',
    '1e300',
    '1e17',
    '"1"',
    '9'.repeat(1_000),
    'true',
    '{}',
  ])
    await assertAnswer(
      send(digest, body(['1', bad])),
      400,
      /^Json deserialize error: signatures\[1\]\.tlog_index: .*expected int64$/,
    )
})

test('POST /images/{digest}/attestation 201: every verdict that signatures can give', async () => {
  const accepted: [string, string | undefined, Fields[]][] = [
    ['verified', undefined, [unverified('network'), signature(), unverified('bad_signature')]],
    ['key_signed', 'untrusted_key', [unverified('untrusted_key')]],
    ['unsigned', undefined, []],
    ['invalid', 'bad_signature', [unverified('network'), unverified('bad_signature')]],
    ['invalid', 'malformed', [unverified('some_new_code')]],
    ['unknown', 'registry_auth', []],
    ['unknown', 'timeout', [unverified('untrusted_key'), unverified('another_new_code')]],
  ]
  for (const [verdict, reason, signatures] of accepted) {
    const digest = await knownImage(sql)
    await assertAnswer(post(resultOf(digest, { verdict, reason, signatures })), 201)
    const row = (await rowOf(digest))!
    assert.deepEqual([row.verdict, row.reason], [verdict, reason ?? null])
  }
})

test('POST /images/{digest}/attestation 201: a verified entry without a signer is stored as unverified, and the verdict is derived again', async () => {
  const anonymous: Fields[] = [
    signature({ issuer: undefined }),
    signature({ san: ' ' }),
    signature({ signer_kind: undefined, issuer: null, san: null, key_fingerprint: FINGERPRINT }),
    keySignature({ key_fingerprint: '\u3000', issuer: ISSUER, san: SAN }),
  ]
  const cases: [Fields[], string, string][] = [
    [[], 'unknown', 'no_signer_identity'],
    [[unverified('network')], 'unknown', 'no_signer_identity'],
    [[unverified('a_new_code')], 'unknown', 'no_signer_identity'],
    [[unverified('untrusted_key')], 'key_signed', 'untrusted_key'],
    [
      [unverified('untrusted_key'), unverified('digest_mismatch'), unverified('bad_signature')],
      'invalid',
      'digest_mismatch',
    ],
  ]
  for (const one of anonymous)
    for (const [others, verdict, reason] of cases) {
      const digest = await knownImage(sql)
      const nobody = statement({ ...one, predicate_type: SLSA, provenance: { builder_id: 'b' }, error: 'network' })
      await assertAnswer(post(resultOf(digest, { signatures: [one, ...others], attestations: [nobody] })), 201)
      const row = (await rowOf(digest))!
      assert.deepEqual([row.verdict, row.reason, row.signers, row.verified_predicates], [verdict, reason, '[]', '[]'])
      for (const entry of [(await signaturesOf(digest))[0]!, (await attestationsOf(digest))[0]!]) {
        const { verified, error, detail } = entry
        assert.deepEqual(
          [verified, error, detail],
          [false, 'no_signer_identity', 'sent as verified without naming its signer'],
        )
        for (const key of ['signerKind', 'issuer', 'san', 'keyName', 'keyFingerprint', 'keyPem', 'provenance'])
          assert.ok(!(key in entry), key)
      }
    }
  // A remaining verified signature keeps the verdict; a verdict other than `verified` stays too.
  for (const fields of [
    { signatures: [anonymous[0], signature()] },
    { verdict: 'unknown', reason: 'timeout', signatures: [anonymous[0]] },
  ]) {
    const digest = await knownImage(sql)
    await assertAnswer(post(resultOf(digest, fields)), 201)
    assert.equal((await rowOf(digest))!.verdict, 'verdict' in fields ? 'unknown' : 'verified')
  }
})

test('POST /images/{digest}/attestation 201: one verified signature among 31 others, and one verified attestation among 63', async () => {
  const digest = await knownImage(sql)
  const junk = (count: number, fields: Fields = {}) =>
    Array.from({ length: count }, (_, i) => unverified(i % 2 ? 'malformed' : 'untrusted_root', fields))
  await assertAnswer(
    post(
      resultOf(digest, {
        signatures: [...junk(31), signature()],
        attestations: [...junk(63, { predicate_type: 'junk' }), statement()],
      }),
    ),
    201,
  )
  const { verdict, verified_predicates } = (await rowOf(digest))!
  assert.deepEqual([verdict, verified_predicates], ['verified', `["${SLSA}"]`])
  assert.deepEqual([(await signaturesOf(digest)).length, (await attestationsOf(digest)).length], [32, 64])
})

test('POST /images/{digest}/attestation 201: unknown reason codes are stored as one code, counted, and the first 64 logged once', async () => {
  const count = async () =>
    Number(/^svc_attestation_unrecognised_reason_total (\d+)$/m.exec((await app.get('/metrics')).text)![1])
  const start = await count()
  const digest = await knownImage(sql)
  const unknown = (digest: string, fields: Fields = {}) =>
    resultOf(digest, { verdict: 'unknown', signatures: [], ...fields })
  await assertAnswer(
    post(
      unknown(digest, {
        ...{ reason: 'code-1', signatures: [unverified('code-1'), unverified('code-2')] },
        attestations: [statement({ verified: false, error: 'code-2' }), statement({ error: 'code.3' })],
      }),
    ),
    201,
  )
  assert.equal(await count(), start + 5)
  assert.equal((await rowOf(digest))!.reason, 'unrecognised_reason')
  assert.deepEqual(
    [...(await signaturesOf(digest)), ...(await attestationsOf(digest))].map(({ error }) => error),
    Array(4).fill('unrecognised_reason'),
  )
  // Refused results count nothing; valid results that are not stored count.
  await assertAnswer(post({ ...unknown(digest, { reason: 'refused' }), verdict: 'verified' }), 422, /^verdict: /)
  await assertAnswer(post(unknown(digest, { reason: 'timeout' })), 409, /./)
  assert.equal(await count(), start + 5)
  await assertAnswer(post(unknown(newImage(), { reason: 'code-1' })), 404, /./)
  assert.equal(await count(), start + 6)
  for (let i = 4; i < 70; i++) await assertAnswer(post(unknown(newImage(), { reason: `code-${i}` })), 404, /./)
  const logged = app.logged.flatMap(({ msg, reason }) =>
    msg === 'a reason code of an attestation result is not known' ? [reason as string] : [],
  )
  assert.equal(new Set(logged).size, logged.length)
  assert.ok(!logged.includes('refused'))
  for (const code of ['code-1', 'code-2', 'code.3']) assert.ok(logged.includes(code), code)
  assert.equal(logged.length, 64)
})

test('POST /images/{digest}/attestation 201: the signer of a verified entry is stored whole up to its limits, other texts are cut', async () => {
  const digest = await knownImage(sql)
  const wide = 'é'.repeat(512)
  const provenance = {
    builder_id: wide,
    build_type: `x${wide}`,
    source_repo: wide,
    source_ref: wide,
    source_commit: 'c'.repeat(128),
  }
  const long = 'é'.repeat(1_000)
  const loose = { format: long, source: `x${long}`, subject: long, key_hint: long, detail: `${'word '.repeat(52)}é` }
  await assertAnswer(
    post(
      resultOf(digest, {
        signatures: [
          signature({ issuer: wide, san: wide, ...loose }),
          keySignature({ key_name: 'k'.repeat(128), key_fingerprint: 'f'.repeat(64), key_pem: pem(4_096) }),
          unverified('network', {
            issuer: long.repeat(2),
            key_pem: 'hello',
            key_fingerprint: long,
            signer_kind: 'key',
            detail: 'x'.repeat(300),
          }),
        ],
        attestations: [
          statement({ issuer: wide, san: wide, provenance, predicate_type: `x${long}`, payload_sha256: `x${long}` }),
          statement({ verified: false, provenance: { builder_id: long }, predicate_type: '' }),
        ],
      }),
    ),
    201,
  )
  const [keyless, key, bad] = await signaturesOf(digest)
  assert.deepEqual(
    [keyless!.issuer, keyless!.san, keyless!.format, keyless!.source],
    [wide, wide, 'é'.repeat(64), `x${'é'.repeat(63)}`],
  )
  assert.deepEqual(
    [keyless!.subject, keyless!.keyHint, keyless!.detail],
    ['é'.repeat(96), 'é'.repeat(64), 'word '.repeat(52).slice(0, 256).trim()],
  )
  assert.deepEqual([key!.keyName, key!.keyFingerprint, key!.keyPem], ['k'.repeat(128), 'f'.repeat(64), pem(4_096)])
  assert.deepEqual(bad, { format: 'cosign-bundle', verified: false, error: 'network', detail: 'x'.repeat(256) })
  const [stated] = await attestationsOf(digest)
  assert.deepEqual([stated!.predicateType, stated!.payloadSha256], [`x${'é'.repeat(511)}`, `x${'é'.repeat(31)}`])
  assert.deepEqual(stated!.provenance, {
    ...{
      builderId: wide,
      buildType: `x${'é'.repeat(511)}`,
      sourceRepo: wide,
      sourceCommit: 'c'.repeat(128),
      sourceRef: wide,
    },
  })
})

const pem = (bytes: number) => {
  const [begin, end] = ['-----BEGIN PUBLIC KEY-----\n', '\n-----END PUBLIC KEY-----']
  return begin + 'A'.repeat(bytes - begin.length - end.length) + end
}

test('POST /images/{digest}/attestation 201: lists show 8 distinct signers and 16 predicates, in 256 bytes each', async () => {
  const digest = await knownImage(sql)
  const san = `https://ci.test/${'é'.repeat(300)}`
  const signatures = [
    ...[0, 1].map((i) => signature({ san: san + i, tlog_index: i })),
    ...Array.from({ length: 9 }, (_, i) => signature({ san: `https://ci.test/${i}` })),
    unverified('network'),
  ]
  const attestations = Array.from({ length: 40 }, (_, i) =>
    statement({ predicate_type: `${'p'.repeat(i < 2 ? 256 : 200)}${i >> 1}` }),
  )
  await assertAnswer(post(resultOf(digest, { signatures, attestations })), 201)
  const { signers, verified_predicates, verified_signatures, verified_attestations } = (await rowOf(digest)) as Record<
    string,
    string
  >
  assert.deepEqual(
    JSON.parse(signers!).map(({ san }: Row) => san),
    [`https://ci.test/${'é'.repeat(120)}`, ...Array.from({ length: 7 }, (_, i) => `https://ci.test/${i}`)],
  )
  const predicates = JSON.parse(verified_predicates!)
  assert.deepEqual([predicates.length, new Set(predicates).size, predicates[0]], [16, 16, 'p'.repeat(256)])
  assert.deepEqual([JSON.parse(verified_signatures!).length, JSON.parse(verified_attestations!).length], [11, 40])
  assert.equal(JSON.parse(verified_signatures!)[1].san, `${san}1`)
})

// ---- Repeated results

test('POST /images/{digest}/attestation 200: the same result, whenever it was checked; 201 for a strictly newer one, 409 for another', async () => {
  const digest = await knownImage(sql)
  const at = (seconds: number, fields: Fields = {}) =>
    post(resultOf(digest, { checked_at: checkedAt(seconds), ...fields }))
  await assertAnswer(at(10), 201)
  const stored = await rowOf(digest)
  for (const seconds of [10, 5]) {
    const answer = await assertAnswer(at(seconds), 200)
    assert.deepEqual([answer.headers.get('content-type'), answer.headers.get('content-length')], [null, '0'])
  }
  for (const seconds of [10, 9])
    await assertAnswer(at(seconds, { verdict: 'unsigned', signatures: [] }), 409, /^Another result is stored/)
  // Digits beyond microseconds are ignored.
  await assertAnswer(at(0, { checked_at: checkedAt(10).replace('.000Z', '.000000999Z') }), 200)
  assert.deepEqual(await rowOf(digest), stored)
  await assertAnswer(at(0, { checked_at: checkedAt(10).replace('.000Z', '.000001Z') }), 201)
  await assertAnswer(at(11, { verdict: 'unsigned', signatures: [] }), 201)
  assert.equal((await rowOf(digest))!.verdict, 'unsigned')
})

test('POST /images/{digest}/attestation 201: nothing of a replaced result remains', async () => {
  const [digest, twin] = [await knownImage(sql), await knownImage(sql)]
  await assertAnswer(
    post(resultOf(digest, { trust_root: 'a', signed_via: 'self', signed_digest: digest, attestations: [statement()] })),
    201,
  )
  await sql`update image_attestation set received_at = received_at - interval '1 day' where digest = ${digest}`
  const next = {
    checked_at: checkedAt(1),
    repository: 'other',
    verdict: 'invalid',
    reason: 'malformed',
    signatures: [unverified('malformed')],
  }
  for (const image of [digest, twin]) await assertAnswer(post(resultOf(image, next)), 201)
  const [{ post: replaced, received_at: at, ...row }, { post: _, received_at: now, ...fresh }] = [
    (await rowOf(digest))!,
    (await rowOf(twin))!,
  ]
  assert.deepEqual({ ...row, digest: twin }, fresh)
  assert.notEqual(replaced, undefined)
  assert.ok(Math.abs(Date.parse(`${at}Z`) - Date.parse(`${now}Z`)) < 3_600_000, 'it was received now')
})

test('POST /images/{digest}/attestation 409: a difference in any compared part is another result', async () => {
  const digest = await knownImage(sql)
  const result = resultOf(digest, {
    trust_root: 'public-good',
    signed_via: 'self',
    signed_digest: digest,
    attestations: [statement()],
  })
  await assertAnswer(post(result), 201)
  const others: Fields[] = [
    { repository: 'registry.test/team/other' },
    { trust_root: 'custom:0123456789ab' },
    { trust_root: undefined },
    { signed_via: 'index' },
    { signed_digest: newImage() },
    { reason: 'timeout' },
    { attestations: [] },
    { attestations: [statement({ payload_sha256: 'ee' })] },
    { signatures: [signature(), signature()] },
    { verdict: 'unknown', signatures: [] },
  ]
  for (const fields of others) await assertAnswer(post({ ...result, ...fields }), 409, /^Another result/)
  await assertAnswer(post(result), 200)
})

test('POST /images/{digest}/attestation 404: an image that is not in the inventory', async () => {
  const digest = newImage()
  await assertAnswer(post(resultOf(digest)), 404, /^The image is not in the inventory\.$/)
  assert.equal(await rowOf(digest), undefined)
})

test('POST /images/{digest}/attestation 200: a key with other line ends is the same key', async () => {
  const digest = await knownImage(sql)
  const of = (key_pem: string) => post(resultOf(digest, { signatures: [keySignature({ key_pem })] }))
  assert.equal((await of(PEM.replaceAll('\n', '\r\n'))).status, 201)
  assert.equal((await of(PEM)).status, 200)
})

test('POST /images/{digest}/attestation 200: a digest of either algorithm, also with an escaped colon', async () => {
  const digest = `sha512:${'a'.repeat(128)}`
  await sql`insert into image values (${digest}, null, '{}', 'repo', now(), now())`
  await assertAnswer(post(resultOf(digest)), 201)
  await assertAnswer(post(resultOf(digest), digest.replace(':', '%3A')), 200)
})

// ---- Body

test('POST /images/{digest}/attestation 415: any content coding; 201 without one, whatever the content type', async () => {
  const digest = await knownImage(sql)
  const text = JSON.stringify(resultOf(digest))
  for (const coding of ['gzip', 'x-gzip', 'br', 'identity, gzip']) {
    const answer = await assertAnswer(
      send(digest, gzipSync(text), { 'content-encoding': coding }),
      415,
      new RegExp(`^content-encoding ${coding} is not known: expected identity$`),
    )
    assert.equal(answer.headers.get('accept-encoding'), 'identity')
  }
  await assertAnswer(send(digest, text, { 'content-type': 'text/plain' }), 201)
  for (const coding of ['', 'identity', ' Identity '])
    await assertAnswer(send(digest, text, { 'content-encoding': coding }), 200)
})

const filled = (digest: string, bytes: number, fields: Fields = {}) => {
  const text = JSON.stringify(resultOf(digest, { ...fields, filler: '' }))
  return text.replace('"filler":""', `"filler":"${'x'.repeat(bytes - text.length)}"`)
}

test('POST /images/{digest}/attestation 413: more than 256 KiB, 32 signatures or 64 attestations, before any entry is checked', async () => {
  const digest = await knownImage(sql)
  await assertAnswer(send(digest, filled(digest, 262_145)), 413, /^body is larger than 262144 bytes$/)
  for (const [list, max] of [
    ['signatures', 32],
    ['attestations', 64],
  ] as const) {
    const says = new RegExp(`^body has more than ${max} ${list}$`)
    await assertRefused(digest, { schema_version: 'x', [list]: Array(max + 1).fill(null) }, 413, says)
    await assertRefused(
      digest,
      { [list]: Array(max).fill(null) },
      400,
      new RegExp(`^Json deserialize error: ${list}\\[0\\]: `),
    )
  }
  const dense = [
    '[0,0,...]',
    `[${'0,'.repeat(130_000)}0]`,
    `[${'{},'.repeat(80_000)}{}]`,
    `{${'"a":0,'.repeat(40_000)}"b":0}`,
  ]
  for (const list of dense.slice(1))
    await assertAnswer(send(digest, `{"signatures":${list}}`), 413, /^body has more than 16384 keys and values$/)
  await assertAnswer(send(digest, filled(digest, 262_144)), 201)
})

test('POST /images/{digest}/attestation 400: malformed JSON or a wrong type, naming the first field', async () => {
  const digest = await knownImage(sql)
  const text = JSON.stringify(resultOf(digest))
  const broken: [string | Uint8Array, string][] = [
    ['', 'invalid JSON: unexpected end'],
    [text.slice(0, -1), 'invalid JSON: at position'],
    [`${text}x`, 'invalid JSON: at position'],
    [`${text}{}`, 'invalid JSON: at position'],
    [`\ufeff${text}`, 'invalid JSON$'],
    ...['[]', 'null', '7', '"x"'].map((one): [string, string] => [one, 'expected an object']),
    [Buffer.from([0x7b, 0xff, 0x7d]), 'the body is not UTF-8'],
    ['['.repeat(262_144), 'nested deeper than 64 levels'],
    [text.replace('{', `{"x":-0.${'1'.repeat(1_001)},`), 'a number of more than 1000 digits'],
    ['{"a":'.repeat(65), 'nested deeper than 64 levels'],
    [text.replace('{', '{"verdict":"unknown",'), '"verdict" is there twice'],
    [text.replace('"verified":true', '"verified":true,"verified":false'), '"verified" is there twice'],
    [text.replace('{', '{"x":{"a":1,"\\u0061":2},'), '"a" is there twice'],
  ]
  for (const [body, says] of broken)
    await assertAnswer(send(digest, body), 400, new RegExp(`^Json deserialize error: ${says}`))
  const typed: [Fields, string][] = [
    ...['schema_version', 'digest', 'repository', 'checked_at', 'verdict'].map((key): [Fields, string] => [
      { [key]: undefined },
      key,
    ]),
    [{ schema_version: '1' }, 'schema_version'],
    [{ schema_version: 1.5 }, 'schema_version'],
    [{ verdict: 3 }, 'verdict'],
    [{ reason: {} }, 'reason'],
    [{ signatures: {} }, 'signatures'],
    [{ signatures: ['x'] }, 'signatures\\[0\\]'],
    [{ signatures: [signature(), signature({ verified: 'yes' })] }, 'signatures\\[1\\]\\.verified'],
    [{ signatures: [{ verified: true }] }, 'signatures\\[0\\]\\.format'],
    [{ signatures: [signature({ integrated_time: 7 })] }, 'signatures\\[0\\]\\.integrated_time'],
    [{ attestations: [signature()] }, 'attestations\\[0\\]\\.predicate_type'],
    [{ attestations: [statement({ provenance: 'x' })] }, 'attestations\\[0\\]\\.provenance'],
    [{ attestations: [statement({ provenance: { builder_id: 1 } })] }, 'attestations\\[0\\]\\.provenance\\.builder_id'],
    ...[
      'now',
      '2025-01-02T03:04:05',
      '2025-02-30T00:00:00Z',
      '0001-01-01T00:00:00+01:00',
      '2025-01-02T03:04:05.1234567890Z',
    ].map((checked_at): [Fields, string] => [{ checked_at }, 'checked_at']),
  ]
  // Types are checked before the contract.
  for (const [fields, field] of typed)
    await assertRefused(
      digest,
      { repository: '\n', schema_version: 2, ...fields },
      400,
      new RegExp(`^Json deserialize error: ${field}: `),
    )
})

test('POST /images/{digest}/attestation 400: an invalid digest', async () => {
  for (const bad of ['sha256:12', `sha256:${'A'.repeat(64)}`, `sha1:${'a'.repeat(40)}`, 'v1'])
    await assertAnswer(post(resultOf(bad), bad), 400, /^Path deserialize error: digest: /)
})

const FORBIDDEN = [
  '\0',
  '\n',
  '\u001b',
  '\u007f',
  '\u0085',
  '\u2028',
  '\u2029',
  '\u200e',
  '\u200f',
  '\u202a',
  '\u202e',
  '\u2066',
  '\u2069',
  '\ufeff',
  '\ud800',
  '\udc00',
]

test('POST /images/{digest}/attestation 422: control, line-break and bidi characters in any text, by its path', async () => {
  const digest = await knownImage(sql)
  for (const c of FORBIDDEN)
    await assertRefused(
      digest,
      { signatures: [signature(), signature({ san: `a${c}` })] },
      422,
      /^signatures\[1\]\.san: /,
    )
  const at = (list: string, key: string, value: unknown): Fields => ({
    [list]: [list === 'signatures' ? signature({ [key]: value }) : statement({ [key]: value })],
  })
  for (const key of ['repository', 'verdict', 'reason', 'trust_root', 'signed_via', 'signed_digest', 'digest'])
    await assertRefused(digest, { [key]: 'a\u202eb' }, 422, new RegExp(`^${key}: a control`))
  const keys = [
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
  ]
  for (const list of ['signatures', 'attestations'])
    for (const key of keys)
      await assertRefused(digest, at(list, key, '\u0085'), 422, new RegExp(`^${list}\\[0\\]\\.${key}: a control`))
  for (const key of ['predicate_type', 'payload_sha256'])
    await assertRefused(digest, at('attestations', key, '\ufeff'), 422, new RegExp(`^attestations\\[0\\]\\.${key}: `))
  for (const key of ['builder_id', 'build_type', 'source_repo', 'source_commit', 'source_ref']) {
    const says = new RegExp(`^attestations\\[0\\]\\.provenance\\.${key}: a control`)
    await assertRefused(digest, at('attestations', 'provenance', { [key]: 'a\u2028' }), 422, says)
  }
  for (const c of ['\0', '\ud800'])
    await assertRefused(
      digest,
      { signatures: [unverified('network', { key_pem: c }), signature()] },
      422,
      /^signatures\[0\]\.key_pem: /,
    )
  // Unknown keys may contain anything, and not every invisible character is forbidden.
  await assertAnswer(
    post(resultOf(digest, { x: '\0\ud800', signatures: [signature({ san: '\u200b\u{1f600}\uffff', x: '\n' })] })),
    201,
  )
  assert.equal((await signaturesOf(digest))[0]!.san, '\u200b\u{1f600}\uffff')
})

test('POST /images/{digest}/attestation 422: broken rules, in the order of the checks', async () => {
  const digest = await knownImage(sql)
  const ahead = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()
  const unknown = { verdict: 'unknown', signatures: [] }
  const long = 'x'.repeat(1_025)
  /** Each rule precedes those below it. */
  const rules: [Fields, RegExp][] = [
    [{ signed_via: '\n' }, /^signed_via: a control/],
    [{ schema_version: 2 }, /^schema_version: /],
    [{ digest: newImage() }, /^digest: /],
    [{ verdict: 'trusted' }, /^verdict: expected one of /],
    [{ checked_at: ahead(120) }, /^checked_at: more than 60 seconds ahead$/],
    [{ repository: long }, /^repository: longer than 1024 bytes$/],
    [{ reason: 'No' }, /^reason: expected \[a-z0-9_:\.-\]\{1,128\}$/],
    [{ attestations: [statement({ error: 'No' })] }, /^attestations\[0\]\.error: expected /],
    [{ trust_root: 'My Root' }, /^trust_root: /],
    [{ signed_via: 'The Index' }, /^signed_via: /],
    [{ signed_digest: 'sha256:short' }, /^signed_digest: /],
    [{ signatures: [signature({ signer_kind: 'Key' })] }, /^signatures\[0\]\.signer_kind: /],
    [
      { signatures: [keySignature({ key_name: 'x'.repeat(129) })] },
      /^signatures\[0\]\.key_name: longer than 128 bytes$/,
    ],
    [{ verdict: 'unsigned' }, /^verdict: there are signatures$/],
  ]
  for (const [i, [fields, says]] of rules.entries()) {
    await assertRefused(digest, fields, 422, says)
    for (const [later] of rules.slice(i + 1)) await assertRefused(digest, { ...later, ...fields }, 422, says)
  }
  await assertRefused(digest, { repository: '' }, 422, /^repository: empty$/)
  await assertRefused(digest, { repository: 'é'.repeat(513) }, 422, /^repository: /)
  for (const reason of ['Not A Code', 'UPPER', 'ünknown', 'x'.repeat(129)])
    await assertRefused(digest, { ...unknown, reason }, 422, /^reason: /)
  await assertRefused(digest, { ...unknown, signatures: [unverified('Bad Code')] }, 422, /^signatures\[0\]\.error: /)
  await assertRefused(
    digest,
    { attestations: [statement({ verified: false, signer_kind: 'magic' })] },
    422,
    /^attestations\[0\]\.signer_kind: /,
  )
  await assertAnswer(
    post({ ...resultOf(digest), repository: 'r'.repeat(1_024), checked_at: ahead(60), reason: 'x'.repeat(128) }),
    201,
  )
})

test('POST /images/{digest}/attestation 422: a name of a verified signer or build over its limit', async () => {
  const digest = await knownImage(sql)
  const over: [string, Fields, number][] = [
    ...['issuer', 'san'].map((key): [string, Fields, number] => [key, signature({ [key]: 'é'.repeat(513) }), 1_024]),
    ['key_name', keySignature({ key_name: 'k'.repeat(129) }), 128],
    ['key_fingerprint', keySignature({ key_fingerprint: 'f'.repeat(65) }), 64],
    ['key_pem', keySignature({ key_pem: pem(4_097) }), 4_096],
  ]
  for (const [key, entry, max] of over)
    await assertRefused(
      digest,
      { signatures: [signature(), entry] },
      422,
      new RegExp(`^signatures\\[1\\]\\.${key}: longer than ${max} bytes$`),
    )
  for (const [key, max] of [
    ['builder_id', 1_024],
    ['source_repo', 1_024],
    ['source_ref', 1_024],
    ['source_commit', 128],
  ] as const) {
    const provenance = { [key]: 'p'.repeat(max + 1) }
    const says = new RegExp(`^attestations\\[0\\]\\.provenance\\.${key}: longer than ${max} bytes$`)
    await assertRefused(digest, { attestations: [statement({ provenance })] }, 422, says)
  }
})

test('POST /images/{digest}/attestation 422: a key_pem that is no public key in PEM', async () => {
  const digest = await knownImage(sql)
  const [begin, end] = ['-----BEGIN PUBLIC KEY-----', '-----END PUBLIC KEY-----']
  const bad = [
    ...[
      'hello',
      `${begin}\nabc`,
      `abc\n${end}`,
      begin + end,
      `${begin}\nab-c\n${end}`,
      `${begin}\na b\n${end}`,
      `x${PEM}`,
    ],
    ...[
      `${PEM}\n${PEM}`,
      PEM.replaceAll('PUBLIC', 'PRIVATE'),
      `${begin}\nabc\u2028\n${end}`,
      `${begin}\n${end}\n${begin}\nabc\n${end}`,
    ],
  ]
  for (const key_pem of bad)
    await assertRefused(
      digest,
      { signatures: [keySignature({ key_pem })] },
      422,
      /^signatures\[0\]\.key_pem: expected a public key in PEM$/,
    )
})

test('POST /images/{digest}/attestation 422: a verdict that contradicts its signatures', async () => {
  const digest = await knownImage(sql)
  const refused: [string, Fields[]][] = [
    ['verified', []],
    ['verified', [unverified('network')]],
    ['unsigned', [signature()]],
    ['unsigned', [unverified('network')]],
    ['invalid', []],
    ['invalid', [signature(), unverified('bad_signature')]],
    ['invalid', [unverified('untrusted_key')]],
    ['key_signed', []],
    ['key_signed', [signature()]],
    ['key_signed', [unverified('network')]],
    ['key_signed', [unverified('untrusted_key'), unverified('bad_signature')]],
    ['unknown', [signature()]],
    ...['bad_signature', 'digest_mismatch', 'malformed'].map((error): [string, Fields[]] => [
      'unknown',
      [unverified(error)],
    ]),
  ]
  for (const [verdict, signatures] of refused)
    await assertRefused(
      digest,
      { verdict, signatures, attestations: [statement(), unverified('untrusted_key', { predicate_type: 'p' })] },
      422,
      /^verdict: /,
    )
})

// ---- Slow senders, over a socket

const head = (digest: string, headers: string) =>
  `POST ${path(digest)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n${headers}\r\n`

/** Sends a request without a timer, since the timers of this test are mocked. */
async function spin(until: () => boolean): Promise<void> {
  for (const limit = Date.now() + 60_000; !until(); await new Promise((resolve) => setImmediate(resolve)))
    assert.ok(Date.now() < limit, 'not within 60 s')
}

test('POST /images/{digest}/attestation 413: a body that is announced as too large, before it is sent; one that turns out to be', async () => {
  for (const sent of ['content-length: 262145\r\n', 'transfer-encoding: chunked\r\n']) {
    const socket = connect(port, '127.0.0.1')
    socket.write(head(newImage(), sent))
    if (sent.startsWith('transfer')) socket.write(`40001\r\n${' '.repeat(262_145)}\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 413 /)
    socket.destroy()
  }
})

test('POST /images/{digest}/attestation 408: a body that is incomplete after 30 s; the connection is closed', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const text = JSON.stringify(resultOf(newImage()))
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', (bytes) => {
    answer += bytes
  })
  const closed = once(socket, 'close')
  socket.write(head(newImage(), `content-length: ${text.length}\r\n`) + text.slice(0, 20))
  await spin(() => app.deps.incomingBodies.bytes > 0)
  const held = app.deps.incomingBodies.bytes
  t.mock.timers.tick(29_999)
  socket.write(text.slice(20, 21))
  await spin(() => app.deps.incomingBodies.bytes > held)
  assert.equal(answer, '')
  t.mock.timers.tick(1)
  await spin(() => answer.includes('seconds'))
  assert.match(answer, /^HTTP\/1\.1 408 /)
  assert.match(answer, /\r\nconnection: close\r\n/i)
  assert.match(answer, /\r\n\r\nthe body did not arrive within 30 seconds$/)
  t.mock.timers.tick(60_000)
  await closed
})

// ---- Faults

test('POST /images/{digest}/attestation 503: the database is unreachable', async () => {
  const { db } = await startLossyApp()
  await db.end(0)
  const away = createApp({ ...app.deps, db }, routes)
  const digest = await knownImage(sql)
  const answer = await away.request(path(digest), {
    method: 'POST',
    body: JSON.stringify(resultOf(digest)),
    headers: { authorization: `Bearer ${token}` },
  })
  assert.equal(answer.status, 503)
  assert.ok(answer.headers.get('retry-after'))
})

test('POST /images/{digest}/attestation 503: the database cancels the statement, and nothing is written', async () => {
  const impatient = await startApp(TOKENS)
  const other = await knownImage(impatient.sql)
  await whileRefused(impatient.sql, 'image_attestation', async () => {
    assertDatabaseBusy(await impatient.post(path(other), resultOf(other), { token }))
  })
  assert.deepEqual([...(await impatient.sql`select from image_attestation`)], [])
})

test('POST /images/{digest}/attestation 503: the memory for bodies is not free in time', async () => {
  const bodies = new MemoryBudget({ totalKib: 64, waitMs: 0, refusal: () => 'too many bodies at once' })
  const full = createApp({ ...app.deps, bodies }, routes)
  const digest = await knownImage(sql)
  const ask = () =>
    full.request(path(digest), {
      method: 'POST',
      body: JSON.stringify(resultOf(digest)),
      headers: { authorization: `Bearer ${token}` },
    })
  const release = await bodies.acquire(64)
  const refused = await ask()
  assert.deepEqual(
    [refused.status, refused.headers.get('retry-after'), await refused.text()],
    [503, '1', 'too many bodies at once'],
  )
  assert.deepEqual([await rowOf(digest), app.deps.incomingBodies.bytes], [undefined, 0])
  release()
  assert.equal((await ask()).status, 201)
  assert.equal(bodies.availableKib, 64)
})

test('POST /images/{digest}/attestation 201: a post that waits while many are processed is stored', async () => {
  const { bodies } = app.deps
  const release = await bodies.acquire(20 * 1024)
  const digest = await knownImage(sql)
  const waiting = post(resultOf(digest))
  await spin(() => app.deps.incomingBodies.bytes > 0)
  assert.equal(await rowOf(digest), undefined)
  release()
  await assertAnswer(waiting, 201)
})

test('POST /images/{digest}/attestation 201: a post whose answer was lost is stored, not the same', async () => {
  const lossy = await startLossyApp({}, TOKENS)
  for (const fates of [['answer lost'], ['answer lost', 'answer lost'], ['question lost', 'answer lost']] as const) {
    const digest = await knownImage(lossy.sql)
    const ask = async (seconds: number, fields: Fields = {}) => {
      const { status, text } = await lossy.post(
        path(digest),
        resultOf(digest, { checked_at: checkedAt(seconds), ...fields }),
        token,
      )
      assert.equal(lossy.toCome, 0)
      return [status, status < 300 ? text : '']
    }
    for (const seconds of [1, 2]) {
      lossy.lose('select store_attestation', ...fates)
      assert.deepEqual(await ask(seconds), [201, ''])
    }
    lossy.lose('select store_attestation', ...fates)
    assert.deepEqual(await ask(2), [200, ''])
    lossy.lose('select store_attestation', ...fates)
    assert.deepEqual(await ask(2, { reason: 'timeout' }), [409, ''])
  }
})

test('POST /images/{digest}/attestation 201: of many concurrent posts for one image the newest is stored, and exactly the stored ones got 201', async () => {
  const digest = await knownImage(sql)
  const one = (seconds: number) =>
    post(resultOf(digest, { checked_at: checkedAt(seconds), repository: `r-${seconds}` }))
  let answers: Promise<Answer>[] = []
  await whileLocked(sql, 'image_attestation', async () => {
    answers = [3, 1, 4, 1, 5, 2].map(one)
    await spin(() => app.db.stats().gates.ingest.waiting > 0 || answers.length === 6)
  })
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  assert.equal(statuses[4], 201)
  for (const status of statuses) assert.ok([200, 201, 409].includes(status), String(status))
  const { repository, checked_at } = (await rowOf(digest))!
  assert.deepEqual([repository, checked_at], ['r-5', checkedAt(5).replace('.000Z', '')])
})

test('the memory of a body is released, whatever the outcome', () => {
  assert.equal(app.deps.incomingBodies.bytes, 0)
})
