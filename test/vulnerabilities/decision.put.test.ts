import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_HISTORY, MAX_HOLDING } from '../../lib/decisions/words.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import { startApp, TOKENS } from '../support/app.ts'
import {
  affected,
  decide,
  decision,
  findingsOf,
  listed,
  newCve,
  put,
  READ,
  refresh,
  workload,
} from '../support/decisions.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { assertDatabaseBusy, assertForbidden, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { finding, storeFindings, storeSbom } from '../support/supply-chain.ts'

const app = await startApp(TOKENS)

// biome-ignore lint/suspicious/noExplicitAny: answers are checked by value
type Json = any
const NOT_AFFECTED = { decision: 'not_affected', justification: 'vulnerable_code_not_present' }

const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10)
const history = async (id: string) => (await app.get(`/vulnerabilities/${id}/decisions`, { token: READ })).json.items
const run = async (namespace: string, digest: string, fields: Record<string, unknown> = {}) => {
  const pod = replica(namespace, [container('app', digest)], fields)
  assert.equal((await app.post('/pod/spec', pod, { token: TOKENS.BROKER_TOKEN_INGEST })).status, 200)
}

test('PUT /vulnerabilities/{id}/decision 200: every key in wire order, and at once on the finding and in the list', async () => {
  const { digest, id, namespace } = await affected(app)
  await refresh(app)
  const answer = await put(app, id, {
    scope: workload(namespace),
    package: 'openssl',
    decision: 'not_affected',
    justification: 'component_not_present',
    until: day(0),
    by: 'team-a',
    why: 'not installed',
  })
  assert.equal(answer.status, 200, answer.text)
  const { decidedAt, id: number, ...shown } = answer.json.decision
  assert.deepEqual([answer.json.status, Object.keys(answer.json)], ['stored', ['status', 'decision']])
  assert.match(decidedAt, /^\d{4}-\d\d-\d\dT/)
  assert.ok(Number.isInteger(number))
  assert.equal(
    JSON.stringify(shown),
    JSON.stringify({
      vulnerability: id,
      decision: 'not_affected',
      justification: 'component_not_present',
      scope: { type: 'workload', namespace, kind: 'Deployment', name: 'web' },
      package: 'openssl',
      until: day(0),
      by: 'team-a',
      why: 'not installed',
      origin: null,
    }),
  )
  const [found] = await findingsOf(app, digest)
  assert.deepEqual([found.decision, found.decided], [answer.json.decision, true])
  const row = await listed(app, id)
  assert.deepEqual([row.workloads, row.decidedWorkloads], [1, 1])
})

test('PUT /vulnerabilities/{id}/decision 200: nothing is hidden: all other keys and counts stay', async () => {
  const { digest, id, namespace } = await affected(app)
  await refresh(app)
  const without = (one: object) => {
    const { decision: _, decided: _1, decidedWorkloads: _2, ...rest } = one as Record<string, unknown>
    return JSON.stringify(rest)
  }
  const before = [await findingsOf(app, digest), [await listed(app, id)]].flat().map(without)
  await decide(app, id, { decision: 'not_affected', justification: 'component_not_present' })
  await decide(app, id, { scope: { type: 'namespace', namespace }, decision: 'will_not_fix' })
  assert.deepEqual([await findingsOf(app, digest), [await listed(app, id)]].flat().map(without), before)
})

test('PUT /vulnerabilities/{id}/decision 200: workload before image before namespace before all, then the newest', async () => {
  const { digest, id, namespace } = await affected(app)
  const scopes = [
    { type: 'all' },
    { type: 'namespace', namespace },
    { type: 'repository', repository: 'registry.test/team/app' },
    { type: 'image', digest },
    workload(namespace),
  ]
  for (const scope of scopes) {
    const made = await decide(app, id, { scope })
    assert.deepEqual((await findingsOf(app, digest))[0].decision, made)
  }
  // An image and a repository are equally specific: the newest counts.
  const newest = await decide(app, id, { scope: scopes[2], why: 'once more' })
  await decide(app, id, { scope: scopes[4], decision: null })
  assert.deepEqual((await findingsOf(app, digest))[0].decision, newest)
})

