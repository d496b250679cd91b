import assert from 'node:assert/strict'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import {
  type ContainerCursor,
  MAX_CURSOR_CHARS,
  writeContainerCursor,
} from '../../lib/attestations/container-cursor.ts'
import { MAX_SCANNED, PIECE_BYTES } from '../../lib/attestations/running.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { signature, statement, storeAttestation, unverified } from '../support/attestations.ts'
import { depth } from '../support/depth.ts'
import { age, container, digestOf, newDigest, newNamespace, replica } from '../support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

type Item = Record<string, unknown>

const store = async (...posts: unknown[]) => {
  for (const post of posts) assert.equal((await app.post('/pod/spec', post)).status, 200)
}
const list = async (query: string, target = app) => {
  const answer = await target.get(`/attestations/running?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Item[]; nextAfter: string | null }
}
/** Reads all pages. */
const walk = async (query: string) => {
  const all: Item[] = []
  for (let after = '', pages = 0; ; pages++) {
    assert.ok(pages < 1_000, 'the walk has no end')
    const { items, nextAfter } = await list(`${query}${after}`)
    all.push(...items)
    if (nextAfter === null) return all
    after = `&after=${nextAfter}`
  }
}
const keyOf = (item: Item) =>
  [item.namespace, item.workloadKind, item.workloadName, item.container, item.digest].join(' ')
/** Rows of the inventory, of a cluster. */
const insert = async (
  place: ContainerCursor,
  fields: { state?: string | null; reason?: string | null; pod?: string | null; secsAgo?: number } = {},
) => {
  const { state = 'running', reason = null, pod = null, secsAgo = 0 } = fields
  const [cluster, namespace, kind, name, containerName, digest] = place
  await app.sql`
    insert into workload_container
    select ${cluster}, ${namespace}, ${kind}, ${name}, ${containerName}, ${digest}, 'regular', 'r:1', '{}', '{}', ${pod}, ${state}, ${reason}, null, t, t
    from (select now() at time zone 'utc' - make_interval(secs => ${secsAgo}) as t) a on conflict do nothing`
}

test('GET /attestations/running 200: an empty page when nothing runs', async () => {
  const answer = await app.get('/attestations/running')
  assert.deepEqual([answer.status, answer.text], [200, '{"items":[],"nextAfter":null}'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
})

test('GET /attestations/running 200: the keys of a container, in wire order; verified entries only, byte for byte and with exact integers', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  await store(
    replica(namespace, [
      container('app', digest, { image: 'registry.test/"a":v1', repository: 'registry.test/team/app' }),
    ]),
  )
  const san = `https://ci.test/${'é'.repeat(400)}`
  const row = await storeAttestation(app, digest, {
    repository: 'registry.test/told/by-the-check',
    reason: 'timeout',
    signatures: [
      unverified('network', { detail: 'x' }),
      signature({
        san,
        error: 'x',
        detail: 'y',
        tlogIndex: 9_223_372_036_854_775_807n,
        integratedTime: '2025-01-02T03:04:05Z',
      }),
      signature({
        signerKind: 'key',
        issuer: undefined,
        san: undefined,
        keyName: 'k',
        keyFingerprint: 'f0'.repeat(32),
        keyPem: 'a\nb',
      }),
    ],
    attestations: [
      { ...unverified('network'), predicateType: 'https://p.test' },
      statement({ san, error: 'x', detail: 'y' }),
    ],
    checked_at: '2026-01-01T09:00:00.5',
  })
  const { text, json } = await app.get(`/attestations/running?namespace=${namespace}`)
  assert.equal(
    text,
    `{"items":[{"namespace":"${namespace}","workloadKind":"Deployment","workloadName":"web","container":"app","digest":"${digest}",` +
      `"imageRef":"registry.test/\\"a\\":v1","repository":"registry.test/team/app","verdict":"verified","reason":"timeout",` +
      `"checkedAt":"2026-01-01T09:00:00.500","signers":${row.verified_signatures},"attestations":${row.verified_attestations}}],"nextAfter":null}`,
  )
  assert.ok(text.includes('"tlogIndex":9223372036854775807') && text.includes(san))
  const [item] = json.items
  assert.deepEqual([item.signers.length, item.attestations.length], [2, 1])
  for (const entry of [...item.signers, ...item.attestations])
    for (const key of ['error', 'detail', 'payloadSha256']) assert.equal(key in entry, false, key)
})

