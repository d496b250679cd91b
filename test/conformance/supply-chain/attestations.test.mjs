// Signatures and attestations: POST and GET /images/{digest}/attestation, GET /attestations, GET /attestations/running.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import { computeJob as runJob } from '../lib/profiling.mjs'
import {
  at,
  attestation,
  authEnv,
  container,
  digest,
  fromNow,
  keylessIdentity,
  micros,
  naive,
  next,
  ok,
  padded,
  pod,
  publicKey,
  rawPost,
  refused,
  sameKeys,
  sameTime,
  session,
  signature,
  statement,
  tokens,
  unverified,
} from '../lib/supply-chain.mjs'

let b,
  s,
  printed = ''
before(async () => {
  // JOBS=external: the broker's own retention pass would meet the case that counts what a pass deletes.
  b = await startBroker({ env: { ...authEnv, JOBS: 'external' } })
  s = session(b)
  for (const stream of [b.child.stdout, b.child.stderr])
    stream.on('data', (chunk) => {
      printed += chunk
    })
})
after(() => b?.stop())

const path = (d) => `/images/${d}/attestation`
const resultKeys = [
  'digest',
  'repository',
  'verdict',
  'reason',
  'trustRoot',
  'signedVia',
  'signedDigest',
  'signatures',
  'attestations',
  'checkedAt',
  'receivedAt',
]
/** A digest that the inventory has. */
async function running(label = `att-${next()}`, over = {}) {
  const d = digest(label)
  await s.run(pod({ ns: `att-${next()}`, containers: [container(d)], ...over }))
  return d
}
const stored = async (d) => ok(await s.getAttestation(d)).json
const post = async (p, status = 201) => {
  const r = await s.attest(p)
  assert.equal(r.status, status, `HTTP ${r.status}: ${r.text}`)
  return r
}
const rejected = async (p, status, words) => {
  refused(await s.attest(p), status, words)
  assert.equal((await s.getAttestation(p.digest)).status, 404, 'nothing was stored')
}

// ---------------------------------------------------------------- who, where

check('attestations: ingest needs the scope supplychain, every read needs read', async () => {
  const p = attestation(await running())
  assert.equal((await b.post(path(p.digest), p)).status, 401)
  for (const bearer of [tokens.read, tokens.ingest])
    assert.equal((await b.post(path(p.digest), p, { bearer })).status, 403)
  for (const url of [path(p.digest), '/attestations', '/attestations/running', '/attestations/policy', '/image-trust'])
    assert.equal((await b.get(url)).status, 401, url)
  await post(p)
})

check('attestations: with auth off, or without a supply-chain token, ingest answers 403', async () => {
  const p = attestation(digest('open'))
  const [open, bare] = await Promise.all([
    startBroker(),
    startBroker({ env: { BROKER_TOKEN_READ: tokens.read, BROKER_TOKEN_INGEST: tokens.ingest } }),
  ])
  try {
    refused(await open.post(path(p.digest), p), 403)
    for (const bearer of [tokens.read, tokens.ingest]) refused(await bare.post(path(p.digest), p, { bearer }), 403)
    assert.equal((await bare.post(path(p.digest), p, { bearer: tokens.supplychain })).status, 401)
  } finally {
    await Promise.all([open.stop(), bare.stop()])
  }
})

check('attestations: a digest that is not in the inventory is 404, so is a read without a result', async () => {
  const d = digest('att-unknown')
  refused(await s.attest(attestation(d)), 404)
  const r = await s.getAttestation(d)
  assert.deepEqual([r.status, r.text], [404, 'No data found'])
  refused(await s.getAttestation('sha256:xyz'), 400)
  refused(await s.supply.post(path('sha256:xyz'), attestation('sha256:xyz')), 400)
})

// ---------------------------------------------------------------- one result

