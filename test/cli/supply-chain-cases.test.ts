/** Exit codes, short digests, judgements and hostile names of the commands about images and vulnerabilities. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { after } from 'node:test'
import {
  countFlows,
  hoursAgo,
  storeContainers,
  storeEdges,
  storeFiles,
  storeInstances,
  storeSyscalls,
} from '../changes/rows.ts'
import { TOKENS } from '../support/app.ts'
import { resultOf, signature } from '../support/attestations.ts'
import { digestOf } from '../support/images.ts'
import { contained, POD, storeState, workload } from '../support/profile-versions.ts'
import { startStub } from '../support/stub.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'
import { startCluster } from './cluster.ts'
import { goldenCalls } from './golden.ts'
import { inProcess } from './in-process.ts'
import { JUDGED } from './seed/evaluator.ts'
import { DB, OLD_WEB, refreshSupplyChain } from './seed/supply-chain.ts'
import { API, WEB } from './seed/workloads.ts'
import { pathOf, TOKEN } from './support.ts'

const cluster = await startCluster()
const ctb = inProcess(cluster.url)

const MANY = digestOf('an image with many findings')
const DAY = 24
/** A screen is cleared, a link hides its target, text runs backwards, a line is forged. */
const EVIL = 'a\u001b[2J\u001b]8;;http://x\u0007\u202e\u2066b\u200d\u009bm\r\n- forged'
const HOSTILE = digestOf('an image with hostile names')
const HOSTILE_OLD = digestOf('an image with hostile names before')

await seedBank()
await seedHostile()
await storeFindings(cluster, MANY, 'registry', [
  ...Array.from({ length: 600 }, (_, n) => finding(`CVE-2027-${1_000 + n}`, { severity: 2, kev: false })),
  finding('CVE-2027-0001', { severity: 3, kev: true }),
  finding('CVE-2027-0002', { severity: 3 }),
])
await refreshSupplyChain(cluster)

/** A workload in which everything changed that a diff compares. */
async function seedBank(): Promise<void> {
  const { sql, db } = cluster
  const at = { namespace: 'bank', kind: 'Deployment', workload: 'ledger' }
  await storeContainers(sql, [{ ...at, digest: digestOf('ledger'), first: hoursAgo(9 * DAY), last: hoursAgo(0) }])
  await storeInstances(sql, [{ ...at, digest: digestOf('ledger') }])
  await storeEdges(sql, [
    { ...at, ip: '8.8.8.8', isPublic: true, peerKind: 'external', first: hoursAgo(1), last: hoursAgo(1) },
    {
      ...{
        ...at,
        type: 'INGRESS',
        port: '8080',
        peerKind: 'pod',
        peerNamespace: 'shop',
        peerWorkloadKind: 'Deployment',
      },
      ...{ peerWorkload: 'web', peerName: 'web-1', first: hoursAgo(20 * DAY), last: hoursAgo(9 * DAY) },
    },
  ])
  await countFlows(sql)
  await storeSyscalls(sql, { ...at, names: ['read', 'bpf'], firstSeen: [hoursAgo(9 * DAY), hoursAgo(1)] })
  const cr = (defaultAction: string) => ({ name: 'ledger', hash: '0123456789abcdef', defaultAction })
  const states = [
    [{ allowPrivilegeEscalation: false }, 'baseline', 'SCMP_ACT_ERRNO', 9],
    [{ privileged: true }, 'privileged', 'SCMP_ACT_LOG', 2],
  ] as const
  for (const [n, [fields, level, action, days]] of states.entries()) {
    const podSecurity = { level, pod: POD, containers: { app: contained(fields) } }
    const syscalls = { syscalls: ['read'], captureLevel: 'full', cr: cr(action) }
    await storeState(db.job, workload('bank', 'ledger'), { snapshot: { podSecurity, syscalls } } as never)
    await sql`
      update workload_profile_version set created_at = now() at time zone 'utc' - make_interval(days => ${days}::int)
      where pod_namespace = 'bank' and revision = ${n + 1}::int`
  }
}