test('GET /attestations/running 200: the verdict of an image that was never checked is null, and the lists are empty', async () => {
  const [namespace, bare] = [newNamespace(), newDigest()]
  await store(replica(namespace, [container('app', bare, { repository: undefined })]))
  const [item] = (await list(`namespace=${namespace}`)).items
  const { repository, verdict, reason, checkedAt, signers, attestations } = item!
  assert.deepEqual([repository, verdict, reason, checkedAt, signers, attestations], [null, null, null, null, [], []])
  await app.sql`delete from image where digest = ${bare}`
  assert.equal((await list(`namespace=${namespace}`)).items.length, 1)
})

test('GET /attestations/running 200: running containers and nothing else', async () => {
  const namespace = newNamespace()
  const post = replica(namespace, [])
  await store({ ...post, pod_name: 'alive' })
  await store({ ...post, pod_name: 'dead' })
  await app.post('/pod/mark_dead', { pod_name: 'dead' })
  const at = (name: string): ContainerCursor => ['primary', namespace, 'Deployment', 'web', name, digestOf(name)]
  await insert(at('unknown-state'), { state: null })
  await insert(at('crashing'), { state: 'waiting', reason: 'CrashLoopBackOff' })
  await insert(at('old-but-alive'), { secsAgo: 7_200, pod: 'alive' })
  await insert(at('a-pulling'), { state: 'waiting', reason: 'ImagePullBackOff' })
  await insert(at('a-terminated'), { state: 'terminated', pod: 'alive' })
  await insert(at('old'), { secsAgo: 7_200 })
  await insert(at('z-old-and-dead'), { secsAgo: 7_200, pod: 'dead' })
  const found = (await walk(`namespace=${namespace}&limit=1`)).map((item) => item.container)
  assert.deepEqual(found, ['crashing', 'old-but-alive', 'unknown-state'])
})

test('GET /attestations/running 200: the configured window decides whether a container runs', async () => {
  const windowed = await startApp({ IMAGE_INVENTORY_RUNNING_WINDOW_SECS: '400' })
  const body = replica('shop', [container('app', newDigest())])
  await windowed.post('/pod/spec', body)
  await windowed.post('/pod/mark_dead', { pod_name: body.pod_name })
  await age(windowed.sql, 390)
  assert.equal((await list('', windowed)).items.length, 1)
  await age(windowed.sql, 20)
  for (const query of ['', 'namespace=shop']) assert.equal((await list(query, windowed)).items.length, 0)
})

test('GET /attestations/running 200: ordered by cluster, namespace, kind, name, container and digest, by bytes', async () => {
  const space = newNamespace()
  const places: ContainerCursor[] = []
  for (const cluster of ['a', 'primary', 'Z'])
    for (const namespace of [space, `${space}-é`, `${space}-z`])
      for (const rest of [
        ['CronJob', 'n', 'c', digestOf('1')],
        ['Deployment', 'B', 'c', digestOf('1')],
        ['Deployment', 'a', 'c', digestOf('1')],
        ['Deployment', 'a', 'c', digestOf('2')],
        ['Deployment', 'a', 'd', digestOf('1')],
      ])
        places.push([cluster, namespace, ...rest] as unknown as ContainerCursor)
  for (const place of places) await insert(place)
  const bytes = (place: ContainerCursor) => Buffer.from(place.join('\0'))
  const expectedKeys = (some: ContainerCursor[]) =>
    some.sort((a, b) => Buffer.compare(bytes(a), bytes(b))).map((place) => place.slice(1).join(' '))
  const ours = (items: Item[]) => items.filter(({ namespace }) => String(namespace).startsWith(space)).map(keyOf)
  for (const limit of [1, 2, 7, 200]) {
    assert.deepEqual(ours(await walk(`limit=${limit}`)), expectedKeys([...places]), `limit ${limit}`)
    for (const namespace of [space, `${space}-é`, `${space}-z`])
      assert.deepEqual(
        ours(await walk(`namespace=${encodeURIComponent(namespace)}&limit=${limit}`)),
        expectedKeys(places.filter((place) => place[1] === namespace)),
        `limit ${limit} of ${namespace}`,
      )
  }
  // A cursor is a place in the whole list, also when a filtered list returned it.
  for (const [n, place] of [...places].sort((a, b) => Buffer.compare(bytes(a), bytes(b))).entries())
    for (const namespace of [space, `${space}-é`]) {
      const behind = [...places].sort((a, b) => Buffer.compare(bytes(a), bytes(b))).slice(n + 1)
      const { items } = await list(
        `namespace=${encodeURIComponent(namespace)}&limit=200&after=${writeContainerCursor(place)}`,
      )
      assert.deepEqual(items.map(keyOf), expectedKeys(behind.filter((one) => one[1] === namespace)), `after ${place}`)
    }
  await app.sql`delete from workload_container where pod_namespace like ${`${space}%`}`
})

