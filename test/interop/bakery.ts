/**
 * A made-up cluster, told to a broker by the posts of agents and scanners: a bakery with a shop that the internet
 * reaches, a till that only the shop reaches, and a nightly bill; dashboards; and a job that fetches recipes. Its
 * findings cover each state of use, each tier, both scanners of a finding, an index, and a report found by tag.
 */
import assert from 'node:assert/strict'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { containerId, HOUR, heartbeat, inSecs } from '../runtime/heartbeats.ts'
import { type startApp, TOKENS } from '../support/app.ts'
import { container, digestOf } from '../support/images.ts'
import { countEdges, flowOf, podOf } from '../support/policy-cluster.ts'

type App = Awaited<ReturnType<typeof startApp>>
type Fields = Record<string, unknown>

export const DIGESTS = {
  shop: digestOf('bakery shop'),
  shopIndex: digestOf('bakery shop index'),
  till: digestOf('bakery till'),
  bill: digestOf('bakery bill'),
  boards: digestOf('bakery boards'),
  meters: digestOf('bakery meters'),
  metersElsewhere: digestOf('bakery meters, as the scanner saw it'),
  probe: digestOf('bakery probe'),
  recipes: digestOf('bakery recipes'),
}

export const CVES = {
  tls: 'CVE-2098-1001',
  web: 'CVE-2098-1002',
  zip: 'CVE-2098-1003',
  shell: 'CVE-2098-1004',
  client: 'CVE-2098-1005',
  net: 'CVE-2098-1006',
  parser: 'CVE-2098-1007',
}

/** The week that capabilities have to be watched, and a day more. */
const WATCHED_SECS = 8 * 24 * HOUR

interface Runs {
  readonly pod: string
  readonly namespace: string
  readonly ip: string
  readonly workload: string
  readonly image: 'shop' | 'till' | 'bill' | 'boards' | 'meters' | 'probe' | 'recipes'
  readonly state?: string
  readonly hostNetwork?: boolean
}

const PODS: readonly Runs[] = [
  { pod: 'shop-a', namespace: 'bakery', ip: '10.90.1.1', workload: 'Deployment/shop', image: 'shop' },
  { pod: 'shop-b', namespace: 'bakery', ip: '10.90.1.2', workload: 'Deployment/shop', image: 'shop' },
  { pod: 'till-a', namespace: 'bakery', ip: '10.90.1.3', workload: 'Deployment/till', image: 'till' },
  {
    ...{ pod: 'bill-1', namespace: 'bakery', ip: '10.90.1.4', workload: 'CronJob/bill', image: 'bill' },
    state: 'terminated',
  },
  { pod: 'boards-a', namespace: 'dashboards', ip: '10.90.2.1', workload: 'Deployment/boards', image: 'boards' },
  { pod: 'meters-0', namespace: 'dashboards', ip: '10.90.2.2', workload: 'StatefulSet/meters', image: 'meters' },
  {
    ...{ pod: 'probe-x', namespace: 'dashboards', ip: '10.91.0.1', workload: 'DaemonSet/probe', image: 'probe' },
    hostNetwork: true,
  },
  { pod: 'recipes-a', namespace: 'kitchen', ip: '10.90.3.1', workload: 'Deployment/recipes', image: 'recipes' },
]

const repositoryOf = (image: string) => `bakery.test/bread/${image}`

const posts = PODS.map((one) => ({
  ...one,
  body: podOf({
    ...{ namespace: one.namespace, name: one.pod, ip: one.ip, workload: one.workload },
    ...{ hostNetwork: one.hostNetwork ?? false },
    more: {
      host_network: one.hostNetwork ?? false,
      containers: [
        container(one.image, DIGESTS[one.image], {
          ...{ image: `${repositoryOf(one.image)}:v7`, repository: repositoryOf(one.image), tag: 'v7' },
          state: one.state ?? 'running',
        }),
      ],
    },
  }),
}))
const DOOR = podOf({ namespace: 'front', name: 'door-a', ip: '10.90.4.1', workload: 'Deployment/door' })
const body = (pod: string) => posts.find((one) => one.pod === pod)!.body

const flow = (pod: string, direction: 'INGRESS' | 'EGRESS', peer: string, port: string) =>
  flowOf(body(pod), direction, peer, port, { time_stamp: inSecs(-2 * HOUR) })