check('attestations: a verified keyless result is stored whole', async () => {
  const d = await running()
  const started = Date.now()
  const r = await post(
    attestation(d, {
      repository: 'registry.test/team/app',
      checked_at: at(5),
      trust_root: 'public-good',
      signed_via: 'index',
      signed_digest: digest('att-index'),
      signatures: [signature({ integrated_time: '2025-01-02T03:04:05Z', tlog_index: 123_456_789 })],
      attestations: [
        statement({
          provenance: {
            builder_id: 'https://builder.test/v1',
            build_type: 'https://build.test/type',
            source_repo: 'https://git.test/team/app',
            source_commit: 'abc123',
            source_ref: 'refs/heads/main',
          },
        }),
      ],
    }),
  )
  assert.equal(r.text, '')
  const got = await stored(d)
  sameKeys(got, resultKeys, 'a result')
  const { checkedAt, receivedAt, ...rest } = got
  sameTime(checkedAt, at(5), 'checkedAt')
  assert.ok(Math.abs(Number(micros(receivedAt) / 1000n) - started) < 120_000, 'receivedAt is about now')
  assert.deepEqual(rest, {
    digest: d,
    repository: 'registry.test/team/app',
    verdict: 'verified',
    reason: null,
    trustRoot: 'public-good',
    signedVia: 'index',
    signedDigest: digest('att-index'),
    signatures: [
      {
        format: 'cosign-bundle',
        source: 'referrers',
        verified: true,
        signerKind: 'keyless',
        issuer: keylessIdentity.issuer,
        san: keylessIdentity.san,
        integratedTime: '2025-01-02T03:04:05Z',
        tlogIndex: 123_456_789,
      },
    ],
    attestations: [
      {
        format: 'bundle',
        source: 'referrers',
        verified: true,
        signerKind: 'keyless',
        issuer: keylessIdentity.issuer,
        san: keylessIdentity.san,
        predicateType: 'https://slsa.dev/provenance/v1',
        payloadSha256: statement().payload_sha256,
        provenance: {
          builderId: 'https://builder.test/v1',
          buildType: 'https://build.test/type',
          sourceRepo: 'https://git.test/team/app',
          sourceCommit: 'abc123',
          sourceRef: 'refs/heads/main',
        },
      },
    ],
  })
})

check('attestations: a key signature names its key instead of issuer and san', async () => {
  const d = await running()
  const key = publicKey()
  await post(
    attestation(d, {
      signatures: [
        {
          format: 'cosign-bundle',
          source: 'sig-tag',
          verified: true,
          signer_kind: 'key',
          key_name: 'release',
          key_fingerprint: key.fingerprint,
          key_pem: key.pem,
          key_hint: 'aGludA',
        },
      ],
    }),
  )
  const [got] = (await stored(d)).signatures
  assert.deepEqual(
    { ...got, keyPem: got.keyPem.trim() },
    {
      format: 'cosign-bundle',
      source: 'sig-tag',
      verified: true,
      signerKind: 'key',
      keyName: 'release',
      keyFingerprint: key.fingerprint,
      keyPem: key.pem.trim(),
      keyHint: 'aGludA',
    },
  )
})

check('attestations: an unverified entry keeps its error and hints, and loses identity and provenance', async () => {
  const d = await running()
  await post(
    attestation(d, {
      verdict: 'key_signed',
      reason: 'untrusted_key',
      signatures: [
        {
          ...signature({ verified: false }),
          error: 'untrusted_key',
          detail: 'no configured key matches',
          subject: digest('att-subject'),
          key_name: 'k',
          key_fingerprint: 'f',
          key_hint: 'hint',
          tlog_index: 7,
        },
      ],
      attestations: [
        {
          ...statement({ verified: false }),
          error: 'untrusted_key',
          provenance: { builder_id: 'https://builder.test' },
        },
      ],
    }),
  )
  const got = await stored(d)
  assert.deepEqual(got.signatures, [
    {
      format: 'cosign-bundle',
      source: 'referrers',
      verified: false,
      error: 'untrusted_key',
      detail: 'no configured key matches',
      subject: digest('att-subject'),
      keyHint: 'hint',
      tlogIndex: 7,
    },
  ])
  assert.deepEqual(got.attestations, [
    {
      format: 'bundle',
      source: 'referrers',
      verified: false,
      error: 'untrusted_key',
      predicateType: 'https://slsa.dev/provenance/v1',
      payloadSha256: statement().payload_sha256,
    },
  ])
})

check('attestations: every verdict is accepted when the signatures agree with it', async () => {
  for (const [verdict, reason, signatures] of [
    ['verified', undefined, [signature()]],
    ['verified', undefined, [unverified('network'), signature(), unverified('bad_signature')]],
    ['key_signed', 'untrusted_key', [unverified('untrusted_key')]],
    ['unsigned', undefined, []],
    ['invalid', 'bad_signature', [unverified('bad_signature')]],
    ['invalid', 'digest_mismatch', [unverified('network'), unverified('digest_mismatch')]],
    ['invalid', 'malformed', [unverified('malformed')]],
    ['unknown', 'registry_auth', []],
    ['unknown', 'untrusted_root', [unverified('untrusted_root')]],
    ['unknown', 'no_repo_digest', []],
  ]) {
    const d = await running()
    await post(attestation(d, { verdict, reason, signatures }))
    const got = await stored(d)
    assert.deepEqual([got.verdict, got.reason, got.signatures.length], [verdict, reason ?? null, signatures.length])
    assert.deepEqual([got.trustRoot, got.signedVia, got.signedDigest], [null, null, null])
  }
})