test('PUT /vulnerabilities/{id}/decision 200: a finding is decided where the decision of each workload settles it', async () => {
  const { digest, id, namespace } = await affected(app)
  const other = newNamespace()
  await run(other, digest)
  await refresh(app)
  const counts = async () => {
    const [found] = await findingsOf(app, digest)
    const rows = [await listed(app, id), await listed(app, id, `namespace=${namespace}`)]
    return [found.decided, ...rows.map((row) => `${row.decidedWorkloads}/${row.workloads}`)]
  }
  await decide(app, id, { scope: { type: 'namespace', namespace } })
  assert.deepEqual(await counts(), [false, '1/2', '1/1'])
  await decide(app, id, { scope: workload(other), decision: 'fixed' })
  assert.deepEqual(await counts(), [true, '2/2', '1/1'])
  // More specific than that of the namespace, and work is left.
  await decide(app, id, { scope: workload(namespace), decision: 'under_investigation' })
  assert.deepEqual(await counts(), [false, '1/2', '0/1'])
  await decide(app, id, { scope: workload(namespace), decision: null })
  await decide(app, id, { scope: workload(other), decision: 'affected' })
  await decide(app, id, { scope: { type: 'all' } })
  assert.deepEqual(await counts(), [false, '1/2', '1/1'])
})

test('PUT /vulnerabilities/{id}/decision 200: a package by name or by URL; the URL needs the version and qualifiers that it names', async () => {
  const purl = 'pkg:deb/debian/zlib1g@1%3A1.2.13?arch=amd64&distro=debian-12'
  const { digest, id } = await affected(app, {
    package_name: 'zlib1g',
    installed_version: '1:1.2.13',
    package_purl: purl,
  })
  await storeFindings(app, digest, 'db-matcher', [finding(id, { package_name: 'curl' })])
  await refresh(app)
  const shown = async () =>
    Object.fromEntries(
      (await findingsOf(app, digest)).map((one: { package: { name: string }; decision: unknown }) => [
        one.package.name,
        one.decision !== null,
      ]),
    )
  const tried = async (text: string) => {
    await decide(app, id, { package: text })
    const found = await shown()
    await decide(app, id, { package: text, decision: null })
    return found
  }
  assert.deepEqual(await tried('curl'), { zlib1g: false, curl: true })
  for (const text of [
    'zlib1g',
    'pkg:deb/debian/zlib1g',
    'pkg:deb/debian/zlib1g@1:1.2.13',
    'pkg:deb/debian/zlib1g@1%3a1.2.13',
    'pkg:deb/debian/zlib1g?distro=debian-12',
    purl,
  ])
    assert.deepEqual(await tried(text), { zlib1g: true, curl: false }, text)
  for (const text of [
    'zlib',
    'Zlib1g',
    'pkg:deb/debian/zlib',
    'pkg:deb/ubuntu/zlib1g',
    'pkg:deb/debian/zlib1g@1.2.13',
    'pkg:deb/debian/zlib1g?arch=arm64',
    'pkg:deb/debian/curl',
  ])
    assert.deepEqual(await tried(text), { zlib1g: false, curl: false }, text)
  // All packages have to be decided.
  await decide(app, id, { package: 'pkg:deb/debian/zlib1g@1:1.2.13' })
  assert.equal((await listed(app, id)).decidedWorkloads, 0)
  await decide(app, id, { package: 'curl' })
  assert.equal((await listed(app, id)).decidedWorkloads, 1)
})