/** A hostile text in every field that scanners, checkers, people and pods send. */
async function seedHostile(): Promise<void> {
  const { sql } = cluster
  const at = { namespace: EVIL, kind: EVIL, workload: EVIL, container: EVIL }
  await storeContainers(sql, [
    { ...at, digest: HOSTILE_OLD, first: hoursAgo(20 * DAY), last: hoursAgo(8 * DAY), state: 'terminated' },
    { ...at, digest: HOSTILE, first: hoursAgo(2), last: hoursAgo(0) },
  ])
  await sql`
    update image set repository = ${EVIL}, tags = array[${EVIL}::text] where digest in (${HOSTILE}, ${HOSTILE_OLD})`
  await sql`update workload_container set image_ref = ${EVIL} where image_digest = ${HOSTILE}`
  await storeInstances(sql, [{ ...at, digest: HOSTILE }])
  await storeFiles(sql, [{ ...at, digest: HOSTILE, path: EVIL, first: hoursAgo(1) }])
  const found = { package_name: EVIL, installed_version: EVIL, fixed_versions: [EVIL], title: EVIL, kev: true }
  const hostile = finding('CVE-2028-0001', found)
  await storeFindings(cluster, HOSTILE, 'registry', [hostile, finding(EVIL, found)])
  await storeFindings(cluster, HOSTILE_OLD, 'registry', [])
  const held = { version: EVIL, type: EVIL, licenses: [EVIL], file_paths: [EVIL] }
  await storeSbom(cluster, HOSTILE, 'registry', [component(EVIL, held), component('evil-lib', held)])
  await storeSbom(cluster, HOSTILE_OLD, 'registry', [])
  const result = resultOf(HOSTILE, {
    ...{ repository: EVIL, reason: EVIL, signatures: [signature({ san: EVIL, issuer: EVIL })] },
  })
  await sql`select store_attestation(${JSON.stringify(result)}::text::json)`
  const answer = await cluster.request('PUT', '/vulnerabilities/CVE-2028-0001/decision', {
    body: { scope: { type: 'all' }, decision: 'affected', by: EVIL, why: EVIL },
    token: TOKENS.BROKER_TOKEN_SUPPLYCHAIN,
  })
  assert.equal(answer.status, 200, answer.text)
  JUDGED.push({
    ...{ policy: EVIL, namespace: EVIL, workload: EVIL, container: EVIL, digest: HOSTILE, image: EVIL },
    ...{ verdict: EVIL, reason: EVIL },
  })
}

goldenCalls('diff-everything', ctb, [
  ['diff', 'bank/Deployment/ledger'],
  ['diff', 'bank/Deployment/ledger', '-o', 'name'],
  ['diff', 'bank/Deployment/ledger', '--from', '1m'],
])

const FORMATS = ['table', 'wide', 'json', 'ndjson', 'yaml', 'csv', 'name', 'jsonpath={..name} {..id}']

const HOSTILE_CALLS: readonly (readonly string[])[] = [
  ['images', '-n', EVIL],
  ['vulns', '-n', EVIL, '--fail-on', 'kev'],
  ['vulns', HOSTILE],
  ['exposure', 'CVE-2028-0001'],
  ['search', EVIL],
  ['components', '--name', 'evil-lib'],
  ['components', '--name', EVIL],
  ['sbom', HOSTILE],
  ['sbom', HOSTILE, '--cyclonedx'],
  ['vex', HOSTILE],
  ['trust', '-n', EVIL],
  ['signatures', '-n', EVIL],
  ['coverage', '-n', EVIL],
  ['changes', '-n', EVIL],
  ['diff', HOSTILE_OLD, HOSTILE],
  ['diff', `${EVIL.replaceAll('/', '')}/${EVIL}/${EVIL}`],
  ['decisions', 'CVE-2028-0001'],
  ['sbom', EVIL],
]

