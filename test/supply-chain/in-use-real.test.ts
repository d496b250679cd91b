/** States of packages of real images, by documents of scanners and what agents report. Each is judged by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { containerId, heartbeat } from '../runtime/heartbeats.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { container, newDigest, newNamespace } from '../support/images.ts'
import { countEdges, daysAgo, flowOf, podOf } from '../support/policy-cluster.ts'
import { findingsOfGrype, findingsOfTrivy, sbomOfSyft, sbomOfTrivy } from './in-use-documents.ts'
import { ofGrype, ofSyft, ofTrivy, ofTrivyOperator } from './scanners.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

const app = await startApp(TOKENS)
const token = TOKENS.BROKER_TOKEN_READ

async function sends(path: string, body: unknown, scope = TOKENS.BROKER_TOKEN_INGEST): Promise<void> {
  const answer = await app.post(path, body, { token: scope })
  assert.equal(answer.status, 200, answer.text)
}
async function get(path: string): Promise<Json> {
  const answer = await app.get(path, { token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

async function pass(): Promise<void> {
  await countEdges(app)
  const context = { config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal }
  assert.equal((await supplyChainRefresh.run(context)).outcome, 'done')
}

const secondsAgo = (secs: number) => new Date(Date.now() - secs * 1_000).toISOString().slice(0, -1)
let pods = 0

interface Ran {
  readonly exec?: readonly string[]
  readonly lib?: readonly string[]
}

/** A workload of one pod in a namespace, watched since its start ten days ago unless `beat` says otherwise. */
async function runs(
  namespace: string,
  workload: string,
  digest: string,
  { exec = [], lib = [] }: Ran,
  beat: object | null = {},
): Promise<void> {
  const pod = `${workload}-${++pods}`
  await sends('/pod/spec', {
    ...podOf({ namespace, name: pod, ip: `10.60.0.${pods}`, workload: `Deployment/${workload}` }),
    containers: [container('main', digest)],
  })
  const owner = { pod_namespace: namespace, pod_name: pod, workload_kind: 'Deployment', workload_name: workload }
  const of = { ...owner, container_name: 'main', image_digest: digest }
  if (beat !== null)
    await sends('/runtime/coverage', [
      heartbeat({ ...of, container_id: containerId(), tracking_since: secondsAgo(10 * 86_400), ...beat }),
    ])
  const seen = { source: 'ebpf', origin: 'image', first_seen: secondsAgo(7_200), last_seen: secondsAgo(600) }
  await sends('/runtime/executables', [
    ...exec.map((path) => ({ ...of, ...seen, kind: 'exec', path })),
    ...lib.map((path) => ({ ...of, ...seen, kind: 'lib', path })),
  ])
}

const postReport = (digest: string, kind: 'sbom' | 'vulnerabilities', body: object) =>
  sends(`/images/${digest}/${kind}`, body, TOKENS.BROKER_TOKEN_SUPPLYCHAIN)

type States = Record<string, string>

/** The state of each name, with the reason of an unknown one. A name has one state, whatever its version. */
function statesOf(items: Json[], nameOf: (item: Json) => string): States {
  const states: States = {}
  for (const item of items) {
    const { state, reason } = item.inUseDetail
    assert.equal(item.inUseState, state)
    const text = reason === null ? state : `${state}: ${reason}`
    assert.ok([undefined, text].includes(states[nameOf(item)]), nameOf(item))
    states[nameOf(item)] = text
  }
  return states
}
const componentStates = async (digest: string, source: string): Promise<States> =>
  statesOf((await get(`/images/${digest}/sbom?limit=500&source=${source}`)).items, ({ name }) => name)
const findings = async (digest: string): Promise<Json[]> =>
  (await get(`/images/${digest}/vulnerabilities?limit=500`)).items
const findingStates = async (digest: string): Promise<States> =>
  statesOf(await findings(digest), (item) => item.package.name)
const tiersOf = async (digest: string) =>
  Object.fromEntries(
    (await findings(digest)).map(({ id, tier, tierFactors }) => [id, [tier, ...tierFactors].join(' ')]),
  )

const DEBIAN: Ran = {
  exec: ['/usr/bin/bash', '/usr/bin/dash', '/usr/bin/python3.11'],
  lib: ['ld-linux-x86-64.so.2', 'libc.so.6', 'libtinfo.so.6.4', 'libssl.so.3', 'libcrypto.so.3'].map(
    (file) => `/usr/lib/x86_64-linux-gnu/${file}`,
  ),
}
const ALPINE: Ran = {
  exec: ['/bin/busybox'],
  lib: ['/lib/ld-musl-x86_64.so.1', '/lib/libcrypto.so.3', '/lib/libssl.so.3'],
}
const JAVA: Ran = {
  exec: ['/opt/java/openjdk/bin/java'],
  lib: ['/opt/java/openjdk/lib/server/libjvm.so', '/opt/java/openjdk/lib/libjava.so', '/usr/lib/libzip.so'],
}