test('PUT /vulnerabilities/{id}/decision 200: package URLs are compared in their canonical form', async () => {
  const { digest, id } = await affected(app)
  for (const [found, decided, holds = true] of [
    ['pkg:pypi/jinja2@3.1', 'pkg:PYPI/Jinja2'],
    ['pkg:pypi/Jinja2@3.1', 'pkg:pypi/jinja2@3.1'],
    ['pkg:pypi/typing-extensions@4', 'pkg:pypi/typing_extensions'],
    ['pkg:golang/github.com/foo/bar@v1', 'pkg:golang/github.com%2Ffoo%2Fbar'],
    ['pkg:golang/github.com/BurntSushi/toml@v1', 'pkg:golang/github.com/burntsushi/toml'],
    ['pkg:deb/debian/curl@8?distro=debian-12', 'pkg:deb/debian/curl?distro=debian%2D12'],
    ['pkg:deb/debian/curl@1%3a8%7Ea', 'pkg:deb/debian/curl@1:8~a'],
    ['pkg:npm/%40angular/core@1', 'pkg:npm/@angular/core@1'],
    ['pkg:npm/a@%2540', 'pkg:npm/a@%40', false],
    ['pkg:maven/Org/a@1', 'pkg:maven/org/a@1', false],
    ['pkg:pypi/a@1.0RC', 'pkg:pypi/a@1.0rc', false],
    ['pkg:npm/a@%zz%E9%', 'pkg:npm/a@%zz%e9%'],
  ] as const) {
    await storeFindings(app, digest, 'registry', [finding(id, { package_purl: found })])
    await decide(app, id, { package: decided })
    assert.equal((await findingsOf(app, digest))[0].decided, holds, decided)
    await decide(app, id, { package: decided, decision: null })
  }
})

test('PUT /vulnerabilities/{id}/decision 200: a package URL has to match all packages that a finding merges', async () => {
  const [npm, pypi] = ['pkg:npm/protobuf@3', 'pkg:pypi/protobuf@3']
  const one = { package_name: 'protobuf', installed_version: '3' }
  const { digest, id } = await affected(app, { ...one, package_purl: npm })
  await storeFindings(app, digest, 'db-matcher', [finding(id, { ...one, package_purl: pypi })])
  await refresh(app)
  const shown = async () => {
    const [found, ...others] = await findingsOf(app, digest)
    assert.deepEqual(others, [])
    return [found.decided, (await listed(app, id)).decidedWorkloads]
  }
  for (const purl of [npm, pypi]) {
    await decide(app, id, { package: purl })
    assert.deepEqual(await shown(), [false, 0], purl)
  }
  await storeFindings(app, digest, 'db-matcher', [finding(id, { ...one, package_purl: `${npm}?arch=amd64` })])
  assert.deepEqual((await findingsOf(app, digest))[0].decided, true)
})

test('PUT /vulnerabilities/{id}/decision 200: ids in any case, and aliases', async () => {
  const { digest, id } = await affected(app, { aliases: ['GHSA-aaaa-bbbb-0001'] })
  const made = await decide(app, 'ghsa-AAAA-bbbb-0001')
  assert.deepEqual((await findingsOf(app, digest))[0].decision, made)
  // The same scope under another id of it.
  const again = await decide(app, id.toLowerCase(), { why: 'looked again' })
  assert.deepEqual((await findingsOf(app, digest))[0].decision, again)
  assert.deepEqual(
    (await history('GHSA-AAAA-BBBB-0001')).map((one: { holds: boolean; endedHow: string }) => [
      one.holds,
      one.endedHow,
    ]),
    [
      [true, null],
      [false, 'replaced'],
    ],
  )
})

test('PUT /vulnerabilities/{id}/decision 200: an advisory about two CVEs does not make them one', async () => {
  const [one, other, advisory] = [newCve(), newCve(), `ALAS-${newCve()}`]
  const { digest, namespace } = await affected(app)
  await storeFindings(app, digest, 'registry', [finding(one), finding(other)])
  const advised = newDigest()
  await run(namespace, advised)
  await storeFindings(app, advised, 'db-matcher', [finding(advisory, { aliases: [one, other] })])
  await refresh(app)
  const words = async () => {
    const found = [...(await findingsOf(app, digest)), ...(await findingsOf(app, advised))]
    return Object.fromEntries(found.map((item) => [item.id, [item.decision?.decision ?? null, item.decided]]))
  }
  const counts = async () => {
    const { items } = (await app.get(`/vulnerabilities?namespace=${namespace}`, { token: READ })).json
    return Object.fromEntries(items.map((item: Json) => [item.id, item.decidedWorkloads]))
  }
  const settled = ['not_affected', true]
  const open = [null, false]
  await decide(app, other, NOT_AFFECTED)
  assert.deepEqual(await words(), { [one]: open, [other]: settled, [advisory]: open })
  assert.deepEqual(await counts(), { [one]: 0, [other]: 1, [advisory]: 0 })
  await decide(app, one, { decision: 'affected' })
  assert.deepEqual(await words(), { [one]: ['affected', false], [other]: settled, [advisory]: open })
  // What is decided about the advisory holds for both, and ends no decision about one of them.
  await decide(app, advisory, { decision: 'fixed' })
  await decide(app, one, { decision: null })
  assert.deepEqual(await words(), { [one]: ['fixed', true], [other]: ['fixed', true], [advisory]: ['fixed', true] })
  await decide(app, advisory, { decision: null })
  assert.deepEqual(await words(), { [one]: open, [other]: settled, [advisory]: open })
  assert.deepEqual(await counts(), { [one]: 0, [other]: 1, [advisory]: 0 })
})