const flows = () => [
  flow('shop-a', 'INGRESS', '10.90.4.1', '8080'),
  flow('shop-a', 'INGRESS', '93.184.216.34', '8080'),
  flow('shop-b', 'INGRESS', '10.90.1.3', '8080'),
  flow('shop-a', 'EGRESS', '10.90.1.3', '9000'),
  flow('till-a', 'INGRESS', '10.90.1.1', '9000'),
  flow('boards-a', 'INGRESS', '10.90.4.1', '3000'),
  flow('meters-0', 'INGRESS', '10.91.0.1', '9090'),
  flow('recipes-a', 'EGRESS', '93.184.216.34', '443'),
]

/** The container of a pod, as agents name it. */
const placeOf = (pod: string): Fields => {
  const { namespace, workload, image } = PODS.find((one) => one.pod === pod)!
  const [kind, name] = workload.split('/')
  return {
    ...{ pod_namespace: namespace, pod_name: pod, workload_kind: kind, workload_name: name },
    ...{ container_name: image, image_digest: DIGESTS[image] },
  }
}

const WATCHED = { tracking_since: inSecs(-WATCHED_SECS), cap_probe: true, cap_hook: 'cap_capable' }
const heartbeats = () =>
  [
    ...['shop-a', 'shop-b'].map((pod) => ({ ...placeOf(pod), ...WATCHED })),
    { ...placeOf('till-a'), ...WATCHED, lib_probe: false },
    { ...placeOf('boards-a'), ...WATCHED, start_mode: 'backfill' },
    { ...placeOf('meters-0'), ...WATCHED, events_dropped: 4 },
  ].map((fields) => heartbeat({ container_id: containerId(), ...fields }))

const ran = (kind: 'exec' | 'lib', path: string) => ({
  ...{ ...placeOf('shop-a'), kind, path, source: 'ebpf', origin: 'image' },
  ...{ first_seen: inSecs(-3 * HOUR), last_seen: inSecs(-HOUR) },
})

const checked = (pod: string, capability: string, granted: boolean, probed: boolean, count: number) => ({
  ...{ ...placeOf(pod), capability, granted, probed, count },
  ...{ first_seen: inSecs(-3 * HOUR), last_seen: inSecs(-HOUR) },
})

interface Finding {
  readonly cve: keyof typeof CVES
  readonly name: string
  readonly type: string
  readonly severity: string
  readonly score: number
  readonly fix?: string
  readonly paths?: readonly string[]
}
const FINDINGS: readonly Finding[] = [
  { cve: 'tls', name: 'tlskit', type: 'apk', severity: 'CRITICAL', score: 9.1, fix: '3.1-r1' },
  { cve: 'web', name: 'ovenjs', type: 'npm', severity: 'HIGH', score: 7.4, fix: '5.0.1' },
  { cve: 'zip', name: 'zipkit', type: 'apk', severity: 'MEDIUM', score: 5.5 },
  { cve: 'shell', name: 'tinysh', type: 'apk', severity: 'LOW', score: 3.3, fix: '1.9-r2' },
  { cve: 'client', name: 'dbclient', type: 'apk', severity: 'HIGH', score: 8.2 },
  {
    ...{ cve: 'net', name: 'example.test/net', type: 'gomod', severity: 'HIGH', score: 7.6, fix: 'v0.9.0' },
    paths: ['opt/bin/server'],
  },
  { cve: 'parser', name: 'crumbs', type: 'npm', severity: 'HIGH', score: 7.4, fix: '2.2.0' },
]

function report(
  image: string,
  digest: string,
  source: string,
  cves: readonly (keyof typeof CVES)[],
  more: Fields = {},
) {
  const isMatcher = source === 'grype'
  const findings = FINDINGS.filter(({ cve }) => cves.includes(cve))
  return {
    ...{ schema_version: 1, source, sbom_trust: 'scanned', observed_in: [] },
    image: {
      ...{ digest, ref: `${repositoryOf(image)}:v7`, registry: 'bakery.test', repository: `bread/${image}`, tag: 'v7' },
      digest_kind: 'manifest',
    },
    scanner: isMatcher ? { name: 'matcher', version: '2.0' } : { name: 'scanner', version: '1.0' },
    ...{ scanned_at: `${inSecs(-6 * HOUR)}Z`, os: { family: 'alpine', name: '3.21' } },
    vulnerabilities: findings.map(({ cve, name, type, severity, score, fix, paths }) => ({
      ...{ id: CVES[cve], severity, score, title: `A flaw of ${name}`, primary_url: `https://cve.test/${CVES[cve]}` },
      ...{ package: { name, version: '1.0', type, purl: `pkg:${type}/${name}@1.0` }, fixed_version: fix },
      file_paths: paths ?? [],
      ...(isMatcher &&
        cve === 'tls' && { kev: true, kev_date_added: '2098-02-01T00:00:00Z', epss: 0.4, epss_percentile: 0.98 }),
      ...(isMatcher && cve !== 'tls' && { kev: false, epss: 0.01, epss_percentile: 0.5 }),
    })),
    ...more,
  }
}