test('packages of Debian: bash of /bin, libraries of /lib, cut lists, an interpreter and its packages', async () => {
  const [digest, namespace] = [newDigest(), newNamespace()]
  await runs(namespace, 'web', digest, DEBIAN)
  const pod = podOf({ namespace, name: `web-${pods}`, ip: `10.60.0.${pods}` })
  const flow = { time_stamp: daysAgo(2) }
  await sends('/pod/spec', podOf({ namespace: `${namespace}-other`, name: `caller-${pods}`, ip: `10.61.0.${pods}` }))
  await sends('/pod/traffic/batch', [flowOf(pod, 'INGRESS', `10.61.0.${pods}`, '8080', flow)])
  await postReport(digest, 'sbom', sbomOfSyft(digest, 'debian'))
  await postReport(digest, 'sbom', sbomOfTrivy(digest, 'debian'))
  await postReport(digest, 'vulnerabilities', findingsOfTrivy(digest, 'debian'))
  await pass()
  assert.deepEqual(await componentStates(digest, 'registry'), {
    bash: 'executed',
    dash: 'executed',
    hostname: 'installed_not_observed',
    libc6: 'loaded',
    libcrypt1: 'installed_not_observed',
    'libpcre2-8-0': 'installed_not_observed',
    libssl3: 'loaded',
    libtinfo6: 'loaded',
    mount: 'unknown: sbom_incomplete',
    'perl-base': 'unknown: language_package',
    'python3.11-minimal': 'executed',
    requests: 'unknown: language_package',
    tzdata: 'unknown: sbom_incomplete',
    zipp: 'unknown: language_package',
    zlib1g: 'installed_not_observed',
  })
  assert.deepEqual(await findingStates(digest), {
    bash: 'executed',
    hostname: 'installed_not_observed',
    libssl3: 'loaded',
    mount: 'unknown: sbom_incomplete',
    requests: 'unknown: language_package',
    tzdata: 'unknown: sbom_incomplete',
    zlib1g: 'installed_not_observed',
  })
  assert.deepEqual(await tiersOf(digest), {
    'CVE-2026-0001': 'P1 in_use:executed severity:high exposed',
    'CVE-2026-0002': 'Background in_use:installed_not_observed severity:critical exposed no_fix',
    'CVE-2026-0003': 'P1 in_use:loaded severity:critical exposed',
    'CVE-2026-0004': 'P2 in_use:unknown severity:low exposed no_fix',
    'CVE-2026-0005': 'P2 in_use:unknown severity:low exposed no_fix',
    'CVE-2026-0006': 'Background in_use:installed_not_observed severity:medium exposed no_fix',
    'CVE-2024-35195': 'P2 in_use:unknown severity:medium exposed',
  })
  const coverage = Object.fromEntries(
    (await findings(digest)).map((item) => [item.package.name, item.inUseDetail.coverage]),
  )
  assert.deepEqual([coverage.bash, coverage.requests], ['file', 'interpreted'])
})

test('a package whose files no document lists is unknown, also where all else is watched', async () => {
  const digest = newDigest()
  await runs(newNamespace(), 'web', digest, DEBIAN)
  await postReport(digest, 'sbom', sbomOfTrivy(digest, 'debian'))
  await postReport(digest, 'vulnerabilities', findingsOfTrivy(digest, 'debian'))
  await pass()
  const states = await findingStates(digest)
  assert.deepEqual(
    [states.mount, states.bash, states.zlib1g],
    ['unknown: no_package_files', 'executed', 'installed_not_observed'],
  )
})

test('a library whose list has only the link of its soname is loaded by the file behind it', async () => {
  const digest = newDigest()
  await runs(newNamespace(), 'web', digest, { lib: ['/usr/lib64/libssl.so.3.0.7', '/usr/lib64/libz.so.1.2.11'] })
  const component = (name: string, file: string) => ({ name, type: 'redhat', class: 'os-pkgs', file_paths: [file] })
  await postReport(digest, 'sbom', {
    ...{ schema_version: 1, image: { digest }, source: 'trivy-operator', scanned_at: '2026-01-02T03:04:05Z' },
    components: [
      component('openssl-libs', '/usr/lib64/libssl.so.3'),
      component('zlib', 'lib64/libz.so.1'),
      // Only compilers need a link without a version.
      component('zlib-devel', '/usr/lib64/libz.so'),
      component('compat-openssl11', '/usr/lib64/libssl.so.1.1'),
    ],
  })
  await pass()
  assert.deepEqual(await componentStates(digest, 'trivy-operator'), {
    'compat-openssl11': 'installed_not_observed',
    'openssl-libs': 'loaded',
    zlib: 'loaded',
    'zlib-devel': 'installed_not_observed',
  })
})