test('GET /attestations/running 200: 100 containers by default; limit is clamped to 1..200; a page that is exactly full', async () => {
  const namespace = newNamespace()
  await app.sql`
    insert into workload_container
    select 'primary', ${namespace}, 'Deployment', 'many', 'c' || n, 'sha256:' || md5(n::text) || md5(n::text), 'regular', 'r', '{}', '{}', null, null,
           null, null, now() at time zone 'utc', now() at time zone 'utc' from generate_series(1, 201) n`
  const found = async (query: string) => (await list(`namespace=${namespace}${query}`)).items.length
  assert.deepEqual(
    [
      await found(''),
      await found('&limit=0'),
      await found('&limit=-7'),
      await found('&limit=%2B2'),
      await found('&limit=9999'),
    ],
    [100, 1, 1, 2, 200],
  )
  const { nextAfter } = await list(`namespace=${namespace}&limit=200`)
  assert.deepEqual(
    [(await list(`namespace=${namespace}&limit=1&after=${nextAfter}`)).nextAfter, nextAfter !== null],
    [null, true],
  )
  assert.equal(await found('&namespace=nobody'), 100)
  assert.equal((await walk('namespace=%20&limit=200')).length, (await walk('limit=200')).length)
  await app.sql`delete from workload_container where pod_namespace = ${namespace}`
})

test('GET /attestations/running 200: a page ends after a bounded number of containers that do not run, and the next page continues there', async () => {
  const namespace = newNamespace()
  await app.sql`
    insert into workload_container
    select 'primary', ${namespace}, 'Job', 'j' || lpad(n::text, 6, '0'), 'app', ${digestOf('job')}, 'regular', 'r', '{}', '{}', null,
           case when n in (3, ${MAX_SCANNED}, ${MAX_SCANNED + 1}) then 'running' else 'terminated' end, null, null, now() at time zone 'utc',
           now() at time zone 'utc'
    from generate_series(1, ${MAX_SCANNED + 10}::int) n`
  const names = (items: Item[]) => items.map(({ workloadName }) => Number(String(workloadName).slice(1)))
  for (const scope of [`namespace=${namespace}&`, '']) {
    const from = `after=${writeContainerCursor(['primary', namespace, '', '', '', ''])}`
    const first = await list(`${scope}limit=5&${from}`)
    assert.deepEqual(names(first.items), [3, MAX_SCANNED])
    const second = await list(`${scope}limit=5&after=${first.nextAfter}`)
    assert.deepEqual([names(second.items)[0], second.nextAfter], [MAX_SCANNED + 1, null])
    // A page that fills up earlier ends with its last container.
    const full = await list(`${scope}limit=2&${from}`)
    assert.deepEqual(names(full.items), [3, MAX_SCANNED])
    assert.equal(names((await list(`${scope}limit=2&after=${full.nextAfter}`)).items)[0], MAX_SCANNED + 1)
  }
  await app.sql`delete from workload_container where pod_namespace = ${namespace}`
})

test('GET /attestations/running 200: product names of formats', async () => {
  const products = await startApp({ WIRE_NAMES: 'kguardian' })
  const digest = newDigest()
  await products.post('/pod/spec', replica('shop', [container('app', digest), container('side', digest)]))
  await storeAttestation(products, digest, {
    signatures: [signature({ format: 'signer-legacy', san: '"format":"signer-legacy"' })],
    attestations: [statement({ format: 'signer-legacy' })],
  })
  for (const item of (await list('', products)).items) {
    const [[signer], [attestation]] = [item.signers, item.attestations] as [Item[], Item[]]
    assert.deepEqual(
      [signer!.format, signer!.san, attestation!.format],
      ['cosign-legacy', '"format":"signer-legacy"', 'cosign-legacy'],
    )
  }
})