const shopImage = (kept: Fields) => ({
  ...kept,
  ...{ digest: DIGESTS.shopIndex, digest_kind: 'index', platform_manifests: { 'linux/amd64': DIGESTS.shop } },
})

function reports(): { digest: string; kind: 'vulnerabilities' | 'sbom'; body: Fields }[] {
  const scanned = report('shop', DIGESTS.shopIndex, 'trivy-operator', ['tls', 'web', 'zip', 'shell'])
  const matched = report('shop', DIGESTS.shopIndex, 'grype', ['tls', 'web', 'parser'], {
    ...{ sbom_sources: ['trivy-operator'], db_updated_at: `${inSecs(-20 * HOUR)}Z` },
  })
  const { vulnerabilities, ...head } = scanned
  const component = (name: string, type: string, file_paths: readonly string[]) => ({
    ...{ name, version: '1.0', type, purl: `pkg:${type}/${name}@1.0`, licenses: ['MIT'], file_paths },
  })
  const alone = (image: 'till' | 'bill' | 'boards' | 'recipes', cves: readonly (keyof typeof CVES)[]) => ({
    ...{ digest: DIGESTS[image], kind: 'vulnerabilities' as const },
    body: report(image, DIGESTS[image], 'trivy-operator', cves),
  })
  return [
    { digest: DIGESTS.shopIndex, kind: 'vulnerabilities', body: { ...scanned, image: shopImage(scanned.image) } },
    { digest: DIGESTS.shopIndex, kind: 'vulnerabilities', body: { ...matched, image: shopImage(matched.image) } },
    {
      ...{ digest: DIGESTS.shopIndex, kind: 'sbom' as const },
      body: {
        ...{ ...head, image: shopImage(scanned.image), format: 'CycloneDX', spec_version: '1.5' },
        components: [
          component('tlskit', 'apk', ['usr/bin/tlskit', 'usr/lib/libtlskit.so.3']),
          component('zipkit', 'apk', ['lib/libzipkit.so.1']),
          component('tinysh', 'apk', ['bin/tinysh']),
          component('ovenjs', 'npm', ['app/node_modules/ovenjs/package.json']),
        ],
      },
    },
    alone('till', ['tls', 'client']),
    alone('bill', ['tls']),
    alone('boards', ['zip', 'net']),
    alone('recipes', []),
    {
      ...{ digest: DIGESTS.metersElsewhere, kind: 'vulnerabilities' },
      body: report('meters', DIGESTS.metersElsewhere, 'trivy-operator', ['net'], {
        observed_in: [{ namespace: 'dashboards', kind: 'StatefulSet', name: 'meters', container: 'meters' }],
      }),
    },
  ]
}

/** Tells a broker all of it, and runs the job that judges it. */
export async function tellBakery(app: App): Promise<void> {
  const send = async (path: string, sent: unknown, token = TOKENS.BROKER_TOKEN_INGEST) => {
    const answer = await app.post(path, sent, { token })
    assert.equal(answer.status, 200, answer.text)
    assert.ok(!answer.json?.dropped, answer.text)
  }
  for (const one of posts) await send('/pod/spec', one.body)
  await send('/pod/spec', DOOR)
  await send('/pod/traffic/batch', flows())
  await send('/runtime/coverage', heartbeats())
  await send('/runtime/executables', [
    ran('exec', '/usr/bin/tlskit'),
    ran('lib', '/usr/lib/libtlskit.so.3'),
    ran('lib', '/usr/lib/libzipkit.so.1.0.2'),
  ])
  await send('/runtime/capabilities', [
    checked('shop-a', 'NET_BIND_SERVICE', true, false, 8),
    checked('shop-a', 'CHOWN', true, false, 1),
    checked('shop-a', 'SYS_ADMIN', true, true, 18),
    checked('shop-a', 'NET_RAW', false, false, 2),
    checked('boards-a', 'SETUID', true, false, 1),
  ])
  for (const { digest, kind, body: sent } of reports())
    await send(`/images/${digest}/${kind}`, sent, TOKENS.BROKER_TOKEN_SUPPLYCHAIN)
  await countEdges(app)
  const context = { config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal }
  assert.equal((await supplyChainRefresh.run(context)).outcome, 'done')
}