test('packages of Alpine: busybox for every shell, and a finding whose only place is a database', async () => {
  const digest = newDigest()
  await runs(newNamespace(), 'web', digest, ALPINE)
  await postReport(digest, 'sbom', sbomOfSyft(digest, 'alpine'))
  await postReport(digest, 'vulnerabilities', findingsOfGrype(digest, 'alpine'))
  await pass()
  assert.deepEqual(await componentStates(digest, 'registry'), {
    busybox: 'executed',
    libcrypto3: 'loaded',
    libssl3: 'loaded',
    musl: 'loaded',
    'musl-utils': 'installed_not_observed',
    scanelf: 'installed_not_observed',
    ssl_client: 'installed_not_observed',
    zlib: 'installed_not_observed',
  })
  assert.deepEqual(await findingStates(digest), {
    'apk-tools': 'unknown: no_package_files',
    busybox: 'executed',
    libcrypto3: 'loaded',
    libssl3: 'loaded',
    zlib: 'installed_not_observed',
  })
})

test('modules of a Go program are executed with it, those of a program that never ran are not', async () => {
  const digest = newDigest()
  await runs(newNamespace(), 'server', digest, { exec: ['/usr/local/bin/server'] })
  await postReport(digest, 'sbom', sbomOfSyft(digest, 'go'))
  await postReport(digest, 'sbom', sbomOfTrivy(digest, 'go'))
  await postReport(digest, 'vulnerabilities', findingsOfTrivy(digest, 'go'))
  await pass()
  assert.deepEqual(await componentStates(digest, 'registry'), {
    'app.test/server': 'executed',
    'github.com/lib/pq': 'installed_not_observed',
    // Another version of it is in the program that ran.
    'golang.org/x/net': 'executed',
    stdlib: 'executed',
  })
  assert.deepEqual(await componentStates(digest, 'operator-scanner'), {
    // Of a lock file, not of a program.
    'github.com/google/uuid': 'unknown: language_package',
    'github.com/lib/pq': 'installed_not_observed',
    'golang.org/x/net': 'executed',
    stdlib: 'executed',
  })
  assert.deepEqual(await findingStates(digest), {
    'github.com/lib/pq': 'installed_not_observed',
    'golang.org/x/net': 'executed',
    stdlib: 'executed',
  })
  for (const item of await findings(digest)) assert.equal(item.inUseDetail.coverage, 'static_binary')
})

test('jars are always unknown: a virtual machine reads them, and nobody sees which', async () => {
  const digest = newDigest()
  await runs(newNamespace(), 'api', digest, JAVA)
  await postReport(digest, 'sbom', sbomOfSyft(digest, 'java'))
  await postReport(digest, 'sbom', sbomOfTrivy(digest, 'java'))
  await postReport(digest, 'vulnerabilities', findingsOfTrivy(digest, 'java'))
  await postReport(digest, 'vulnerabilities', findingsOfGrype(digest, 'java'))
  await pass()
  for (const states of [
    await componentStates(digest, 'registry'),
    await componentStates(digest, 'operator-scanner'),
    await findingStates(digest),
  ])
    assert.deepEqual(new Set(Object.values(states)), new Set(['unknown: language_package']), JSON.stringify(states))
  // Log4Shell, by either scanner.
  assert.deepEqual(
    (await findings(digest)).map(({ id, tier, inUse }) => `${id} ${tier} ${inUse}`),
    Array(2).fill('CVE-2021-44228 P1 null'),
  )
})

// The documents of these scanners name the place where they found a package: a database of packages, a document.
for (const [name, kind, payload, ran] of [
  ['Grype, Debian', 'vulnerabilities', (digest: string) => ofGrype(digest), DEBIAN],
  ['Grype, Alpine', 'vulnerabilities', (digest: string) => ofGrype(digest, 'grype-alpine'), ALPINE],
  ['Trivy', 'vulnerabilities', (digest: string) => ofTrivy(digest), DEBIAN],
  ['trivy-operator', 'vulnerabilities', (digest: string) => ofTrivyOperator(digest, 'trivy-operator'), DEBIAN],
  [
    'trivy-operator, default',
    'vulnerabilities',
    (digest: string) => ofTrivyOperator(digest, 'trivy-operator-default'),
    DEBIAN,
  ],
  ['Syft, Debian', 'sbom', (digest: string) => ofSyft(digest, 'debian'), DEBIAN],
  ['Syft, Alpine', 'sbom', (digest: string) => ofSyft(digest, 'alpine'), ALPINE],
] as const)
  test(`the place where ${name} found a package is no list of its files: nothing is called unused by it`, async () => {
    const digest = newDigest()
    await runs(newNamespace(), 'web', digest, { ...ran, exec: [...ran.exec!, '/opt/app/bin/server'] })
    await postReport(digest, kind, payload(digest))
    await pass()
    const states = kind === 'sbom' ? await componentStates(digest, 'registry') : await findingStates(digest)
    assert.ok(Object.keys(states).length > 0)
    const unused = Object.keys(states).filter((one) => states[one] === 'installed_not_observed')
    assert.deepEqual(unused, [])
    if (states['app.test/server']) assert.equal(states['app.test/server'], 'executed')
  })