check('attestations: a verdict that does not match the signatures is 422', async () => {
  const d = await running()
  for (const [verdict, signatures] of [
    ['verified', []],
    ['verified', [unverified('network')]],
    ['unsigned', [signature()]],
    ['unsigned', [unverified('network')]],
    ['invalid', []],
    ['invalid', [signature()]],
    ['invalid', [unverified('network')]],
    ['key_signed', []],
    ['key_signed', [signature()]],
    ['key_signed', [unverified('network')]],
    ['key_signed', [unverified('untrusted_key'), unverified('bad_signature')]],
    ['unknown', [signature()]],
    ['unknown', [unverified('bad_signature')]],
    ['unknown', [unverified('digest_mismatch')]],
    ['unknown', [unverified('malformed')]],
  ])
    await rejected(attestation(d, { verdict, signatures }), 422)
  await rejected(attestation(d, { signatures: [], attestations: [statement()] }), 422)
})

check('attestations: the legacy signature format has one name in answers, two in payloads', async () => {
  for (const format of ['signer-legacy', 'cosign-legacy']) {
    const d = await running()
    await post(attestation(d, { signatures: [signature({ format })] }))
    assert.equal((await stored(d)).signatures[0].format, 'signer-legacy')
  }
})

check(
  'attestations: the contract fixture, one real signature among 31 junk ones and one real attestation among 63',
  async () => {
    const d = await running()
    const junk = (n, more) =>
      Array.from({ length: n }, (_, i) =>
        unverified(['malformed', 'untrusted_root', 'unsupported_format'][i % 3], more),
      )
    await post(
      attestation(d, {
        signatures: [...junk(31), signature()],
        attestations: [...junk(63, { predicate_type: 'https://junk.test' }), statement()],
      }),
    )
    const got = await stored(d)
    assert.deepEqual([got.verdict, got.signatures.length, got.attestations.length], ['verified', 32, 64])
  },
)

// ---------------------------------------------------------------- derivation

check('attestations: an entry sent as verified that names nobody is stored unverified', async () => {
  for (const over of [
    { issuer: undefined },
    { san: undefined },
    { issuer: ' ' },
    { san: '' },
    { signer_kind: undefined, issuer: undefined, san: undefined },
    { signer_kind: 'key', key_name: 'k' },
    { signer_kind: 'key', key_fingerprint: ' ' },
  ]) {
    const d = await running()
    await post(
      attestation(d, {
        signatures: [signature(), signature(over)],
        attestations: [statement({ ...over, provenance: { builder_id: 'https://builder.test' } })],
      }),
    )
    const got = await stored(d)
    assert.equal(got.verdict, 'verified', 'the other signature still verifies')
    assert.equal(got.signatures[0].verified, true)
    for (const entry of [got.signatures[1], got.attestations[0]]) {
      assert.deepEqual(
        [entry.verified, entry.error, typeof entry.detail],
        [false, 'no_signer_identity', 'string'],
        JSON.stringify(over),
      )
      for (const key of ['signerKind', 'issuer', 'san', 'keyName', 'keyFingerprint', 'keyPem', 'provenance'])
        assert.equal(key in entry, false, key)
    }
  }
})

check('attestations: without a verified signature left the verdict is derived again', async () => {
  const anonymous = () => signature({ issuer: undefined, san: undefined })
  for (const [others, verdict, reason] of [
    [[], 'unknown', 'no_signer_identity'],
    [[unverified('network')], 'unknown', 'no_signer_identity'],
    [[unverified('untrusted_key')], 'key_signed', 'untrusted_key'],
    [
      [unverified('untrusted_key'), unverified('digest_mismatch'), unverified('bad_signature')],
      'invalid',
      'digest_mismatch',
    ],
    [[unverified('malformed')], 'invalid', 'malformed'],
  ]) {
    const d = await running()
    await post(attestation(d, { verdict: 'verified', signatures: [anonymous(), ...others] }))
    const got = await stored(d)
    assert.deepEqual([got.verdict, got.reason, got.signatures.length], [verdict, reason, others.length + 1])
  }
})

// ---------------------------------------------------------------- contract

check(
  'attestations: unknown schema_version, verdict or signer_kind, another digest or a time ahead is 422',
  async () => {
    const d = await running()
    await rejected(attestation(d, { schema_version: 2 }), 422)
    await rejected(attestation(d, { verdict: 'trusted' }), 422)
    await rejected(attestation(d, { signatures: [signature({ signer_kind: 'magic' })] }), 422)
    await rejected(attestation(d, { attestations: [statement({ signer_kind: 'magic' })] }), 422)
    await rejected(attestation(d, { checked_at: fromNow(120) }), 422)
    await rejected(attestation(d, { repository: '' }), 422)
    await rejected(attestation(d, { repository: 'r'.repeat(1_025) }), 422)
    await rejected(attestation(d, { signed_digest: 'sha256:short' }), 422)
    refused(await s.supply.post(path(d), attestation(digest('att-another'))), 422)
    await post(attestation(d, { checked_at: fromNow(30) }))
  },
)