test('on a terminal hostile names stay text, lines keep its width, and no token is written', async () => {
  let rows = 0
  for (const call of HOSTILE_CALLS)
    for (const format of call[0] === 'vex' || call.includes('--cyclonedx') ? [null] : FORMATS) {
      const { out, err } = await ctb([...call, ...(format === null ? [] : ['-o', format])], {
        columns: 80,
        env: { NO_COLOR: '1' },
      })
      const what = JSON.stringify([...call, format])
      assert.doesNotMatch(out + err, /[^\P{C}\n]/u, what)
      assert.doesNotMatch(out + err, /^- forged/m, what)
      assert.ok(!(out + err).includes(TOKEN), what)
      if (format !== 'table') continue
      rows += out.split('\n').length
      for (const line of out.split('\n')) assert.ok([...line].length <= 80, line)
    }
  assert.ok(rows > 40, `${rows} rows`)
})

test('--fail-on judges all pages, however few rows are shown', async () => {
  const { code, out, err } = await ctb(['vulns', MANY, '--limit', '1', '--fail-on', 'kev', '--no-headers'])
  assert.deepEqual([code, out.split('\n').length], [1, 2], err)
  assert.equal(err, 'there are more: see --limit\n--fail-on kev: 1 finding, not known of 1 more\n')
  // Whole pages are asked for.
  const page = await ctb(['vulns', MANY, '--limit', '1', '--fail-on', 'kev', '-o', 'json'])
  assert.equal(JSON.parse(page.out).items.length, 500)
  const none = await ctb(['vulns', MANY, '--severity', 'MEDIUM', '--fail-on', 'kev', '-o', 'name'])
  assert.deepEqual([none.code, none.out.split('\n').length], [0, 601])
  assert.equal(none.err, '--fail-on kev: 0 findings\n')
})

test('--fail-on leaves decided findings out, and says what nobody knows', async () => {
  const unscanned = '1 running image without a report: nobody knows what they have\n'
  const cases: readonly [words: string[], code: number, err: string][] = [
    [['CVE-2026-0001', 'executed'], 1, `--fail-on executed: 1 finding\n${unscanned}`],
    [['CVE-2026-0004', 'executed'], 0, `--fail-on executed: 0 findings\n1 decided finding not counted\n${unscanned}`],
    [['CVE-2026-0003', 'kev'], 0, `--fail-on kev: 0 findings, not known of 1 more\n${unscanned}`],
  ]
  for (const [[id, reason], code, err] of cases) {
    const words = ['vulns', '-n', 'shop', '--vuln-id', id!, '--fail-on', reason!, '-o', 'name']
    assert.deepEqual(await ctb(words), { code, out: `${id}\n`, err })
  }
  const image = await ctb(['vulns', WEB, '--vuln-id', 'CVE-2026-0004', '--fail-on', 'executed', '-o', 'name'])
  assert.deepEqual([image.code, image.err], [0, '--fail-on executed: 0 findings\n1 decided finding not counted\n'])
})

test('trust: 1 for what is asked; without an evaluator everything is unknown', async () => {
  const codeOf = async (...words: string[]) => (await ctb(['trust', ...words])).code
  assert.equal(await codeOf('-n', 'shop', '--fail-on', 'wouldDeny'), 1)
  assert.equal(await codeOf('-n', 'shop', '--limit', '1', '--fail-on', 'unknown'), 1)
  assert.equal(await codeOf('-n', 'shop', '--verdict', 'Trusted', '--fail-on', 'wouldDeny,unknown'), 0)
  const cut = await ctb(['trust', '-n', 'shop', '--limit', '1'])
  assert.match(cut.err, /^1 of 3 results are listed$/m)
  const judged = JUDGED.splice(0)
  const unknown = await ctb(['trust', '--fail-on', 'unknown'])
  assert.deepEqual([unknown.code, unknown.out], [1, ''])
  assert.match(unknown.err, /^image trust is not known: /)
  assert.equal(await codeOf('--fail-on', 'wouldDeny'), 0)
  JUDGED.push(...judged)
})