test('components of CycloneDX are known by their package URL; lists of modules and cut paths prove nothing', async () => {
  const digest = newDigest()
  const component = (name: string, purl: string, path: string, type = 'library') => ({
    ...{ name, version: '1', purl, type, file_paths: [path] },
  })
  await runs(newNamespace(), 'web', digest, { exec: ['/usr/bin/openssl'], lib: [] })
  await postReport(digest, 'sbom', {
    ...{ schema_version: 1, image: { digest }, source: 'trivy-operator', scanned_at: '2026-09-26T03:31:41Z' },
    components: [
      component('openssl', 'pkg:apk/alpine/openssl@1', '/usr/bin/openssl'),
      component('zlib', 'pkg:apk/alpine/zlib@1', '/usr/lib/libz.so.1.3.1'),
      component('express', 'pkg:npm/express@4', '/app/node_modules/express/index.js'),
      component('example.com/mod', 'pkg:golang/example.com/mod@1', '/src/go.mod', 'go-module'),
      component('deep', 'pkg:deb/debian/deep@1', `/${'d'.repeat(1_100)}`),
    ],
  })
  await pass()
  assert.deepEqual(await componentStates(digest, 'operator-scanner'), {
    openssl: 'executed',
    zlib: 'installed_not_observed',
    express: 'unknown: language_package',
    'example.com/mod': 'unknown: no_package_files',
    deep: 'unknown: sbom_incomplete',
  })
})

for (const [what, reason, beat] of [
  ['is watched by nobody', 'no_runtime_data', null],
  ['lost events', 'capture_gap', { events_dropped: 1 }],
  ['has a late heartbeat', 'capture_gap', { heartbeat_at: secondsAgo(5 * 3_600) }],
  ['is watched for two hours', 'capture_gap', { tracking_since: secondsAgo(2 * 3_600), start_mode: 'backfill' }],
  ['has no probe for libraries', 'libraries_not_tracked', { lib_probe: false }],
  ['has no probe for programs', 'probes_missing', { exec_probe: false }],
] as const)
  test(`a package that never ran is unknown where a second workload of the image ${what}`, async () => {
    const [digest, namespace] = [newDigest(), newNamespace()]
    await runs(namespace, 'watched', digest, ALPINE)
    await postReport(digest, 'sbom', sbomOfSyft(digest, 'alpine'))
    await postReport(digest, 'vulnerabilities', findingsOfGrype(digest, 'alpine'))
    await pass()
    const zlib = async () => (await findings(digest)).find((item) => item.package.name === 'zlib')
    const counts = async () => {
      const { items } = await get(`/vulnerabilities?namespace=${namespace}&vuln_id=CVE-2026-1001`)
      const [{ workloads, unknownWorkloads, notObservedWorkloads, inUseState, tier }] = items
      return [workloads, unknownWorkloads, notObservedWorkloads, inUseState, tier]
    }
    assert.equal((await zlib()).inUseState, 'installed_not_observed')
    assert.deepEqual(await counts(), [1, 0, 1, 'installed_not_observed', 'Background'])
    await runs(namespace, 'second', digest, ALPINE, beat)
    await pass()
    const { inUseDetail: detail, tier } = await zlib()
    assert.deepEqual([detail.state, detail.reason, detail.containers, tier], ['unknown', reason, 2, 'P1'])
    assert.deepEqual(await counts(), [2, 1, 1, 'unknown', 'P1'])
    // A file that ran anywhere is in use.
    assert.equal((await findingStates(digest)).busybox, 'executed')
  })

test('a new file counts from its report on: before the next pass nothing of the image is unused', async () => {
  const [digest, namespace] = [newDigest(), newNamespace()]
  await runs(namespace, 'web', digest, ALPINE)
  await postReport(digest, 'sbom', sbomOfSyft(digest, 'alpine'))
  await pass()
  const state = async () => (await componentStates(digest, 'registry')).zlib
  assert.equal(await state(), 'installed_not_observed')
  const owner = { pod_namespace: namespace, pod_name: `web-${pods}`, workload_kind: 'Deployment', workload_name: 'web' }
  await sends('/runtime/executables', [
    {
      ...{ ...owner, container_name: 'main', image_digest: digest, kind: 'lib', path: '/lib/libz.so.1.3.1' },
      ...{ source: 'ebpf', origin: 'image', first_seen: secondsAgo(60), last_seen: secondsAgo(30) },
    },
  ])
  assert.equal(await state(), 'unknown: capture_gap')
  await pass()
  assert.equal(await state(), 'loaded')
})

/** A report with one finding of zlib, whose only file is listed. */
const findingOfZlib = (digest: string, id: string, fields: object = {}) => ({
  ...{ schema_version: 1, image: { digest }, source: 'trivy-operator', scanned_at: '2026-09-26T03:31:41Z' },
  vulnerabilities: [
    {
      ...{ id, severity: 'MEDIUM', package: { name: 'zlib', version: '1.3.1-r0', type: 'apk' }, ...fields },
      file_paths: ['lib/libz.so.1.3.1'],
    },
  ],
})