check('attestations: broken JSON, a missing key or a wrong type is 400', async () => {
  const d = await running()
  const p = attestation(d)
  const raw = (body) =>
    s.supply.request('POST', path(d), { raw: true, headers: { 'content-type': 'application/json' }, body })
  for (const body of ['{', `${JSON.stringify(p)}x`, '[]', 'null', '']) refused(await raw(body), 400)
  for (const key of ['schema_version', 'digest', 'repository', 'checked_at', 'verdict'])
    refused(await s.supply.post(path(d), { ...p, [key]: undefined }), 400)
  for (const over of [
    { schema_version: '1' },
    { verdict: 3 },
    { signatures: {} },
    { signatures: ['x'] },
    { signatures: [signature({ verified: 'yes' })] },
    { signatures: [{ verified: true }] },
    { attestations: [{ format: 'bundle' }] },
    { checked_at: 'now' },
    { checked_at: '2025-01-02T03:04:05' },
  ]) {
    refused(await s.supply.post(path(d), { ...p, ...over }), 400)
  }
  assert.equal((await s.getAttestation(d)).status, 404)
})

check('attestations: null lists are empty, unknown keys are ignored', async () => {
  const d = await running()
  await post({
    ...attestation(d, { verdict: 'unsigned', signatures: null, attestations: null }),
    signer_kind: 'whatever',
    extra: [1],
  })
  assert.deepEqual([(await stored(d)).signatures, (await stored(d)).attestations], [[], []])
})

check(
  'attestations: a content encoding is 415, a body above 256 KiB 413, one that does not arrive in 30 s 408',
  async () => {
    const d = await running()
    const text = JSON.stringify(attestation(d))
    refused(
      await s.supply.request('POST', path(d), {
        raw: true,
        headers: { 'content-encoding': 'gzip' },
        body: gzipSync(text),
      }),
      415,
    )
    refused(await rawPost(b, path(d), { headers: { 'content-length': '262145' }, timeoutMs: 20_000 }), 413)
    const slow = await rawPost(b, path(d), {
      headers: { 'content-length': String(text.length) },
      pieces: [text.slice(0, 10)],
    })
    assert.equal(slow.status, 408)
    assert.equal((await s.getAttestation(d)).status, 404)
    ok(
      await s.supply.request('POST', path(d), {
        raw: true,
        headers: { 'content-encoding': 'identity' },
        body: padded(attestation(d), 262_144),
      }),
      201,
    )
  },
)

check('attestations: more than 32 signatures or 64 attestations is 413', async () => {
  const d = await running()
  await rejected(attestation(d, { signatures: Array.from({ length: 33 }, () => signature()) }), 413)
  await rejected(attestation(d, { attestations: Array.from({ length: 65 }, () => statement()) }), 413)
})

check('attestations: control, line-break and bidi characters are 422 and the field is named', async () => {
  const d = await running()
  for (const c of [
    '\u0000',
    '\n',
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
  ]) {
    await rejected(
      attestation(d, { signatures: [signature(), signature({ san: `https://ci.test/${c}x` })] }),
      422,
      /signatures\[1\]\.san/,
    )
  }
  await rejected(attestation(d, { repository: 'registry.test/\u202eppa' }), 422, /repository/)
  await rejected(
    attestation(d, { attestations: [statement({ predicate_type: 'a\u0007' })] }),
    422,
    /attestations\[0\]\.predicate_type/,
  )
  await rejected(
    attestation(d, { attestations: [statement({ provenance: { source_repo: 'a\u2028b' } })] }),
    422,
    /attestations\[0\]\.provenance\.source_repo/,
  )
  await rejected(
    attestation(d, { signatures: [unverified('network', { detail: 'a\tb' }), signature()] }),
    422,
    /signatures\[0\]\.detail/,
  )
})

check('attestations: a malformed reason code is 422 and the field is named', async () => {
  const d = await running()
  const unknown = (over) => attestation(d, { verdict: 'unknown', signatures: [], ...over })
  for (const reason of ['Not A Code', 'UPPER', 'a b', 'ünknown', 'x'.repeat(129)])
    await rejected(unknown({ reason }), 422, /reason/)
  await rejected(unknown({ signatures: [unverified('Bad Code')] }), 422, /signatures\[0\]\.error/)
  await rejected(
    attestation(d, { attestations: [{ ...statement({ verified: false }), error: 'No!' }] }),
    422,
    /attestations\[0\]\.error/,
  )
  await rejected(unknown({ trust_root: 'My Root' }), 422, /trust_root/)
  await rejected(unknown({ signed_via: 'The Index' }), 422, /signed_via/)
})