test('diff: 0 where nothing differs, which is not said of what is not known', async () => {
  const same = await ctb(['diff', WEB, WEB])
  assert.deepEqual(same, { code: 0, out: '', err: 'nothing differs in what is known\n' })
  const unknown = await ctb(['diff', DB, MANY, '-o', 'name'])
  assert.deepEqual([unknown.code, unknown.out], [0, ''])
  assert.match(unknown.err, /^not known: components: no_sbom, sha256:bfce690ffdfc$/m)
  assert.match(unknown.err, /^not known: signatures: not_checked, sha256:bfce690ffdfc$/m)
  assert.match(unknown.err, /^this does not say that nothing differs: not everything is known$/m)
  assert.equal((await ctb(['diff', OLD_WEB, WEB])).code, 1)
  // An image that was not checked is not an image without a signature.
  const unchecked = await ctb(['diff', WEB, DB, '-o', 'csv'])
  assert.doesNotMatch(unchecked.out, /^signatures,/m)
})

test('short digests: whole, with and without their algorithm, in any case; several candidates are listed', async () => {
  const digits = WEB.slice('sha256:'.length)
  for (const text of [WEB, digits, digits.slice(0, 12), `SHA256:${digits.slice(0, 20).toUpperCase()}`]) {
    const { code, out, err } = await ctb(['sbom', text, '--print-request'])
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, new RegExp(`/images/sha256:${digits}/sbom`))
  }
  const twins = ['0', '1'].map((last) => `sha256:${'ab'.repeat(31)}c${last}`)
  for (const twin of twins) await storeFindings(cluster, twin, 'registry', [])
  const several = await ctb(['sbom', 'abababababab'])
  assert.deepEqual([several.code, several.out], [3, ''])
  for (const twin of twins) assert.ok(several.err.includes(`  ${twin}  `), several.err)
  assert.equal((await ctb(['sbom', `${'ab'.repeat(31)}c0`])).code, 0)
})

test('exit codes: 2 for what is not understood, 3 for what is not there', async () => {
  const cases: readonly [words: string[], code: number, says: RegExp][] = [
    [['vulns', '--fail-on', 'p9'], 2, /p0/],
    [['vulns', '--source', 'registry'], 2, /^--source: expected DIGEST as well$/m],
    [['vulns', WEB, '-n', 'shop'], 2, /^--namespace: expected no DIGEST$/m],
    [['vulns', WEB, '-A'], 2, /^--all-namespaces: expected no DIGEST$/m],
    [['vulns', 'web'], 2, /^web: expected a digest, sha256:.*, or its first 12 or more digits$/m],
    [['vulns', 'd5028c1963e'], 2, /first 12 or more digits/],
    [['sbom', '000000000000'], 3, /^000000000000: no image that the broker knows/],
    [['sbom', WEB, '--cyclonedx', '-o', 'yaml'], 2, /^--cyclonedx: expected no --output other than json$/m],
    [['sbom', WEB, '--cyclonedx', '--limit', '1'], 2, /^--cyclonedx: expected no --limit/],
    [['sbom', DB, '--cyclonedx'], 3, /./],
    [['sbom'], 2, /DIGEST/],
    [['vex', OLD_WEB.replace(/.$/, '0')], 3, /No decision/],
    [['exposure', 'CVE-1999-0001'], 3, /No affected image/],
    [['components'], 2, /name/],
    [['changes'], 2, /namespace/],
    [['changes', '-n', 'shop', '-A'], 2, /-A/],
    [['changes', '-n', 'shop', '--since', '7d', '--last', '7d'], 2, /expected --since or --last/],
    [['coverage', '--part', 'pods'], 2, /images/],
    [['diff', WEB], 2, /expected DIGEST twice, or NAMESPACE\/KIND\/NAME/],
    [['diff', 'shop/web'], 2, /expected NAMESPACE\/KIND\/NAME/],
    [['diff', 'shop/../web'], 2, /expected NAMESPACE\/KIND\/NAME/],
    [['diff', WEB, API, '--from', '7d'], 2, /^--from: expected a workload, not images$/m],
    [['diff', 'shop/Deployment/nobody'], 3, /No data found/],
    [['trust', '--fail-on', 'trusted'], 2, /wouldDeny/],
  ]
  for (const [words, code, says] of cases) {
    const done = await ctb(words)
    assert.deepEqual([done.code, done.out], [code, ''], `${words.join(' ')}: ${done.err}`)
    assert.match(done.err, says)
  }
})