test('a job that does not run leaves nothing unused: the answer of its last pass ends', async () => {
  const digest = newDigest()
  const id = `CVE-2026-${digest.slice(-9).replace(/\D/g, '1')}`
  await runs(newNamespace(), 'web', digest, ALPINE)
  await postReport(digest, 'vulnerabilities', findingOfZlib(digest, id))
  await pass()
  const states = async () => {
    const { inUseState, workloads } = await get(`/vulnerabilities/${id}/exposure`)
    return [(await findingStates(digest)).zlib, inUseState, workloads[0].inUseState]
  }
  const unused = Array(3).fill('installed_not_observed')
  assert.deepEqual(await states(), unused)
  await app.sql`update cve_summary_state set judged_until = now() at time zone 'utc' - interval '1 second'`
  assert.deepEqual(await states(), ['unknown: capture_gap', 'unknown', 'unknown'])
  await pass()
  assert.deepEqual(await states(), unused)
})

test('KEV that only the report of another image has changes the tier in the list, too', async () => {
  const [digest, elsewhere] = [newDigest(), newDigest()]
  const id = `CVE-2027-${digest.slice(-9).replace(/\D/g, '1')}`
  await runs(newNamespace(), 'web', digest, { exec: [], lib: ['/lib/libz.so.1.3.1'] })
  await postReport(digest, 'vulnerabilities', findingOfZlib(digest, id))
  await pass()
  const tier = async () => (await get(`/vulnerabilities?vuln_id=${id}`)).items[0].tier
  assert.equal(await tier(), 'P2')
  // No workload runs this image.
  await postReport(elsewhere, 'vulnerabilities', findingOfZlib(elsewhere, id, { kev: true }))
  await pass()
  assert.equal(await tier(), 'P0')
})

test('a new report leaves nothing unused before the next pass; a path that was cut belongs to no package', async () => {
  const [digest, namespace] = [newDigest(), newNamespace()]
  await runs(namespace, 'web', digest, ALPINE)
  await postReport(digest, 'sbom', sbomOfSyft(digest, 'alpine'))
  await pass()
  const zlib = async () => (await componentStates(digest, 'registry')).zlib
  assert.equal(await zlib(), 'installed_not_observed')
  await postReport(digest, 'vulnerabilities', ofGrype(digest, 'grype-alpine'))
  assert.equal(await zlib(), 'unknown: capture_gap')
  await pass()
  assert.equal(await zlib(), 'installed_not_observed')
  const owner = { pod_namespace: namespace, pod_name: `web-${pods}`, workload_kind: 'Deployment', workload_name: 'web' }
  const file = (path: string, isComplete: boolean) => ({
    ...{ ...owner, container_name: 'main', image_digest: digest, kind: 'lib', path, path_complete: isComplete },
    ...{ source: 'ebpf', origin: 'image', first_seen: secondsAgo(60), last_seen: secondsAgo(30) },
  })
  await sends('/runtime/executables', [file('/lib/libz.so.1.3.1', false), file('/lib/libother.so.1', true)])
  await pass()
  assert.equal(await zlib(), 'unknown: capture_gap')
  await sends('/runtime/executables', [file('/lib/libz.so.1.3.1', true)])
  await pass()
  assert.equal(await zlib(), 'loaded')
})

interface Listed {
  readonly name: string
  readonly type?: string
  readonly class?: string
  readonly files: readonly string[]
}

const headOf = (digest: string, source: string) => ({
  ...{ schema_version: 1, image: { digest }, source, scanned_at: '2026-09-26T03:31:41Z' },
})
const postComponents = (digest: string, source: string, components: readonly Listed[]) =>
  postReport(digest, 'sbom', {
    ...headOf(digest, source),
    components: components.map(({ files, ...rest }) => ({ ...rest, version: '1', file_paths: files })),
  })
/** A finding of each package, of a vulnerability that is exploited. */
const postExploited = (digest: string, source: string, packages: readonly Listed[]) =>
  postReport(digest, 'vulnerabilities', {
    ...headOf(digest, source),
    vulnerabilities: packages.map(({ name, type, class: of, files }) => ({
      ...{ id: 'CVE-2021-44228', severity: 'CRITICAL', kev: true, file_paths: files },
      ...{ package: { name, version: '1', type }, class: of },
    })),
  })

test('packages of an operating system that another program reads are unknown, by findings and by SBOMs', async () => {
  const digest = newDigest()
  const system = (name: string, ...files: string[]): Listed => ({ name, type: 'debian', class: 'os-pkgs', files })
  const packages = [
    system('liblog4j2-java', '/usr/share/java/log4j-core-2.11.1.jar', '/usr/share/java/log4j-core.jar'),
    system('python3-jinja2', '/usr/lib/python3/dist-packages/jinja2/__init__.py'),
    system('python3-yaml', '/usr/lib/python3/dist-packages/yaml/_yaml.so', '/usr/lib/python3/dist-packages/a.py'),
    system('libjson-perl', '/usr/share/perl5/JSON.pm'),
    system('python3.11', '/usr/bin/python3.11', '/usr/lib/python3.11/os.py'),
    system('jq', '/usr/bin/jq', '/etc/jq.d/settings'),
  ]
  await runs(newNamespace(), 'api', digest, {
    exec: [...JAVA.exec!, '/usr/bin/python3.11'],
    lib: ['/opt/java/openjdk/lib/server/libjvm.so'],
  })
  await postComponents(digest, 'trivy-operator', packages)
  await postExploited(
    digest,
    'trivy-operator',
    packages.map((one) => ({ ...one, files: [] })),
  )
  await pass()
  const expected = {
    'liblog4j2-java': 'unknown: language_package',
    'python3-jinja2': 'unknown: language_package',
    'python3-yaml': 'unknown: language_package',
    'libjson-perl': 'unknown: language_package',
    'python3.11': 'executed',
    jq: 'installed_not_observed',
  }
  assert.deepEqual(await findingStates(digest), expected)
  assert.deepEqual(await componentStates(digest, 'operator-scanner'), expected)
  const tiers = (await findings(digest)).map((item) => [item.package.name, item.tier])
  assert.deepEqual(
    tiers.filter(([, tier]) => tier === 'Background'),
    [['jq', 'Background']],
  )
})