check(
  'attestations: a well-formed reason code nobody knows is stored as unrecognised_reason, counted, and logged once',
  async () => {
    const [one, two] = [await running(), await running()]
    const name = 'svc_attestation_unrecognised_reason_total'
    const start = await s.counter(name)
    await post(
      attestation(one, {
        verdict: 'unknown',
        reason: 'flux_capacitor_empty',
        signatures: [unverified('warp_core_breach')],
      }),
    )
    assert.equal(await s.counter(name), start + 2)
    const got = await stored(one)
    assert.deepEqual(
      [got.verdict, got.reason, got.signatures[0].error],
      ['unknown', 'unrecognised_reason', 'unrecognised_reason'],
    )
    await post(attestation(two, { verdict: 'unknown', reason: 'flux_capacitor_empty', signatures: [] }))
    assert.equal(await s.counter(name), start + 3)
    await post(attestation(two, { verdict: 'unknown', reason: 'rate_limited', signatures: [], checked_at: at(9) }))
    assert.equal(await s.counter(name), start + 3, 'known codes are not counted')
    for (const code of ['flux_capacitor_empty', 'warp_core_breach']) {
      const lines = () => printed.split('\n').filter((l) => l.includes(code)).length
      await eventually(
        async () => {
          await s.get('/attestations', { limit: 1 })
          return lines() > 0
        },
        { what: `a log line with ${code}` },
      )
      assert.equal(lines(), 1, `${code} is logged once`)
    }
  },
)

check('attestations: a verified identity or provenance is stored whole or refused, never cut', async () => {
  const d = await running()
  const key = (over) => ({
    format: 'cosign-bundle',
    verified: true,
    signer_kind: 'key',
    key_fingerprint: 'f'.repeat(64),
    ...over,
  })
  for (const over of [{ issuer: `https://${'i'.repeat(1_017)}` }, { san: 's'.repeat(1_025) }])
    await rejected(attestation(d, { signatures: [signature(over)] }), 422)
  for (const over of [{ key_name: 'k'.repeat(129) }, { key_fingerprint: 'f'.repeat(65) }])
    await rejected(attestation(d, { signatures: [key(over)] }), 422)
  for (const field of ['builder_id', 'source_repo', 'source_ref'])
    await rejected(attestation(d, { attestations: [statement({ provenance: { [field]: 'p'.repeat(1_025) } })] }), 422)
  await rejected(attestation(d, { attestations: [statement({ provenance: { source_commit: 'c'.repeat(129) } })] }), 422)
  const [issuer, san, wide] = [`https://${'i'.repeat(1_016)}`, 'é'.repeat(512), 'p'.repeat(1_024)]
  await post(
    attestation(d, {
      signatures: [signature({ issuer, san }), key({ key_name: 'k'.repeat(128) })],
      attestations: [
        statement({
          issuer,
          san,
          provenance: { builder_id: wide, source_repo: wide, source_ref: wide, source_commit: 'c'.repeat(128) },
        }),
      ],
    }),
  )
  const got = await stored(d)
  assert.deepEqual(
    [got.signatures[0].issuer, got.signatures[0].san, got.signatures[1].keyName],
    [issuer, san, 'k'.repeat(128)],
  )
  assert.deepEqual(got.attestations[0].provenance, {
    builderId: wide,
    sourceRepo: wide,
    sourceRef: wide,
    sourceCommit: 'c'.repeat(128),
  })
})

check('attestations: other long strings are cut to their limits', async () => {
  const d = await running()
  await post(
    attestation(d, {
      signatures: [
        signature({ source: 's'.repeat(200), subject: 'x'.repeat(300), key_hint: 'h'.repeat(200) }),
        unverified('network', { detail: 'word '.repeat(100), issuer: 'i'.repeat(3_000) }),
      ],
      attestations: [statement({ predicate_type: 'p'.repeat(2_000), payload_sha256: 'a'.repeat(100) })],
    }),
  )
  const got = await stored(d)
  const [sig, bad] = got.signatures
  assert.deepEqual([sig.source.length, sig.subject.length, sig.keyHint.length], [128, 192, 128])
  assert.ok(bad.detail.length <= 256 && bad.detail.startsWith('word word'), bad.detail)
  assert.equal('issuer' in bad, false)
  const [att] = got.attestations
  assert.deepEqual([att.predicateType.length, att.payloadSha256.length], [1024, 64])
})