/** Runs containers whose results exceed one piece. Resolves to their items in the feed. */
async function large(namespace: string, containers: number): Promise<string[]> {
  const names = Array.from({ length: containers }, (_, n) => `c-${String(n).padStart(3, '0')}`)
  const wide = 's'.repeat(100_000)
  for (const [n, name] of names.entries()) {
    const digest = digestOf(`${namespace}-${n % 40}`)
    await insert(['primary', namespace, 'Deployment', 'web', name, digest])
    if (n < 40)
      await storeAttestation(app, digest, {
        signatures: [signature({ san: `${n} ${wide}` })],
        attestations: [statement({ san: wide })],
      })
  }
  return names
}

test('GET /attestations/running 200: a page of long results is sent in pieces, complete and in order; compressed on request; HEAD', async () => {
  const namespace = newNamespace()
  const names = await large(namespace, 60)
  const path = `/attestations/running?limit=200&namespace=${namespace}`
  const plain = await app.get(path)
  assert.ok(plain.text.length > 5 * PIECE_BYTES)
  assert.equal(plain.headers.has('content-length'), false)
  assert.deepEqual(
    plain.json.items.map((item: Item) => [item.container, String((item.signers as Item[])[0]!.san).split(' ')[0]]),
    names.map((name, n) => [name, String(n % 40)]),
  )
  assert.equal(plain.json.nextAfter, null)
  const packed = await app.app.request(path, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(gunzipSync(await packed.arrayBuffer()).toString(), plain.text)
  assert.deepEqual([(await app.request('HEAD', path)).status, (await app.request('HEAD', path)).text], [200, ''])
  const { nextAfter, items } = await list(`limit=31&namespace=${namespace}`)
  assert.deepEqual(
    [...items, ...(await list(`limit=200&namespace=${namespace}&after=${nextAfter}`)).items].map(
      (item) => item.container,
    ),
    names,
  )
})

test('GET /attestations/running 200: a result that is replaced or deleted between two pieces is shown as it is then', async () => {
  const namespace = newNamespace()
  const names = await large(namespace, 40)
  const answer = await app.app.request(`/attestations/running?limit=200&namespace=${namespace}`)
  const reader = answer.body!.getReader()
  const parts = [Buffer.from((await reader.read()).value!)]
  await storeAttestation(app, digestOf(`${namespace}-39`), { verdict: 'invalid', reason: 'bad_signature' })
  await app.sql`delete from image_attestation where digest = ${digestOf(`${namespace}-38`)}`
  await app.sql`delete from workload_container where pod_namespace = ${namespace} and container_name = 'c-037'`
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    parts.push(Buffer.from(value))
  }
  const { items } = JSON.parse(Buffer.concat(parts).toString()) as { items: Item[] }
  assert.deepEqual(
    items.map((item) => item.container),
    names,
  )
  assert.deepEqual(
    items.slice(-3).map(({ verdict, signers }) => [verdict, (signers as Item[]).length]),
    [
      ['verified', 1],
      [null, 0],
      ['invalid', 0],
    ],
  )
})

test('GET /attestations/running 200: a page that cannot be read to its end is visibly incomplete', async () => {
  const namespace = newNamespace()
  await large(namespace, 40)
  const answer = await app.app.request(`/attestations/running?limit=200&namespace=${namespace}`)
  const reader = answer.body!.getReader()
  const rest = async () => {
    while (!(await reader.read()).done);
  }
  await reader.read()
  await app.sql`alter table image_attestation rename to hidden`
  await assert.rejects(rest())
  await app.sql`alter table hidden rename to image_attestation`
  await app.sql`delete from workload_container where pod_namespace = ${namespace}`
})