test('commands of a search take names whole: the shell reads no name as a flag or as code', async () => {
  const name = "$(reboot) it's"
  await storeSbom(cluster, API, 'registry', [component(name), component('--out=x')])
  await refreshSupplyChain(cluster)
  const columns = async (q: string) => {
    const { out, err } = await ctb(['search', '--no-headers', '--', q])
    return out + err
  }
  assert.match(await columns(name), /ctb components --name '\$\(reboot\) it'\\''s'$/m)
  assert.match(await columns('--out=x'), /ctb get '\/components\?name=--out%3Dx'$/m)
})

test('a list that is old or was never computed says so', async () => {
  const page = { order: 'tier', items: [], nextAfter: null }
  const stub = await startStub(() => ({ json: pages.shift() }))
  const pages = [
    { ...page, computedAt: null, staleSeconds: null },
    { ...page, computedAt: '2026-01-31T09:00:00', staleSeconds: 3_600 },
    { ...page, computedAt: '2026-01-31T09:00:00', staleSeconds: 60 },
  ]
  const errOf = async () => (await inProcess(stub.url)(['vulns', '-o', 'name'])).err
  assert.equal(await errOf(), 'the list was not computed yet: vulnerabilities are unknown, not absent\n')
  assert.equal(await errOf(), 'the list was computed 2026-01-31T09:00:00Z: what is newer is unknown\n')
  assert.equal(await errOf(), '')
})

test('an SBOM that is replaced between two pages is 7: components of two are no list', async () => {
  const { json } = await cluster.get(`/images/${WEB}/sbom`, { token: TOKEN })
  const stub = await startStub(() => ({ json: pages.shift() }))
  const newer = { ...json.report, scannedAt: '2026-01-31T09:00:00' }
  const pages = [
    { ...json, nextAfter: 3 },
    { ...json, report: newer },
  ]
  const { code, err } = await inProcess(stub.url)(['sbom', WEB, '-o', 'name'])
  assert.deepEqual([code, err], [7, 'the SBOM was replaced while it was read: ask again\n'])
})

test('documents are the bytes of the API; --out appears when it is whole', async () => {
  const file = pathOf('bom.json')
  const { text } = await cluster.get(`/images/${WEB}/sbom/cyclonedx`, { token: TOKEN })
  assert.deepEqual(await ctb(['sbom', WEB, '--cyclonedx', '--out', file]), { code: 0, out: '', err: '' })
  assert.equal(readFileSync(file, 'utf8'), text)
  assert.equal((await ctb(['sbom', WEB, '--cyclonedx'])).out, text)
})

test('a document that ends early is 7, and no file appears', async () => {
  const early = http.createServer((_, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/vnd.cyclonedx+json', 'content-length': '100' })
    outgoing.write('{"bomFormat":', () => outgoing.destroy())
  })
  await once(early.listen(0, '127.0.0.1'), 'listening')
  after(() => early.close())
  const file = pathOf('early.json')
  const { port } = early.address() as AddressInfo
  const { code, err } = await inProcess(`http://127.0.0.1:${port}`)(['sbom', WEB, '--cyclonedx', '--out', file])
  assert.equal(code, 7)
  assert.match(err, /^the answer ended early: /)
  assert.ok(!existsSync(file))
})