check('attestations: a key_pem that is no public key text is 422', async () => {
  const d = await running()
  const key = (key_pem) =>
    attestation(d, {
      signatures: [{ format: 'cosign-bundle', verified: true, signer_kind: 'key', key_fingerprint: 'abc', key_pem }],
    })
  for (const pem of [
    'hello',
    '-----BEGIN PUBLIC KEY-----\nabc',
    `-----BEGIN PUBLIC KEY-----\n${'A'.repeat(4_096)}\n-----END PUBLIC KEY-----`,
  ])
    await rejected(key(pem), 422)
})

check('attestations: addresses and secrets in a detail are redacted, plain words stay', async () => {
  const d = await running()
  const detail =
    'GET https://user:pw@registry.secret.test/v2/x?token=abcdef dial tcp 10.1.2.3:443: refused Bearer eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl code bad_thing v1.2.3'
  await post(
    attestation(d, {
      verdict: 'unknown',
      reason: 'network',
      signatures: [unverified('network', { detail }), unverified('timeout', { detail: 'no matching signatures' })],
    }),
  )
  const [first, second] = (await stored(d)).signatures
  for (const secret of ['registry.secret.test', '10.1.2.3', 'abcdef', 'eyJhbGciOi', 'user:pw'])
    assert.equal(first.detail.includes(secret), false, `${secret} in ${first.detail}`)
  assert.ok(first.detail.includes('<url>') && first.detail.includes('refused'), first.detail)
  assert.equal(second.detail, 'no matching signatures')
})

// ---------------------------------------------------------------- posting again

check(
  'attestations: 201 when new or strictly newer, 200 for the same result, 409 for another one that is not newer',
  async () => {
    const d = await running()
    const p = attestation(d, { checked_at: at(10) })
    await post(p, 201)
    const { receivedAt } = await stored(d)
    const again = await post(p, 200)
    assert.equal(again.text, '')
    await post({ ...p, checked_at: at(5) }, 200)
    assert.equal((await stored(d)).checkedAt, naive(at(10)), 'the stored result is unchanged')
    assert.equal((await stored(d)).receivedAt, receivedAt)
    for (const when of [at(10), at(9)])
      refused(
        await s.attest(attestation(d, { checked_at: when, signatures: [signature({ san: 'https://ci.test/other' })] })),
        409,
      )
    refused(
      await s.attest(attestation(d, { checked_at: at(10), verdict: 'unknown', reason: 'network', signatures: [] })),
      409,
    )
    assert.equal((await stored(d)).signatures[0].san, keylessIdentity.san)
    await post({ ...p, checked_at: at(11) }, 201)
    assert.equal((await stored(d)).checkedAt, naive(at(11)))
    await post(attestation(d, { checked_at: at(12), verdict: 'unsigned', signatures: [] }), 201)
    assert.deepEqual([(await stored(d)).verdict, (await stored(d)).signatures], ['unsigned', []])
  },
)

check('attestations: each compared part makes another result', async () => {
  const d = await running()
  const p = attestation(d, {
    trust_root: 'public-good',
    signed_via: 'self',
    signed_digest: d,
    attestations: [statement()],
  })
  await post(p)
  for (const over of [
    { repository: 'registry.test/team/other' },
    { trust_root: 'custom:0123456789ab' },
    { signed_via: 'index' },
    { signed_digest: digest('att-compared') },
    { reason: 'timeout' },
    { attestations: [] },
    { signatures: [signature(), signature()] },
  ])
    refused(await s.attest({ ...p, ...over }), 409)
  await post(p, 200)
})

// ---------------------------------------------------------------- summaries