test('GET /attestations/running 200: a container that runs throughout is on exactly one page, in order, whatever starts and stops meanwhile', {
  timeout: 900_000,
}, async () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e')
  const key = fc.tuple(
    fc.constantFrom('one', 'two'),
    fc.constantFrom('x', 'y'),
    fc.constantFrom('Job', 'Pod'),
    name,
    name,
    fc.constantFrom('1', '2'),
  )
  const change = fc.record({ kind: fc.constantFrom('come', 'go', 'end', 'checked', 'unchecked'), at: key })
  const place = (one: readonly string[]) => [...one.slice(0, 5), digestOf(one[5]!)] as unknown as ContainerCursor
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(key, { maxLength: 12, selector: String }),
      fc.array(change, { maxLength: 15 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(null, 'x', 'y'),
      async (stays, changes, limit, namespace) => {
        await app.sql`truncate workload_container, image_attestation`
        for (const one of stays) await insert(place(one))
        const isOurs = (one: readonly string[]) => stays.some((other) => String(other) === String(one))
        const left = [...changes]
        const seen: Item[] = []
        for (let after = '', pages = 0; ; pages++) {
          assert.ok(pages < 100, 'the walk has no end')
          const { items, nextAfter } = await list(`limit=${limit}${namespace ? `&namespace=${namespace}` : ''}${after}`)
          seen.push(...items)
          if (nextAfter === null) break
          after = `&after=${nextAfter}`
          const { kind, at } = left.shift() ?? {}
          if (!kind || !at) continue
          const [cluster, space, ownerKind, owner, containerName, digest] = place(at)
          const where = app.sql`
            cluster_id = ${cluster} and pod_namespace = ${space} and workload_kind = ${ownerKind} and workload_name = ${owner}
            and container_name = ${containerName} and image_digest = ${digest}`
          if (kind === 'come') await insert(place(at))
          else if (kind === 'checked') await storeAttestation(app, digest, { signatures: [signature()] })
          else if (kind === 'unchecked') await app.sql`delete from image_attestation where digest = ${digest}`
          else if (isOurs(at)) continue
          else if (kind === 'go') await app.sql`delete from workload_container where ${where}`
          else await app.sql`update workload_container set state = 'terminated' where ${where}`
        }
        const keys = seen.map(keyOf)
        const wanted = stays
          .filter((one) => namespace === null || one[1] === namespace)
          .map((one) => place(one).slice(1).join(' '))
        for (const one of new Set(wanted))
          assert.ok(keys.filter((other) => other === one).length >= wanted.filter((other) => other === one).length, one)
        // A key may be in both clusters.
        for (const one of keys) assert.ok(keys.filter((other) => other === one).length <= 2, one)
        if (namespace === null) assert.ok(seen.length <= 2 * new Set(keys).size)
        for (const item of seen) assert.ok(namespace === null || item.namespace === namespace)
      },
    ),
    { numRuns: depth(15, 100) },
  )
})

test('GET /attestations/running 200: a cursor of any place is short, valid, and continues behind it', {
  timeout: 900_000,
}, async () => {
  await app.sql`truncate workload_container`
  const text = (max: number) =>
    fc
      .oneof(
        fc.string({ unit: 'grapheme', maxLength: 40 }),
        fc
          .constantFrom('\u0001', '"', '\\', '€', '\n', '\u007f', '\\u0001')
          .map((one) => one.repeat(Math.floor(max / one.length))),
      )
      .filter((one) => !one.includes('\0') && one.isWellFormed() && one.length <= max)
  await fc.assert(
    fc.asyncProperty(text(253), text(64), text(253), text(80), async (namespace, kind, name, containerName) => {
      const [place, behind]: ContainerCursor[] = [
        ['primary', namespace, kind, name, containerName, digestOf('a')],
        ['primary', namespace, kind, name, `${containerName}x`, digestOf('a')],
      ]
      await app.sql`delete from workload_container`
      for (const one of [place!, behind!]) await insert(one)
      const { items, nextAfter } = await list('limit=1')
      assert.equal(items[0]!.container, containerName)
      assert.equal(nextAfter, writeContainerCursor(place!))
      assert.ok(nextAfter!.length <= MAX_CURSOR_CHARS)
      assert.deepEqual(
        (await list(`after=${nextAfter}`)).items.map((item) => item.container),
        [behind![4]],
      )
    }),
    {
      numRuns: depth(18, 150),
      examples: [['\u0001'.repeat(253), '\u0001'.repeat(64), '\u0001'.repeat(253), '\u0001'.repeat(80)]],
    },
  )
})