test('the place of a program that Syft recognised is no list of its files: it may run, but is never unused', async () => {
  const digest = newDigest()
  const binary = (name: string, ...files: string[]): Listed => ({ name, type: 'binary', files })
  const packages = [
    binary('mysql', '/usr/bin/mysql'),
    binary('openjdk', '/opt/java/openjdk/bin/jdb'),
    binary('go', '/usr/local/go/VERSION'),
    binary('busybox', '/bin/['),
    binary('redis', '/usr/local/bin/redis-server'),
  ]
  await runs(newNamespace(), 'db', digest, {
    exec: ['/usr/sbin/mysqld', ...JAVA.exec!, '/usr/local/go/bin/go', '/bin/sh', '/usr/local/bin/redis-server'],
  })
  await postComponents(digest, 'registry', [...packages, { name: 'jq', files: ['/usr/bin/jq'] }])
  await postExploited(digest, 'db-matcher', [...packages, { name: 'jq', type: 'deb', files: [] }])
  await pass()
  const expected = {
    mysql: 'unknown: sbom_incomplete',
    openjdk: 'unknown: sbom_incomplete',
    go: 'unknown: sbom_incomplete',
    busybox: 'unknown: sbom_incomplete',
    redis: 'executed',
  }
  // Another scanner knows the type of a package whose list has none.
  assert.deepEqual(await findingStates(digest), { ...expected, jq: 'installed_not_observed' })
  assert.deepEqual(await componentStates(digest, 'registry'), { ...expected, jq: 'unknown: language_package' })
})

test('databases of package managers are no files of packages, wherever they are', async () => {
  const digest = newDigest()
  const system = (name: string, type: string, ...files: string[]): Listed => ({ name, type, files })
  const packages = [
    system('ostree', 'rpm', '/usr/share/rpm/rpmdb.sqlite'),
    system('mariner', 'rpm', '/var/lib/rpmmanifest/container-manifest-2'),
    system('sysimage', 'rpm', '/rootfs/usr/lib/sysimage/rpm/Packages.db'),
    system('gentoo', 'portage', '/var/db/pkg/app-misc/gentoo-1/CONTENTS'),
    system('nested', 'deb', '/rootfs/var/lib/dpkg/status', '/rootfs/usr/share/doc/nested/copyright'),
    system('nested-apk', 'apk', '/rootfs/lib/apk/db/installed'),
    system('rpm-build', 'rpm', '/usr/lib/rpm/elfdeps'),
  ]
  await runs(newNamespace(), 'web', digest, DEBIAN)
  await postComponents(digest, 'registry', packages)
  await pass()
  assert.deepEqual(await componentStates(digest, 'registry'), {
    ...Object.fromEntries(packages.map(({ name }) => [name, 'unknown: no_package_files'])),
    'rpm-build': 'installed_not_observed',
  })
})

test('a list that is cut stays cut where all its kept paths are documentation', async () => {
  const digest = newDigest()
  const documents = Array.from({ length: 16 }, (_, n) => `/usr/share/doc/foo/${n}`)
  await runs(newNamespace(), 'web', digest, DEBIAN)
  await postComponents(digest, 'trivy-operator', [{ name: 'foo', type: 'deb', files: documents }])
  await postExploited(digest, 'db-matcher', [{ name: 'foo', type: 'deb', files: ['/usr/bin/foo'] }])
  await pass()
  assert.deepEqual(await findingStates(digest), { foo: 'unknown: sbom_incomplete' })
})

test('a finding that one scanner has of a jar and another of a package of the system is unknown', async () => {
  const digest = newDigest()
  await runs(newNamespace(), 'web', digest, DEBIAN)
  const files = ['/usr/sbin/tomcat']
  await postExploited(digest, 'trivy-operator', [{ name: 'tomcat', type: 'jar', class: 'lang-pkgs', files }])
  await postExploited(digest, 'db-matcher', [{ name: 'tomcat', type: 'rpm', files }])
  await pass()
  assert.deepEqual(await findingStates(digest), { tomcat: 'unknown: language_package' })
  const { workloads } = await get('/vulnerabilities/CVE-2021-44228/exposure')
  const [here] = workloads.filter((one: Json) => one.imageDigest === digest)
  assert.equal(here.inUseState, 'unknown')
})

