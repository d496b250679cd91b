import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type SignatureVerdict, VERDICTS } from '../lib/attestations/entry.ts'
import { startApp, TOKENS } from './support/app.ts'
import { type Result, signature, statement, storeAttestation, unverified } from './support/attestations.ts'
import { depth } from './support/depth.ts'
import { digestOf, newDigest } from './support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

let made = 0
/** A repository that no other test uses. */
const newRepository = () => `registry.test/list-${made++}`
const store = async (repository: string, fields: Result = {}) => {
  const digest = newDigest()
  await storeAttestation(app, digest, { repository, ...fields })
  return digest
}
const list = async (query: string, target = app) => {
  const answer = await target.get(`/attestations?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Record<string, unknown>[]; nextAfter: string | null }
}
const digests = async (query: string) => (await list(query)).items.map(({ digest }) => digest)
const walk = async (query: string) => {
  const all: unknown[] = []
  for (let after = ''; ; ) {
    const { items, nextAfter } = await list(`${query}${after}`)
    all.push(...items.map(({ digest }) => digest))
    if (nextAfter === null) return all
    assert.equal(nextAfter, all.at(-1))
    after = `&after=${nextAfter}`
  }
}
const one = async (fields: Result) => {
  const repository = newRepository()
  await store(repository, fields)
  const [item] = (await list(`repository=${repository}`)).items
  return item!
}

test('GET /attestations 200: an empty page when nothing was checked', async () => {
  const answer = await app.get('/attestations')
  assert.deepEqual([answer.status, answer.text], [200, '{"items":[],"nextAfter":null}'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
})

test('GET /attestations 200: the keys of a result, in wire order', async () => {
  const repository = newRepository()
  const digest = await store(repository, {
    signed_via: 'self',
    signatures: [
      signature({ tlogIndex: 7 }),
      signature({
        signerKind: 'key',
        issuer: undefined,
        san: undefined,
        keyName: 'release',
        keyFingerprint: 'f0'.repeat(32),
        keyPem: 'x',
      }),
      unverified('network', { detail: 'x' }),
    ],
    attestations: [statement(), { ...unverified('network'), predicateType: 'https://unverified.test' }],
    checked_at: '2026-01-01T09:00:00.123456',
  })
  const { text } = await app.get(`/attestations?repository=${repository}`)
  const { issuer, san } = signature()
  assert.equal(
    text,
    JSON.stringify({
      items: [
        {
          digest,
          repository,
          verdict: 'verified',
          reason: null,
          signedVia: 'self',
          signers: [
            { kind: 'keyless', issuer, san },
            { kind: 'key', keyName: 'release', keyFingerprint: 'f0'.repeat(32) },
          ],
          verifiedPredicates: ['https://slsa.dev/provenance/v1'],
          checkedAt: '2026-01-01T09:00:00.123456',
        },
      ],
      nextAfter: null,
    }),
  )
})

test('GET /attestations 200: a result without signatures has empty lists, and its reason', async () => {
  const { signers, verifiedPredicates, signedVia, reason } = await one({ verdict: 'unknown', reason: 'registry_auth' })
  assert.deepEqual([signers, verifiedPredicates, signedVia, reason], [[], [], null, 'registry_auth'])
})

test('GET /attestations 200: a repository is cut to 256 bytes, never inside a character', async () => {
  for (const [repository, shown] of [
    ['r'.repeat(256), 'r'.repeat(256)],
    ['r'.repeat(257), 'r'.repeat(256)],
    [`${'r'.repeat(255)}é`, 'r'.repeat(255)],
    [`${'r'.repeat(254)}é`, `${'r'.repeat(254)}é`],
    [`${'r'.repeat(254)}é${'r'.repeat(9)}`, `${'r'.repeat(254)}é`],
    ['€'.repeat(300), '€'.repeat(85)],
    [`${'r'.repeat(253)}😀`, 'r'.repeat(253)],
    ['😀'.repeat(256), '😀'.repeat(64)],
  ] as const) {
    const digest = await store(repository)
    const { items } = await list(`repository=${encodeURIComponent(repository)}`)
    assert.deepEqual(
      items.filter((item) => item.digest === digest).map((item) => item.repository),
      [shown],
    )
  }
})

test('GET /attestations 200: pages follow the order of digests, each begins where the last ended, with every filter', async () => {
  const repository = newRepository()
  const all: [string, SignatureVerdict][] = []
  for (const verdict of ['unsigned', 'verified', 'unknown', 'verified', 'invalid', 'verified', 'unsigned'] as const)
    all.push([await store(repository, { verdict }), verdict])
  const sorted = all.map(([digest]) => digest).sort()
  const verified = all.filter(([, verdict]) => verdict === 'verified').map(([digest]) => digest)
  assert.deepEqual(await digests(`repository=${repository}`), sorted)
  assert.deepEqual(await digests(`repository=${repository}&verdict=verified`), verified.sort())
  const everything = await digests('limit=500')
  assert.deepEqual(everything, [...everything].sort())
  const ofVerdict = await digests('limit=500&verdict=verified')
  assert.deepEqual(
    ofVerdict.filter((digest) => sorted.includes(digest as string)),
    verified,
  )
  for (const filter of [
    `repository=${repository}`,
    `repository=${repository}&verdict=verified`,
    'verdict=verified',
    '',
  ])
    for (const limit of [1, 2, 3])
      assert.deepEqual(await walk(`${filter}&limit=${limit}`), await digests(`${filter}&limit=500`), filter)
})

test('GET /attestations 200: nextAfter is null on a page that is exactly full; after may be a digest that is not in the list', async () => {
  const repository = newRepository()
  const all = [await store(repository), await store(repository), await store(repository)].sort()
  const page = (query: string) => list(`repository=${repository}&${query}`)
  assert.equal((await page('limit=3')).nextAfter, null)
  assert.equal((await page('limit=2')).nextAfter, all[1])
  assert.deepEqual(await page(`after=${all[2]}`), { items: [], nextAfter: null })
  const between = `${all[0]!.slice(0, -1)}f`
  assert.deepEqual(await digests(`repository=${repository}&after=${between}`), all.slice(1))
})

test('GET /attestations 200: verdict and repository must match exactly; a blank filter is ignored, and the first of repeated ones counts', async () => {
  const repository = newRepository()
  const digest = await store(repository, { verdict: 'key_signed' })
  for (const query of [
    `repository=${repository}`,
    `repository=${repository}&verdict=`,
    `repository=${repository}&verdict=%20%09`,
    `repository=${repository}&verdict=key_signed&verdict=nonsense`,
  ])
    assert.deepEqual(await digests(query), [digest], query)
  assert.ok((await digests('verdict=key_signed&repository=%20')).includes(digest))
  for (const none of [repository.toUpperCase(), repository.slice(0, -1), `${repository}x`, `%20${repository}`])
    assert.deepEqual(await digests(`repository=${none}`), [], none)
  for (const verdict of VERDICTS)
    assert.deepEqual(
      await digests(`repository=${repository}&verdict=${verdict}`),
      verdict === 'key_signed' ? [digest] : [],
    )
})

test('GET /attestations 200: the default limit is 100, and limits are clamped to 1..500', async () => {
  const repository = newRepository()
  await app.sql`
    insert into image_attestation
    select 'sha256:' || md5(n::text) || md5(n::text), ${repository}, case n % 2 when 0 then 'verified' else 'unsigned' end, null, null, null, null,
           '[]', '[]', '[]', '[]', '[]', '[]', '', now(), now() from generate_series(1, 501) n`
  const found = async (query: string) => (await digests(`repository=${repository}${query}`)).length
  assert.deepEqual(
    [
      await found(''),
      await found('&limit=0'),
      await found('&limit=-7'),
      await found('&limit=%2B2'),
      await found('&limit=501'),
    ],
    [100, 1, 1, 2, 500],
  )
  assert.notEqual((await list(`repository=${repository}&limit=500`)).nextAfter, null)
  assert.equal(await found('&limit=500&verdict=verified'), 250)
})

test('GET /attestations 200: a walk of pages shows every permanent result exactly once, while others are added, removed and changed', {
  timeout: 900_000,
}, async () => {
  const change = fc.record({
    kind: fc.constantFrom('come', 'go', 'again'),
    at: fc.nat(30),
    verdict: fc.constantFrom(...VERDICTS),
  })
  const filter = fc.constantFrom('', 'repository', 'verdict', 'both')
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 12 }),
      fc.integer({ min: 1, max: 4 }),
      filter,
      async (changes, limit, by) => {
        await app.sql`delete from image_attestation`
        const repository = newRepository()
        const name = (n: number) => digestOf(`walked-${n}`)
        const stays = [0, 3, 7, 11, 20, 28]
        for (const n of stays) await storeAttestation(app, name(n), { repository, verdict: 'unsigned' })
        const query = `limit=${limit}${by === 'repository' || by === 'both' ? `&repository=${repository}` : ''}${by === 'verdict' || by === 'both' ? '&verdict=unsigned' : ''}`
        const left = [...changes]
        const seen: unknown[] = []
        for (let after = ''; ; ) {
          const { items, nextAfter } = await list(`${query}${after}`)
          seen.push(...items.map(({ digest }) => digest))
          if (nextAfter === null) break
          after = `&after=${nextAfter}`
          const next = left.shift()
          if (!next) continue
          const isOurs = stays.includes(next.at)
          if (next.kind === 'go' && !isOurs)
            await app.sql`delete from image_attestation where digest = ${name(next.at)}`
          // A repeated check changes a result of `stays`, but not its place in the filter.
          else
            await storeAttestation(app, name(next.at), {
              repository,
              verdict: isOurs ? 'unsigned' : next.verdict,
              reason: 'network',
            })
        }
        assert.equal(new Set(seen).size, seen.length)
        assert.deepEqual(
          stays.map(name).filter((digest) => !seen.includes(digest)),
          [],
        )
        assert.deepEqual(seen, [...seen].sort())
      },
    ),
    { numRuns: depth(12, 60) },
  )
})

for (const [query, field] of [
  ...['limit=abc', 'limit=', 'limit=1.5', 'limit=%00'].map((query) => [query, 'limit']),
  ...['after=web', 'after=sha256:abc', `after=${digestOf('a').toUpperCase()}`, `after=${digestOf('a')}0`].map(
    (query) => [query, 'after'],
  ),
  ...['verdict=trusted', 'verdict=VERIFIED', 'verdict=verified%20', 'verdict=a%00b'].map((query) => [query, 'verdict']),
  ['repository=a%00b', 'repository'],
] as [string, string][]) {
  test(`GET /attestations 400: ${query}`, async () => {
    const answer = await app.get(`/attestations?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Query deserialize error: ${field}: `))
  })
}

test('GET /attestations 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/attestations'))
  assertUnauthorized(await guarded.get('/attestations?limit=abc', { token: 'unknown' }))
})

test('GET /attestations 200: every token may read', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/attestations', { token: one })).status, 200)
})

test('GET /attestations 503: refused when the read budget is spent, with 24 KiB for each result and one more', async () => {
  const { budget } = guarded.deps
  for (const [query, kib] of [
    ['', 101 * 24],
    ['?limit=1', 48],
    ['?limit=9999', 501 * 24],
  ] as const) {
    const release = await budget.acquire(budget.totalKib - kib + 1)
    assertShed(await guarded.get(`/attestations${query}`, { token }), kib, budget.totalKib)
    release()
  }
  assert.equal((await guarded.get('/attestations', { token })).status, 200)
})

test('GET /attestations 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'image_attestation', async () =>
    assertDatabaseBusy(await guarded.get('/attestations', { token })),
  )
})