check('attestations: the list has one summary per digest, ordered by digest, and filters', async () => {
  const repository = `registry.test/list/${next()}`
  const digests = []
  for (const verdict of ['verified', 'unsigned', 'verified', 'unknown']) {
    const d = await running()
    digests.push([d, verdict])
    await post(
      attestation(d, {
        repository,
        verdict,
        reason: verdict === 'unknown' ? 'network' : undefined,
        signatures: verdict === 'verified' ? [signature()] : [],
        attestations: verdict === 'verified' ? [statement()] : [],
        signed_via: 'self',
      }),
    )
  }
  digests.sort(([x], [y]) => (x < y ? -1 : 1))
  const list = async (params) => (await s.whole('/attestations', params)).items
  const first = ok(await s.get('/attestations', { repository })).json
  sameKeys(first, ['items', 'nextAfter'], 'the answer')
  assert.equal(first.nextAfter, null)
  assert.deepEqual(
    first.items.map((i) => [i.digest, i.verdict]),
    digests,
  )
  const verified = first.items.find((i) => i.verdict === 'verified')
  assert.deepEqual(verified, {
    digest: verified.digest,
    repository,
    verdict: 'verified',
    reason: null,
    signedVia: 'self',
    checkedAt: naive(at(0)),
    signers: [{ kind: 'keyless', issuer: keylessIdentity.issuer, san: keylessIdentity.san }],
    verifiedPredicates: ['https://slsa.dev/provenance/v1'],
  })
  assert.deepEqual(
    (await list({ repository, limit: 1 })).map((i) => i.digest),
    digests.map(([d]) => d),
  )
  assert.deepEqual(
    (await list({ repository, verdict: 'verified' })).map((i) => i.digest),
    digests.filter(([, v]) => v === 'verified').map(([d]) => d),
  )
  assert.deepEqual(
    ok(await s.get('/attestations', { repository, after: digests[1][0] })).json.items.map((i) => i.digest),
    digests.slice(2).map(([d]) => d),
  )
  assert.deepEqual(await list({ repository: `${repository}x` }), [], 'repository is exact')
  const unknown = await list({ verdict: 'unknown' })
  assert.ok(
    unknown.some((i) => i.repository === repository) && unknown.every((i) => i.verdict === 'unknown'),
    'a verdict alone',
  )
  for (const params of [{ verdict: 'trusted' }, { after: 'x' }, { limit: 'x' }])
    refused(await s.get('/attestations', params), 400)
  for (const limit of [0, -1])
    assert.equal(ok(await s.get('/attestations', { repository, limit })).json.items.length, 1, 'limit is clamped')
})

check('attestations: a summary has up to 8 distinct verified signers and 16 verified predicates', async () => {
  const d = await running()
  const repository = `registry.test/many/${next()}`
  const key = {
    format: 'cosign-bundle',
    verified: true,
    signer_kind: 'key',
    key_name: 'release',
    key_fingerprint: 'ab'.repeat(32),
  }
  await post(
    attestation(d, {
      repository,
      signatures: [
        ...Array.from({ length: 12 }, (_, i) => signature({ san: `https://ci.test/${i % 10}` })),
        unverified('network'),
      ],
      attestations: Array.from({ length: 20 }, (_, i) => statement({ predicate_type: `https://predicate.test/${i}` })),
    }),
  )
  let [item] = ok(await s.get('/attestations', { repository })).json.items
  assert.equal(item.signers.length, 8)
  assert.equal(new Set(item.signers.map((x) => JSON.stringify(x))).size, 8)
  assert.equal(new Set(item.verifiedPredicates).size, 16)
  assert.equal(item.verifiedPredicates.length, 16)
  await post(
    attestation(d, {
      repository,
      checked_at: at(3),
      signatures: [key, key, unverified('network')],
      attestations: [statement({ verified: false, predicate_type: 'https://unverified.test' })],
    }),
  )
  ;[item] = ok(await s.get('/attestations', { repository })).json.items
  assert.deepEqual(item.signers, [{ kind: 'key', keyName: 'release', keyFingerprint: 'ab'.repeat(32) }])
  assert.deepEqual(item.verifiedPredicates, [])
})

check('attestations: summaries cut long texts to 256 bytes, the single read does not', async () => {
  const d = await running()
  const san = `https://ci.test/${'é'.repeat(300)}`
  await post(
    attestation(d, {
      repository: `registry.test/cut/${'r'.repeat(400)}`,
      signatures: [signature({ san })],
      attestations: [statement({ san, predicate_type: `https://p.test/${'p'.repeat(400)}` })],
    }),
  )
  const item = (await s.whole('/attestations', { limit: 500 })).items.find((i) => i.digest === d)
  assert.equal(item.repository, `registry.test/cut/${'r'.repeat(238)}`)
  assert.equal(item.signers[0].san, `https://ci.test/${'é'.repeat(120)}`)
  assert.equal(Buffer.byteLength(item.verifiedPredicates[0]), 256)
  assert.equal((await stored(d)).signatures[0].san, san)
})

// ---------------------------------------------------------------- running feed