test('GET /attestations/running 200: a cursor is the hexadecimal form of a JSON array of six keys, the same for every replica', async () => {
  const place: ContainerCursor = ['primary', 'ns', 'Deployment', 'web', 'app', digestOf('a')]
  const cursor = Buffer.from(JSON.stringify(place)).toString('hex')
  assert.equal(writeContainerCursor(place), cursor)
  for (const one of [app, guarded])
    assert.equal((await one.get(`/attestations/running?after=${cursor}`, { token })).status, 200)
})

const hex = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('hex')
const KEYS = ['c', 'n', 'k', 'w', 'a', 'd']
for (const [what, after] of [
  ['no digits', 'not%20a%20cursor'],
  ['digits of no text', 'abcdef'],
  ['digits of no JSON', hex('[')],
  ['no array', hex({ a: 1 })],
  ['five keys', hex(KEYS.slice(1))],
  ['seven keys', hex([...KEYS, 'x'])],
  ['a number among the keys', hex([...KEYS.slice(1), 1])],
  ['a null among the keys', hex([...KEYS.slice(1), null])],
  ['U+0000 in a key', hex([...KEYS.slice(1), '\0'])],
  ['half a surrogate pair in a key', hex([...KEYS.slice(1), '\ud800'])],
  ['a blank in the JSON', hex(`${JSON.stringify(KEYS)} `)],
  ['an escape that need not be', hex(JSON.stringify(KEYS).replace('"c"', '"\\u0063"'))],
  ['an escaped control character', hex(JSON.stringify(['\u0001', ...KEYS.slice(1)]))],
  ['upper-case digits', hex(['J', ...KEYS.slice(1)]).toUpperCase()],
  ['a digit too many', `${hex(KEYS)}0`],
  ['a letter behind the digits', `${hex(KEYS)}zz`],
  ['the cursor of another list', Buffer.from(JSON.stringify(KEYS)).toString('base64url')],
  ['8 194 characters', hex(['x'.repeat(4_097 - JSON.stringify(KEYS).length + 1), ...KEYS.slice(1)])],
] as const)
  test(`GET /attestations/running 400: an after of ${what}`, async () => {
    const answer = await app.get(`/attestations/running?after=${after}`)
    assert.deepEqual(
      [answer.status, answer.text],
      [400, 'Query deserialize error: after: expected the nextAfter of a page of this list'],
    )
  })

test('GET /attestations/running 200: a cursor of 8 192 characters is accepted', async () => {
  const after = hex(['x'.repeat(4_096 - JSON.stringify(KEYS).length + 1), ...KEYS.slice(1)])
  assert.equal(after.length, MAX_CURSOR_CHARS)
  assert.equal((await app.get(`/attestations/running?after=${after}`)).status, 200)
})

for (const [query, field] of [
  ...['limit=abc', 'limit=', 'limit=1.5', 'limit=%00'].map((query) => [query, 'limit']),
  ['namespace=a%00b', 'namespace'],
] as [string, string][])
  test(`GET /attestations/running 400: ${query}`, async () => {
    const answer = await app.get(`/attestations/running?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Query deserialize error: ${field}: `))
  })

test('GET /attestations/running 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/attestations/running'))
  assertUnauthorized(await guarded.get('/attestations/running?limit=abc', { token: 'unknown' }))
})

test('GET /attestations/running 200: any token may read', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/attestations/running', { token: one })).status, 200)
})

test('GET /attestations/running 503: refused when the read budget is used up; a page holds its containers and one piece of results', async () => {
  const { budget } = guarded.deps
  for (const [query, kib] of [
    ['', 101 * 4 + 4 * 2_048],
    ['?limit=1', 1_024],
    ['?limit=9999', 201 * 4 + 4 * 2_048],
  ] as const) {
    const release = await budget.acquire(budget.totalKib - kib + 1)
    assertShed(await guarded.get(`/attestations/running${query}`, { token }), kib, budget.totalKib)
    release()
  }
  assert.equal((await guarded.get('/attestations/running', { token })).status, 200)
})

test('GET /attestations/running 503: a table is locked for longer than a statement may take', async () => {
  for (const table of ['workload_container', 'image_attestation'])
    await whileRefused(guarded.sql, table, async () =>
      assertDatabaseBusy(await guarded.get('/attestations/running', { token })),
    )
})