test('PUT /vulnerabilities/{id}/decision 200: a decision about an advisory that two CVEs name stays when theirs end', async () => {
  const [one, other, advisory] = [newCve(), newCve(), `DSA-${newCve()}`]
  const { digest } = await affected(app)
  await storeFindings(
    app,
    digest,
    'registry',
    [one, other].map((id) => finding(id, { aliases: [advisory] })),
  )
  const by = async () =>
    Object.fromEntries((await findingsOf(app, digest)).map((item: Json) => [item.id, item.decision?.vulnerability]))
  await decide(app, advisory)
  await decide(app, one, { why: 'looked at it' })
  assert.deepEqual(await by(), { [one]: one, [other]: advisory })
  await decide(app, advisory, { decision: null })
  assert.deepEqual(await by(), { [one]: one, [other]: undefined })
})

test('PUT /vulnerabilities/{id}/decision 200: a decision about an index holds for its platforms, not the other way round', async () => {
  const { digest, id, namespace } = await affected(app)
  const index = newDigest()
  await storeFindings(app, digest, 'db-matcher', [finding(id)], { index_digest: index })
  const made = await decide(app, id, { scope: { type: 'image', digest: index } })
  assert.deepEqual((await findingsOf(app, digest))[0].decision, made)
  await refresh(app)
  assert.equal((await listed(app, id, `namespace=${namespace}`)).decidedWorkloads, 1)
  await decide(app, id, { scope: { type: 'image', digest: index }, decision: null })
  await decide(app, id, { scope: { type: 'image', digest } })
  // A node reports the index itself; the report of its platform answers for it.
  await run(newNamespace(), index)
  await storeFindings(app, digest, 'db-matcher', [finding(id), finding(newCve())], { index_digest: index })
  const ofIndex = await findingsOf(app, index, `vuln_id=${id}`)
  assert.deepEqual([ofIndex.length, ofIndex[0].decision], [1, null])
})

test('PUT /vulnerabilities/{id}/decision 200: a decision about a platform does not hold for the other platforms of its index', async () => {
  for (const how of ['links of the SBOM', 'the whole map', 'others only', 'an SBOM without index']) {
    const [namespace, amd64, arm64, index, id] = [newNamespace(), newDigest(), newDigest(), newDigest(), newCve()]
    for (const digest of [amd64, arm64, index])
      await run(namespace, digest, { workload_name: `w-${digest.slice(7, 15)}` })
    const map = { 'linux/amd64': amd64, 'linux/arm64': arm64 }
    const others = { 'linux/arm64': arm64 }
    const of = {
      'links of the SBOM': [{ index_digest: index }, null],
      'the whole map': [{}, { index_digest: index, platform_manifests: map }],
      'others only': [{}, { index_digest: index, platform_manifests: others }],
      'an SBOM without index': [{}, { index_digest: index }],
    }[how]!
    await storeSbom(app, amd64, 'registry', [], of[0]!)
    if (of[1] !== null) await storeFindings(app, amd64, 'registry', [finding(id)], of[1])
    await storeFindings(app, index, 'db-matcher', [finding(id)], {
      ...{ digest_kind: 'index', platform_manifests: map, sbom_sources: ['registry'] },
    })
    await refresh(app)
    const shown = async () => {
      const found = await Promise.all([amd64, arm64, index].map((digest) => findingsOf(app, digest, `vuln_id=${id}`)))
      return [...found.map(([one]) => one.decided), (await listed(app, id)).decidedWorkloads]
    }
    await decide(app, id, { scope: { type: 'image', digest: amd64 } })
    assert.deepEqual(await shown(), [true, false, false, 1], how)
    await decide(app, id, { scope: { type: 'image', digest: amd64 }, decision: null })
    await decide(app, id, { scope: { type: 'image', digest: index } })
    assert.deepEqual(await shown(), [true, true, true, 3], how)
  }
})