test('directories that are one on a merged system are one: lib32, sbin with bin, lib64 with lib', async () => {
  const digest = newDigest()
  const system = (name: string, file: string): Listed => ({ name, type: 'deb', files: [file] })
  await runs(newNamespace(), 'web', digest, {
    exec: ['/usr/bin/nginx', '/sbin/tini'],
    lib: ['/usr/lib32/libc.so.6', '/usr/libx32/libm.so.6', '/usr/lib/libz.so.1', '/usr/lib64/libexact.so.1'],
  })
  await postComponents(digest, 'registry', [
    system('libc6-i386', '/lib32/libc.so.6'),
    system('libc6-x32', '/libx32/libm.so.6'),
    system('nginx', '/usr/sbin/nginx'),
    system('tini', '/usr/bin/tini'),
    system('zlib', '/usr/lib64/libz.so.1'),
    system('exact', '/usr/lib64/libexact.so.1'),
    system('other', '/usr/lib/libexact.so.1'),
    system('local', '/usr/local/sbin/nginx'),
  ])
  await pass()
  assert.deepEqual(await componentStates(digest, 'registry'), {
    'libc6-i386': 'loaded',
    'libc6-x32': 'loaded',
    nginx: 'executed',
    tini: 'executed',
    zlib: 'loaded',
    exact: 'loaded',
    other: 'installed_not_observed',
    local: 'installed_not_observed',
  })
})

test('what a pass of the release before has linked counts for nothing, and the next pass reads it again', async () => {
  const digest = newDigest()
  const packages = ['jar', 'py'].map((end) => ({ name: end, type: 'deb', files: [`/usr/share/${end}/one.${end}`] }))
  await runs(newNamespace(), 'web', digest, DEBIAN)
  await postComponents(digest, 'registry', packages)
  await pass()
  await app.sql`
    update summary_image
    set payloads = substr(payloads, strpos(payloads, e'\n') + 1), whole_packages = cut_packages, cut_packages = '{}',
        interpreted_packages = '{}'
    where image_digest = ${digest}`
  const states = (state: string) => Object.fromEntries(packages.map(({ name }) => [name, state]))
  assert.deepEqual(await componentStates(digest, 'registry'), states('unknown: capture_gap'))
  await pass()
  assert.deepEqual(await componentStates(digest, 'registry'), states('unknown: language_package'))
})

/** A pod of a workload, and posts of its agent as it comes to know more of it. */
async function resolving(digest: string) {
  const [namespace, workload] = [newNamespace(), 'web']
  const pod = `${workload}-${++pods}`
  await sends('/pod/spec', {
    ...podOf({ namespace, name: pod, ip: `10.60.0.${pods}`, workload: `Deployment/${workload}` }),
    containers: [container('main', digest)],
  })
  const known = {
    ...{ pod_namespace: namespace, pod_name: pod, workload_kind: 'Deployment', workload_name: workload },
    ...{ container_name: 'main', image_digest: digest },
  }
  const life = { container_id: containerId(), tracking_since: secondsAgo(10 * 86_400) }
  return {
    beats: (minutesAgo: number, fields: object = {}) =>
      sends('/runtime/coverage', [
        heartbeat({ ...known, ...life, heartbeat_secs: 3_600, heartbeat_at: secondsAgo(60 * minutesAgo), ...fields }),
      ]),
    saw: (path: string, fields: object = {}) =>
      sends('/runtime/executables', [
        {
          ...{ ...known, kind: 'exec', path, source: 'ebpf', origin: 'image' },
          ...{ first_seen: secondsAgo(7_200), last_seen: secondsAgo(7_200), ...fields },
        },
      ]),
  }
}

for (const [what, unresolved] of [
  ['image', { image_digest: '' }],
  ['workload', { workload_kind: null, workload_name: null }],
  ['image and workload', { image_digest: '', workload_kind: null, workload_name: null }],
] as const)
  test(`a file that was posted before its ${what} was known, and not since, leaves the package unknown`, async () => {
    const digest = newDigest()
    const agent = await resolving(digest)
    await agent.beats(120, unresolved)
    await agent.saw('/usr/bin/foo', unresolved)
    await agent.saw('/usr/bin/bar', unresolved)
    await agent.beats(60)
    await agent.saw('/usr/bin/bar')
    await agent.beats(0)
    const deb = (name: string) => ({ name, type: 'deb', files: [`/usr/bin/${name}`] })
    await postComponents(digest, 'registry', [deb('foo'), deb('bar'), deb('baz')])
    await pass()
    const unknown = 'unknown: capture_gap'
    assert.deepEqual(await componentStates(digest, 'registry'), { foo: unknown, bar: 'executed', baz: unknown })
    // Agents repeat all files each hour.
    await agent.saw('/usr/bin/foo')
    await pass()
    const unused = 'installed_not_observed'
    assert.deepEqual(await componentStates(digest, 'registry'), { foo: 'executed', bar: 'executed', baz: unused })
  })