check(
  'attestations: the running feed has one item per running container, whole identities, null without a result',
  async () => {
    const ns = `feed-${next()}`
    const [signed, unchecked, stopped] = [digest(`${ns}-a`), digest(`${ns}-b`), digest(`${ns}-c`)]
    await s.run(
      pod({
        ns,
        workload: 'web',
        containers: [
          container(signed, { name: 'one', image: 'registry.test/feed/web:v1', repository: 'registry.test/feed/web' }),
          container(unchecked, { name: 'two' }),
        ],
      }),
      pod({ ns, kind: 'CronJob', workload: 'nightly', containers: [container(stopped, { state: 'terminated' })] }),
      pod({ ns, kind: 'DaemonSet', workload: 'agent', containers: [container(signed)] }),
    )
    const san = 'https://ci.test/'.padEnd(900, 's')
    await post(
      attestation(signed, {
        signatures: [
          signature({ san, tlog_index: 4, integrated_time: '2025-01-02T03:04:05Z' }),
          unverified('network', { detail: 'x' }),
        ],
        attestations: [
          statement({ san, provenance: { builder_id: 'https://builder.test' } }),
          { ...statement({ verified: false }), error: 'network' },
        ],
      }),
    )
    const { items, pages } = await s.whole('/attestations/running', { namespace: ns })
    sameKeys(pages[0], ['items', 'nextAfter'], 'the answer')
    assert.deepEqual(
      items.map((i) => [i.workloadKind, i.workloadName, i.container, i.digest]),
      [
        ['DaemonSet', 'agent', 'app', signed],
        ['Deployment', 'web', 'one', signed],
        ['Deployment', 'web', 'two', unchecked],
      ],
    )
    assert.deepEqual(items[1], {
      namespace: ns,
      workloadKind: 'Deployment',
      workloadName: 'web',
      container: 'one',
      digest: signed,
      imageRef: 'registry.test/feed/web:v1',
      repository: items[0].repository,
      verdict: 'verified',
      reason: null,
      checkedAt: naive(at(0)),
      signers: [
        {
          format: 'cosign-bundle',
          source: 'referrers',
          verified: true,
          signerKind: 'keyless',
          issuer: keylessIdentity.issuer,
          san,
          integratedTime: '2025-01-02T03:04:05Z',
          tlogIndex: 4,
        },
      ],
      attestations: [
        {
          format: 'bundle',
          source: 'referrers',
          verified: true,
          signerKind: 'keyless',
          issuer: keylessIdentity.issuer,
          san,
          predicateType: 'https://slsa.dev/provenance/v1',
          provenance: { builderId: 'https://builder.test' },
        },
      ],
    })
    const { imageRef: _, repository: __, ...rest } = items[2]
    assert.deepEqual(rest, {
      namespace: ns,
      workloadKind: 'Deployment',
      workloadName: 'web',
      container: 'two',
      digest: unchecked,
      verdict: null,
      reason: null,
      checkedAt: null,
      signers: [],
      attestations: [],
    })
  },
)

check('attestations: the running feed is paged by an opaque cursor', async () => {
  const ns = `feedpage-${next()}`
  const names = Array.from({ length: 7 }, (_, i) => `c${i}`)
  await s.run(
    pod({ ns, containers: names.map((name) => container(digest(`${ns}-${name}`), { name })) }),
    pod({ ns: `${ns}-other`, containers: [container(digest(`${ns}-other`))] }),
  )
  for (const limit of [1, 3, 7, 200]) {
    const { items, pages } = await s.whole('/attestations/running', { namespace: ns, limit })
    assert.deepEqual(
      items.map((i) => i.container),
      names,
      `limit ${limit}`,
    )
    for (const p of pages) assert.ok(p.items.length <= limit)
  }
  const everywhere = (await s.whole('/attestations/running', { limit: 2 })).items.map((i) => i.namespace)
  assert.ok(everywhere.includes(ns) && everywhere.includes(`${ns}-other`))
  assert.equal(ok(await s.get('/attestations/running', { namespace: ns, limit: 0 })).json.items.length, 1)
  for (const params of [{ after: 'not a cursor' }, { after: 'abcdef' }, { limit: 'x' }])
    refused(await s.get('/attestations/running', params), 400)
})

// ---------------------------------------------------------------- retention

check('attestations: the retention job deletes what was not checked again within 7 days', async (c) => {
  const [old, kept] = [await running(), await running()]
  await post(attestation(old, { checked_at: fromNow(-8 * 86_400) }))
  await post(attestation(kept, { checked_at: fromNow(-6 * 86_400) }))
  const deleted = async (env) => {
    const done = await runJob(b, 'attestation-retention', { env })
    if (done === null) return null
    assert.equal(done.code, 0, done.log)
    return Number(/"rows":(\d+)/.exec(done.log)?.[1])
  }
  assert.equal((await s.getAttestation(old)).status, 404, 'older than it is kept is in no answer, also before the job')
  const kept0 = await deleted({ IMAGE_ATTESTATION_RETENTION_DAYS: '0' })
  if (kept0 === null) return c.skip('no dist/jobs/run.js beside BROKER_CMD')
  assert.equal(kept0, 0, '0 keeps')
  assert.equal(await deleted({}), 1)
  assert.equal((await s.getAttestation(old)).status, 404)
  assert.equal((await stored(kept)).verdict, 'verified')
})

check('attestations: both counters are printed from the start', async () => {
  for (const name of ['svc_attestation_unrecognised_reason_total', 'svc_supplychain_staged_sets_refused_total'])
    assert.ok(Number.isInteger(await s.counter(name)), name)
})