test('PUT /vulnerabilities/{id}/decision 200: the same again changes nothing, another one is kept beside it as history', async () => {
  const id = newCve()
  const made = await decide(app, id)
  const again = await put(app, id, decision())
  assert.deepEqual([again.status, again.json], [200, { status: 'unchanged', decision: made }])
  await decide(app, id, { why: 'another reason', until: day(3) })
  const gone = await decide(app, id, { decision: null, by: 'team-b', why: 'a mistake' })
  assert.equal(gone, null)
  const nothing = await put(app, id, decision({ decision: null }))
  assert.deepEqual(nothing.json, { status: 'unchanged', decision: null })
  assert.deepEqual(
    (await history(id)).map((one: Record<string, unknown>) => [one.why, one.endedHow, one.endedBy, one.endedWhy]),
    [
      ['another reason', 'withdrawn', 'team-b', 'a mistake'],
      ['the port is closed', 'replaced', 'team-a', 'another reason'],
    ],
  )
})

test('PUT /vulnerabilities/{id}/decision 200: after its last day it holds no more, without any job', async () => {
  const { digest, id } = await affected(app)
  await decide(app, id, { until: day(1) })
  await app.sql`update vuln_decision set holds_until = holds_until - 2 where name = ${id}`
  const [found] = await findingsOf(app, digest)
  assert.deepEqual([found.decision, found.decided], [null, false])
  assert.deepEqual((await history(id))[0].holds, false)
})

test('PUT /vulnerabilities/{id}/decision 200: of many writers at once the last one holds, and each is in the history', async () => {
  const id = newCve()
  const all = await Promise.all(Array.from({ length: 8 }, (_, n) => put(app, id, decision({ why: `writer ${n}` }))))
  assert.deepEqual([...new Set(all.map(({ json }) => json.status))], ['stored'])
  const items = await history(id)
  assert.deepEqual([items.length, items.filter(({ holds }: { holds: boolean }) => holds).length], [8, 1])
  assert.equal(items[0].holds, true)
})

test('PUT /vulnerabilities/{id}/decision 200: the same by many writers at once is stored once', async () => {
  const id = newCve()
  const all = await Promise.all(Array.from({ length: 8 }, () => put(app, id, decision())))
  assert.deepEqual(all.map(({ json }) => json.status).sort(), ['stored', ...Array(7).fill('unchanged')])
  assert.equal((await history(id)).length, 1)
})

test(`PUT /vulnerabilities/{id}/decision 200: the newest ${MAX_HISTORY} ended decisions of an id are kept`, async () => {
  const id = newCve()
  await app.sql`
    insert into vuln_decision (vuln_id, name, scope_rank, decision, decided_by, reason, decided_at, ended_at, ended_how)
    select ${id}, ${id}, 3, 'accepted', 'a', n::text, now(), now(), 'replaced' from generate_series(1, ${MAX_HISTORY + 5}::int) n`
  await decide(app, id)
  const [row] =
    await app.sql`select count(*)::int as n, min(reason) filter (where reason = '6') as oldest from vuln_decision where name = ${id}`
  assert.deepEqual([row!.n, row!.oldest], [MAX_HISTORY + 1, '6'])
})

test('PUT /vulnerabilities/{id}/decision 200: a pod that starts later is undecided until a decision covers it', async () => {
  const { digest, id, namespace } = await affected(app)
  await refresh(app)
  await decide(app, id, { scope: { type: 'namespace', namespace } })
  assert.equal((await listed(app, id)).decidedWorkloads, 1)
  await run(newNamespace(), digest)
  assert.equal((await findingsOf(app, digest))[0].decided, false)
  await refresh(app)
  const row = await listed(app, id)
  assert.deepEqual([row.workloads, row.decidedWorkloads], [2, 1])
})