test('an EPSS of exactly the threshold counts, in tiers and in the filter of both lists', async () => {
  const strict = await startApp({ ...TOKENS, SUPPLYCHAIN_TIER_EPSS: '0.7' }, app)
  const [digest, namespace] = [newDigest(), newNamespace()]
  const idOf = (n: number) => `CVE-2028-${n}${digest.slice(-8).replace(/\D/g, '1')}`
  const shares = [0.1, 0.35, 0.7, 0.9]
  await runs(namespace, 'web', digest, { lib: ['/lib/libz.so.1.3.1'] })
  await postReport(digest, 'vulnerabilities', {
    ...headOf(digest, 'trivy-operator'),
    vulnerabilities: shares.map((epss, n) => ({
      ...findingOfZlib(digest, idOf(n)).vulnerabilities[0],
      epss,
    })),
  })
  const context = { ...strict.deps, db: app.db, signal: new AbortController().signal }
  assert.equal((await supplyChainRefresh.run(context)).outcome, 'done')
  const hot = (items: Json[]) =>
    items
      .filter(({ tier }) => tier === 'P0')
      .map(({ id }) => id)
      .sort()
  assert.deepEqual(hot(await findings(digest)), [idOf(2), idOf(3)])
  assert.deepEqual(hot((await get(`/vulnerabilities?namespace=${namespace}`)).items), [idOf(2), idOf(3)])
  const [item] = (await findings(digest)).filter(({ id }) => id === idOf(2))
  assert.deepEqual([item.epss, item.tierFactors.includes('epss>=0.7')], [0.7, true])
  for (const [n, epss] of shares.entries())
    for (const path of [`/images/${digest}/vulnerabilities?`, `/vulnerabilities?namespace=${namespace}&`]) {
      const { items } = await get(`${path}epss_min=${epss}&limit=500`)
      assert.deepEqual(items.map(({ id }: Json) => id).sort(), shares.map((_, i) => idOf(i)).slice(n), `${path}${epss}`)
    }
  await pass()
})

/** The name and the exposure of each workload with the image, as judged last. */
async function exposuresOf(digest: string): Promise<unknown[][]> {
  const rows = await app.sql`
    select workload_name, exposure from container_use where image_digest = ${digest} order by workload_name`
  return rows.map(({ workload_name, exposure }) => [workload_name, exposure])
}

test('what reached a living pod from outside long ago counts, since it reports a flow once', async () => {
  const digest = newDigest()
  const [namespace, other] = [newNamespace(), newNamespace()]
  const n = ++pods
  const at = (ip: number) => `10.62.${n}.${ip}`
  const serves = (name: string, ip: number) =>
    podOf({
      ...{ namespace, name: `${name}-${n}`, ip: at(ip), workload: `Deployment/${name}` },
      more: { containers: [container('main', digest)] },
    })
  const caller = podOf({ namespace: other, name: `caller-${n}`, ip: at(1) })
  const own = podOf({ namespace, name: `own-${n}`, ip: at(2) })
  const served = {
    ...{ living: serves('living', 11), dead: serves('dead', 12), recreated: serves('recreated', 13) },
    shared: serves('shared', 14),
  }
  for (const pod of [caller, own, ...Object.values(served)]) await sends('/pod/spec', pod)
  for (const pod of Object.values(served))
    await sends('/pod/traffic/batch', [
      flowOf(pod, 'INGRESS', at(1), '8080', { time_stamp: daysAgo(20) }),
      flowOf(pod, 'INGRESS', at(2), '8080', { time_stamp: daysAgo(2) }),
    ])
  await sends('/pod/spec', { ...served.dead, is_dead: true })
  await sends('/pod/spec', { ...served.recreated, started_at: daysAgo(3) })
  const { pod_name: name } = served.shared
  await sends('/pod/spec', podOf({ namespace: other, name, ip: at(24), more: { started_at: daysAgo(3) } }))
  await pass()
  assert.deepEqual(await exposuresOf(digest), [
    ['dead', 'internal'],
    ['living', 'exposed'],
    ['recreated', 'internal'],
    ['shared', 'exposed'],
  ])
})

test('what reached a pod before its workload was known counts for the workload', async () => {
  const digest = newDigest()
  const [namespace, other] = [newNamespace(), newNamespace()]
  const n = ++pods
  const at = (ip: number) => `10.63.${n}.${ip}`
  const serves = (name: string, ip: number) =>
    podOf({ namespace, name: `${name}-${n}`, ip: at(ip), workload: `Job/${name}` })
  const served = [serves('recent', 11), serves('old', 12)]
  await sends('/pod/spec', podOf({ namespace: other, name: `caller-${n}`, ip: at(1) }))
  for (const [i, { workload_kind: _, workload_name: _1, ...pod }] of served.map((pod) => pod as Json).entries()) {
    await sends('/pod/spec', pod)
    await sends('/pod/traffic/batch', [
      flowOf(pod, 'INGRESS', at(1), '8080', { time_stamp: daysAgo(i === 0 ? 2 : 20) }),
    ])
  }
  await countEdges(app)
  for (const pod of served) await sends('/pod/spec', { ...pod, containers: [container('main', digest)] })
  await pass()
  assert.deepEqual(await exposuresOf(digest), [
    ['old', 'exposed'],
    ['recent', 'exposed'],
  ])
})
