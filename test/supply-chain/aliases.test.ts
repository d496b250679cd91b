/** A finding posted under an id that another payload names as an alias, in every list and count. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { expectedSummary, storedSummary } from './summary-model.ts'

const app = await startApp(TOKENS)
const token = TOKENS.BROKER_TOKEN_READ
const { sql, deps, db } = app
let made = 0

interface Posted {
  id: string
  aliases?: string[]
  severity?: string
  package?: { name: string; version: string; type: string }
  [key: string]: unknown
}

/** Ids that no other test has. */
function newIds() {
  made++
  return { cve: `CVE-2026-${10_000 + made}`, ghsa: `GHSA-aaaa-${made}`, other: `PYSEC-${made}` }
}

async function runningImage() {
  const [digest, namespace] = [newDigest(), newNamespace()]
  const pod = await app.post('/pod/spec', replica(namespace, [container('app', digest)]), {
    token: TOKENS.BROKER_TOKEN_INGEST,
  })
  assert.equal(pod.status, 200, pod.text)
  return { digest, namespace }
}

async function scanned(digest: string, source: string, findings: Posted[], fields: object = {}): Promise<string> {
  made++
  const vulnerabilities = findings.map((one) => ({
    severity: 'HIGH',
    package: { name: 'requests', version: '2.0', type: 'pip' },
    ...one,
  }))
  const scanned_at = new Date(Date.now() - 3_600_000 + made * 1_000).toISOString()
  const payload = {
    schema_version: 1,
    source,
    image: { digest, repository: 'team/app' },
    scanned_at,
    vulnerabilities,
    ...fields,
  }
  const answer = await app.post(`/images/${digest}/vulnerabilities`, payload, {
    token: TOKENS.BROKER_TOKEN_SUPPLYCHAIN,
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.status
}

const pass = () =>
  supplyChainRefresh.run({ config: deps.config, db, log: deps.log, signal: new AbortController().signal })
async function passed(): Promise<void> {
  assert.equal((await pass()).outcome, 'done')
  assert.deepEqual(await storedSummary(sql), await expectedSummary(sql, deps.config.imageRunningWindowSecs))
}
async function get(path: string) {
  const answer = await app.get(path, { token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const ids = (items: { id: string }[]) => items.map(({ id }) => id)
// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
const findingsOf = async (digest: string): Promise<any[]> => (await get(`/images/${digest}/vulnerabilities`)).items
const listed = async (namespace: string) => ids((await get(`/vulnerabilities?namespace=${namespace}`)).items)
const storedIds = async (digest: string, source: string) =>
  (
    await sql<
      { id: string }[]
    >`select vuln_id as id from image_finding where digest = ${digest} and source = ${source} order by 1`
  ).map(({ id }) => id)

/** One finding of both sources, in the list of the image, in the summary and in the exposure. */
async function assertOne(
  { digest, namespace }: { digest: string; namespace: string },
  id: string,
  alias: string,
): Promise<void> {
  const found = await findingsOf(digest)
  assert.deepEqual(ids(found), [id])
  assert.deepEqual([found[0].aliases, found[0].sources], [[alias], ['db-matcher', 'operator-scanner']])
  const summary = (await get(`/vulnerabilities?namespace=${namespace}`)).items
  assert.deepEqual(
    [ids(summary), summary[0].aliases, summary[0].images, summary[0].packageCount],
    [[id], [alias], 1, 1],
  )
  for (const name of [id, alias]) {
    const exposure = await get(`/vulnerabilities/${name}/exposure`)
    assert.deepEqual(
      [exposure.images.length, exposure.images[0].packages.length, exposure.images[0].sources.length],
      [1, 1, 2],
    )
    assert.deepEqual(ids((await get(`/images/${digest}/vulnerabilities?vuln_id=${name}`)).items), [id])
    assert.deepEqual(ids((await get(`/vulnerabilities?vuln_id=${name}`)).items), [id])
  }
}

test('a finding posted after its id was named as an alias is stored by the vulnerability at once', async () => {
  const { cve, ghsa } = newIds()
  const image = await runningImage()
  await scanned(image.digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  await scanned(image.digest, 'db-matcher', [{ id: ghsa.toLowerCase() }])
  assert.deepEqual(ids(await findingsOf(image.digest)), [cve])
  await passed()
  await assertOne(image, cve, ghsa)
})

test('a finding posted before its id was named as an alias is renamed by the next pass, and counted once', async () => {
  const { cve, ghsa } = newIds()
  const image = await runningImage()
  await scanned(image.digest, 'db-matcher', [{ id: ghsa, epss: 0.5, kev: true }])
  await passed()
  assert.deepEqual(await listed(image.namespace), [ghsa])
  await scanned(image.digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  await passed()
  await assertOne(image, cve, ghsa)
  const [found] = await findingsOf(image.digest)
  assert.deepEqual([found.epss, found.kev], [0.5, true], 'its facts are those of the vulnerability')
  const before = await sql`select f.*, f.xmin::text from image_finding f order by 1, 2, 3, 4`
  await passed()
  assert.deepEqual(
    await sql`select f.*, f.xmin::text from image_finding f order by 1, 2, 3, 4`,
    before,
    'a pass without news writes nothing',
  )
})

test('an alias named for another image counts too, and an id of another database is stored by the GHSA id', async () => {
  const { ghsa, other } = newIds()
  const [image, teacher] = [await runningImage(), await runningImage()]
  await scanned(image.digest, 'db-matcher', [{ id: other }])
  await scanned(teacher.digest, 'operator-scanner', [{ id: ghsa, aliases: [other] }])
  await passed()
  assert.deepEqual(ids(await findingsOf(image.digest)), [ghsa])
  assert.deepEqual([await listed(image.namespace), await listed(teacher.namespace)], [[ghsa], [ghsa]])
  assert.equal((await get(`/vulnerabilities?vuln_id=${other}`)).items[0].images, 2)
})

test('an id claimed by several vulnerabilities stays by itself, also when the second claim comes later', async () => {
  const { cve, ghsa } = newIds()
  const second = newIds().cve
  const image = await runningImage()
  await scanned(image.digest, 'db-matcher', [{ id: ghsa }])
  await scanned(image.digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  await passed()
  assert.deepEqual(await storedIds(image.digest, 'db-matcher'), [cve])
  await scanned(newDigest(), 'operator-scanner', [{ id: second, aliases: [ghsa] }])
  await passed()
  assert.deepEqual(await storedIds(image.digest, 'db-matcher'), [ghsa])
  assert.deepEqual(await listed(image.namespace), [cve, ghsa])
  await scanned(image.digest, 'db-matcher', [{ id: ghsa, title: 'anew' }])
  assert.deepEqual(await storedIds(image.digest, 'db-matcher'), [ghsa])
})

test('a CVE is never stored by an advisory that names it, nor an advisory about several CVEs by one of them', async () => {
  const { cve, ghsa, other } = newIds()
  const second = newIds().cve
  const image = await runningImage()
  await scanned(image.digest, 'db-matcher', [{ id: cve }, { id: ghsa, aliases: [cve, second] }])
  await scanned(image.digest, 'operator-scanner', [
    { id: other, aliases: [cve, second] },
    { id: cve, aliases: [ghsa] },
  ])
  await passed()
  assert.deepEqual(await storedIds(image.digest, 'db-matcher'), [cve, ghsa])
  assert.deepEqual(await storedIds(image.digest, 'operator-scanner'), [cve, other])
})

test('a CVE of an advisory about several is found with the advisory, without the other ones', async () => {
  const [one, other] = [newIds().cve, newIds().cve]
  const advisory = newIds().other
  const [image, advised] = [await runningImage(), await runningImage()]
  await scanned(image.digest, 'db-matcher', [{ id: one }])
  await scanned(advised.digest, 'db-matcher', [{ id: advisory, aliases: [one, other] }])
  await passed()
  const found = async (id: string) => {
    const exposure = await get(`/vulnerabilities/${id}/exposure`)
    const images = exposure.images.map((each: { digest: string }) => each.digest).sort()
    const listed = ids((await get(`/vulnerabilities?vuln_id=${id}`)).items).sort()
    const inImage = ids((await get(`/images/${image.digest}/vulnerabilities?vuln_id=${id}`)).items)
    return [exposure.aliases, images, listed, inImage]
  }
  const both = [image.digest, advised.digest].sort()
  assert.deepEqual(await found(one), [[advisory], both, [one, advisory], [one]])
  assert.deepEqual(await found(other), [[advisory], [advised.digest], [advisory], []])
  assert.deepEqual(await found(advisory), [[one, other], both, [one, advisory], [one]])
})

test('a repeated payload is unchanged, and a newer one is stored by the same id', async () => {
  const { cve, ghsa } = newIds()
  const image = await runningImage()
  const scanned_at = new Date(Date.now() - 600_000).toISOString()
  assert.equal(await scanned(image.digest, 'db-matcher', [{ id: ghsa }], { scanned_at }), 'stored')
  await scanned(image.digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  await passed()
  assert.equal(await scanned(image.digest, 'db-matcher', [{ id: ghsa }], { scanned_at }), 'unchanged')
  assert.equal(
    await scanned(image.digest, 'db-matcher', [{ id: ghsa }], { scanned_at: new Date().toISOString() }),
    'unchanged',
  )
  await assertOne(image, cve, ghsa)
  assert.equal(
    await scanned(image.digest, 'db-matcher', [{ id: ghsa, title: 'new' }], { scanned_at: new Date().toISOString() }),
    'stored',
  )
  await assertOne(image, cve, ghsa)
  await passed()
  await assertOne(image, cve, ghsa)
})

test('a finding gets its own id back when the payload with the alias is replaced and the alias forgotten', async () => {
  const { cve, ghsa } = newIds()
  const image = await runningImage()
  await scanned(image.digest, 'db-matcher', [{ id: ghsa }])
  await scanned(image.digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  await passed()
  await scanned(image.digest, 'operator-scanner', [{ id: cve }])
  await passed()
  await assertOne(image, cve, ghsa)
  await sql`update cve_alias set told_at = told_at - interval '3 days'`
  // A pass forgets aliases at its end.
  await pass()
  await passed()
  const found = await findingsOf(image.digest)
  assert.deepEqual(
    found.map(({ id, aliases, sources }) => [id, aliases, sources]),
    [
      [cve, [], ['operator-scanner']],
      [ghsa, [], ['db-matcher']],
    ],
  )
  assert.deepEqual(await listed(image.namespace), [cve, ghsa])
  assert.deepEqual([...(await sql`select 1 from finding_sent where digest = ${image.digest}`)], [])
})

test('findings under both ids of a package become one with the values of both, and two again without the alias', async () => {
  const { cve, ghsa } = newIds()
  const image = await runningImage()
  const both = [
    {
      id: ghsa,
      severity: 'CRITICAL',
      fixed_version: '2',
      file_paths: ['b'],
      score: 9,
      epss: 0.25,
      cvss: { ghsa: { v3_score: 9 } },
      title: 'of GHSA',
    },
    { id: cve, severity: 'LOW', fixed_version: '3', file_paths: ['a'], score: 2, primary_url: 'https://a.test/' },
    { id: cve, package: { name: 'other', version: '1', type: 'pip' } },
  ]
  await scanned(image.digest, 'db-matcher', both)
  const before = await sql`select * from image_finding where digest = ${image.digest} order by vuln_id, package_name`
  const teacher = newDigest()
  await scanned(teacher, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  for (const again of [false, true]) {
    if (again)
      await scanned(image.digest, 'db-matcher', [
        ...both,
        { id: 'CVE-1', package: { name: 'third', version: '1', type: 'pip' } },
      ])
    await passed()
    const [found, ...others] = (await findingsOf(image.digest)).filter(({ package: { name } }) => name === 'requests')
    assert.deepEqual(others, [])
    assert.deepEqual(
      [
        found.id,
        found.severity,
        found.fixedVersions,
        found.filePaths,
        found.score,
        found.epss,
        found.title,
        found.primaryUrl,
        found.cvss,
      ],
      [cve, 'CRITICAL', ['2', '3'], ['a', 'b'], 9, 0.25, 'of GHSA', 'https://a.test/', { ghsa: { v3_score: 9 } }],
    )
  }
  await scanned(image.digest, 'db-matcher', both)
  await scanned(teacher, 'operator-scanner', [])
  await sql`update cve_alias set told_at = told_at - interval '3 days'`
  await pass()
  await passed()
  assert.deepEqual(
    await sql`select * from image_finding where digest = ${image.digest} order by vuln_id, package_name`,
    before,
  )
})

test('an id is followed along several aliases', async () => {
  const { cve, ghsa, other } = newIds()
  const image = await runningImage()
  await scanned(image.digest, 'registry', [{ id: other }])
  await scanned(image.digest, 'db-matcher', [{ id: ghsa, aliases: [other] }])
  await passed()
  await scanned(image.digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  await passed()
  await passed()
  const [found, ...others] = await findingsOf(image.digest)
  assert.deepEqual([found.id, found.aliases, found.sources.length, others], [cve, [ghsa, other], 3, []])
})

for (const isReplaced of [false, true])
  test(`a pass ends where the id that stands for another one has become an alias${isReplaced ? ', also if no payload has it any more' : ''}`, async () => {
    const { cve, ghsa, other } = newIds()
    const image = await runningImage()
    await scanned(image.digest, 'db-matcher', [{ id: other }])
    await scanned(image.digest, 'registry', [{ id: ghsa, aliases: [other] }])
    await passed()
    assert.deepEqual(await storedIds(image.digest, 'db-matcher'), [ghsa])
    if (isReplaced) await scanned(image.digest, 'registry', [])
    await scanned(image.digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
    await passed()
    await passed()
    assert.deepEqual(ids(await findingsOf(image.digest)), isReplaced ? [cve, ghsa] : [cve])
  })

test('a deleted payload leaves none of its rows', async () => {
  const { cve, ghsa } = newIds()
  const digest = newDigest()
  await scanned(digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }])
  await scanned(digest, 'db-matcher', [{ id: ghsa }])
  assert.equal((await sql`select 1 from finding_sent where digest = ${digest}`).length, 1)
  await sql`update image_report set received_at = received_at - interval '400 days' where digest = ${digest}`
  await passed()
  assert.equal((await sql`select 1 from finding_sent where digest = ${digest}`).length, 0)
})

test('two replicas that store and run passes at the same time count everything once', async () => {
  const { cve, ghsa } = newIds()
  const images = await Promise.all(Array.from({ length: 6 }, runningImage))
  await Promise.all([
    ...images.flatMap(({ digest }) => [
      scanned(digest, 'db-matcher', [{ id: ghsa }]),
      scanned(digest, 'operator-scanner', [{ id: cve, aliases: [ghsa] }]),
    ]),
    pass(),
    pass(),
  ])
  await Promise.all([
    pass(),
    pass(),
    ...images.map(({ digest }) => scanned(digest, 'db-matcher', [{ id: ghsa, title: 'new' }])),
  ])
  await passed()
  for (const image of images) assert.deepEqual(ids(await findingsOf(image.digest)), [cve])
  const [found, ...others] = (await get(`/vulnerabilities?vuln_id=${ghsa}`)).items
  assert.deepEqual([found.id, found.images, others], [cve, 6, []])
})