for (const [what, fields, says] of [
  ['no scope', { scope: undefined }, 'scope: '],
  ['an unknown scope', { scope: { type: 'cluster' } }, 'scope.type: '],
  ['a workload without a kind', { scope: { type: 'workload', namespace: 'a', name: 'b' } }, 'scope.kind: '],
  [
    'a blank namespace',
    { scope: { type: 'namespace', namespace: ' ' } },
    'scope.namespace: expected text that is not blank',
  ],
  ['a digest that is none', { scope: { type: 'image', digest: 'sha256:x' } }, 'scope.digest: expected sha256:'],
  [
    'a repository that is none',
    { scope: { type: 'repository', repository: '/' } },
    'scope.repository: expected the name',
  ],
  ['an unknown decision', { decision: 'ignored' }, 'decision: '],
  ['not_affected without a reason', { decision: 'not_affected' }, 'justification: required with not_affected'],
  [
    'a justification of another decision',
    { justification: 'component_not_present' },
    'justification: only with not_affected',
  ],
  ['a day that is past', { until: '2020-01-01' }, 'until: expected a day that is not past'],
  ['a day that is none', { until: '2099-02-30' }, 'until: expected a day of the calendar'],
  ['a time', { until: '2099-01-01T00:00:00Z' }, 'until: expected a day of the calendar'],
  ['nobody', { by: '' }, 'by: expected text that is not blank'],
  ['no reason', { why: undefined }, 'why: '],
  ['a long reason', { why: 'x'.repeat(1_025) }, 'why: Too big'],
  ['U+0000', { why: 'a\u0000' }, 'why: U+0000 is not allowed'],
  ['half a character', { by: '\ud800' }, 'by: half a surrogate pair'],
] as const)
  test(`PUT /vulnerabilities/{id}/decision 400: ${what}`, async () => {
    const id = newCve()
    const answer = await put(app, id, decision(fields))
    assert.equal(answer.status, 400)
    assert.ok(answer.text.startsWith(`Json deserialize error: ${says}`), answer.text)
    assert.deepEqual(await history(id), [])
  })

test('PUT /vulnerabilities/{id}/decision 400: an id that is none', async () => {
  for (const id of ['%00', '%20', 'x'.repeat(129), "CVE-1'"]) assert.equal((await put(app, id, decision())).status, 400)
})

test('PUT /vulnerabilities/{id}/decision 200: texts are plain text', async () => {
  const id = newCve()
  const odd = `%_'"\\$1 <b> \u2028 é 😀`
  const made = await decide(app, id, { by: odd, why: odd, package: odd, scope: workload(odd, odd, 'Pod') })
  assert.deepEqual([made.by, made.why, made.package, made.scope.name], [odd, odd, odd, odd])
})

test('PUT /vulnerabilities/{id}/decision 401: without a token', async () => {
  assertUnauthorized(await app.request('PUT', '/vulnerabilities/CVE-1/decision', { body: decision() }))
})

test('PUT /vulnerabilities/{id}/decision 403: agents may not decide', async () => {
  assertForbidden(await put(app, 'CVE-1', decision(), TOKENS.BROKER_TOKEN_INGEST), 'supplychain')
})

test('PUT /vulnerabilities/{id}/decision 413: a body of more than 2 MiB', async () => {
  const { status } = await put(app, newCve(), decision({ why: 'x'.repeat(MAX_CORE_BODY_BYTES) }))
  assert.equal(status, 413)
})

test('PUT /vulnerabilities/{id}/decision 503: a cancelled statement', async () => {
  await whileRefused(app.sql, 'vuln_decision', async () => assertDatabaseBusy(await put(app, newCve(), decision())))
})

// Last: the database holds no more decisions afterwards.
test(`PUT /vulnerabilities/{id}/decision 409: more than ${MAX_HOLDING} decisions`, async () => {
  const id = newCve()
  await decide(app, id)
  await app.sql`
    insert into vuln_decision (vuln_id, name, scope_rank, decision, decided_by, reason, decided_at)
    select 'FULL-' || n, 'FULL-' || n, 3, 'accepted', 'a', 'b', now() from generate_series(1, ${MAX_HOLDING}::int) n`
  const answer = await put(app, newCve(), decision())
  assert.deepEqual(
    [answer.status, answer.text],
    [409, `${MAX_HOLDING} decisions hold already: take back those that are not needed`],
  )
  // Those that are there can be replaced and taken back.
  await decide(app, id, { why: 'still' })
  await decide(app, id, { decision: null })
  await app.sql`truncate vuln_decision`
})
