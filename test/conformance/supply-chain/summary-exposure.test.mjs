// GET /vulnerabilities (rebuilt by the retention pass) and GET /vulnerabilities/{id}/exposure (live).
//
// The pass runs at most once a minute, so everything that the summary cases need is posted before the first case, the
// exposure cases run meanwhile, and one wait of up to 100 s stands before the summary cases at the end of the file.

import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  address,
  at,
  authEnv,
  container,
  cve,
  digest,
  finding,
  flow,
  micros,
  naiveFromNow,
  naiveTime,
  next,
  ok,
  pod,
  refused,
  sameKeys,
  session,
  tokens,
  vulns,
} from '../lib/supply-chain.mjs'

let b, s
let summaryReady
before(async () => {
  b = await startBroker({ env: { ...authEnv, SUPPLYCHAIN_RETENTION_INTERVAL_SECS: '60' } })
  s = session(b)
  await seedSummary()
  summaryReady = eventually(
    async () => {
      const seen = new Set((await s.whole('/vulnerabilities', { limit: 100 })).items.map((i) => i.id))
      return Object.values(S.cves).every((id) => seen.has(id))
    },
    { timeoutMs: 100_000, everyMs: 1_000, what: 'a summary with every CVE of the case' },
  )
  summaryReady.catch(() => {
    /* told by the summary cases */
  })
})
after(() => b?.stop())

const imageKeys = ['digest', 'repository', 'tags', 'sources', 'reportDigests', 'join', 'severity', 'packages']
const packageKeys = ['name', 'installedVersion', 'fixedVersions', 'severity', 'sources']
const workloadKeys = [
  'clusterId',
  'namespace',
  'kind',
  'name',
  'container',
  'imageDigest',
  'join',
  'running',
  'lastSeen',
  'network',
  'inUse',
  'inUseState',
]
const networkKeys = [
  'windowHours',
  'podsObserved',
  'flowsObserved',
  'ingressFlowsObserved',
  'ingressFromOtherNamespaces',
  'ingressFromUnattributedPeers',
  'ingressFromPublicIps',
  'ingressFromNodes',
  'exposed',
  'exposedVia',
]
const namespaceKeys = ['namespace', 'workloads', 'runningWorkloads', 'exposedWorkloads', 'unknownExposureWorkloads']

/** One workload with one pod that runs an image affected by one CVE, all of them new. */
async function affected({ ns = `x-${next()}`, workload = 'web', podOver = {}, containerOver = {} } = {}) {
  const n = next()
  const [image, id] = [digest(`exposure-${n}`), cve()]
  const [p] = await s.run(pod({ ns, workload, containers: [container(image, containerOver)], ...podOver }))
  ok(await s.postVulns(vulns(image, [finding({ id })])))
  return { ns, image, id, pod: p }
}
const network = async (id, params) => {
  const r = ok(await s.exposure(id, params)).json
  assert.equal(r.workloads.length, 1, JSON.stringify(r.workloads))
  return r.workloads[0].network
}
const counts = (n) => [
  n.ingressFromOtherNamespaces,
  n.ingressFromUnattributedPeers,
  n.ingressFromPublicIps,
  n.ingressFromNodes,
]

// ---------------------------------------------------------------- exposure

check('summary-exposure: both reads need the scope read', async () => {
  for (const path of ['/vulnerabilities', '/vulnerabilities/CVE-2024-1/exposure'])
    assert.equal((await b.get(path)).status, 401)
  ok(await b.get('/vulnerabilities', { bearer: tokens.read }))
})

check('summary-exposure: exposure is 404 when no inventory digest is affected', async () => {
  const id = cve()
  for (const asked of ['CVE-1999-0001', id]) {
    const r = await s.exposure(asked)
    assert.deepEqual([r.status, r.text], [404, 'No affected image in the inventory'])
    ok(await s.postVulns(vulns(digest('nobody-runs-this'), [finding({ id })])))
  }
})

check('summary-exposure: exposure names images, workloads and namespaces with every field', async () => {
  const ns = `full-${next()}`
  const [image, index, id] = [digest('full-image'), digest('full-index'), cve()]
  const [p] = await s.run(
    pod({
      ns,
      workload: 'shop',
      containers: [
        container(image, {
          name: 'front',
          repository: 'registry.test/shop/front',
          tag: 'v7',
          image: 'registry.test/shop/front:v7',
        }),
      ],
    }),
  )
  ok(
    await s.postVulns(
      vulns(image, [
        finding({ id, package: { name: 'zlib', version: '1' }, fixed_version: null, severity: 'LOW' }),
        finding({ id, package: { name: 'curl', version: '8' }, fixed_version: '8.1', severity: 'HIGH' }),
        finding({ package: { name: 'other', version: '1' }, severity: 'CRITICAL' }),
      ]),
    ),
  )
  ok(
    await s.postVulns(
      vulns(
        { digest: index, platform_manifests: { 'linux/amd64': image } },
        [finding({ id, package: { name: 'curl', version: '8' }, fixed_version: '8.2', severity: 'MEDIUM' })],
        { source: 'db-matcher' },
      ),
    ),
  )
  await s.flows([
    flow(p, '8.8.8.8'),
    flow(p, '10.9.9.9', { traffic_type: 'EGRESS', pod_port: '0', traffic_in_out_port: '443' }),
  ])

  const r = ok(await s.exposure(id)).json
  const keys = [
    'id',
    'aliases',
    'severity',
    'fixable',
    'truncated',
    'truncatedLists',
    'images',
    'workloads',
    'namespaces',
    'inUse',
    'inUseState',
  ]
  sameKeys(r, keys, 'the answer')
  assert.deepEqual(
    [r.id, r.severity, r.fixable, r.truncated, r.inUse, r.inUseState],
    [id, 'HIGH', true, false, null, 'unknown'],
  )
  assert.equal(r.images.length, 1)
  sameKeys(r.images[0], imageKeys, 'an image')
  for (const x of r.images[0].packages) sameKeys(x, packageKeys, 'a package')
  assert.deepEqual(r.images[0], {
    digest: image,
    repository: 'registry.test/shop/front',
    tags: ['v7'],
    sources: ['db-matcher', 'operator-scanner'],
    reportDigests: [image, index].sort(),
    join: 'image_id',
    severity: 'HIGH',
    packages: [
      {
        name: 'curl',
        installedVersion: '8',
        fixedVersions: ['8.2', '8.1'],
        severity: 'HIGH',
        sources: ['db-matcher', 'operator-scanner'],
      },
      { name: 'zlib', installedVersion: '1', fixedVersions: [], severity: 'LOW', sources: ['operator-scanner'] },
    ],
  })
  assert.equal(r.workloads.length, 1)
  const [w] = r.workloads
  sameKeys(w, workloadKeys, 'a workload')
  sameKeys(w.network, networkKeys, 'network')
  assert.match(w.lastSeen, naiveTime)
  assert.ok(Math.abs(Number(micros(w.lastSeen) / 1000n) - Date.now()) < 120_000, 'lastSeen is about now')
  assert.deepEqual(
    [w.clusterId, w.namespace, w.kind, w.name, w.container, w.imageDigest, w.join, w.running, w.inUse, w.inUseState],
    ['primary', ns, 'Deployment', 'shop', 'front', image, 'image_id', true, null, 'unknown'],
  )
  assert.deepEqual(
    [w.network.windowHours, w.network.podsObserved, w.network.flowsObserved, w.network.ingressFlowsObserved],
    [168, 1, 2, 1],
  )
  assert.deepEqual(r.namespaces, [
    { namespace: ns, workloads: 1, runningWorkloads: 1, exposedWorkloads: 1, unknownExposureWorkloads: 0 },
  ])
  sameKeys(r.namespaces[0], namespaceKeys, 'a namespace')
})

check('summary-exposure: the id is matched whatever its case and echoed as asked, an odd id is 400', async () => {
  const { id } = await affected()
  assert.equal(ok(await s.exposure(id.toLowerCase())).json.id, id.toLowerCase())
  for (const bad of ['CVE%202024', 'x'.repeat(129), 'CVE-1%3B']) refused(await s.exposure(bad), 400)
})

check('summary-exposure: not exposed when every ingress peer is in the same namespace', async () => {
  const a = await affected()
  const friend = address()
  await s.run(pod({ ns: a.ns, workload: 'friend', ip: friend }))
  await s.flows([flow(a.pod, friend), flow(a.pod, friend, { pod_port: '9090' })])
  const n = await network(a.id)
  assert.deepEqual([n.podsObserved, n.flowsObserved, n.ingressFlowsObserved, ...counts(n)], [1, 2, 2, 0, 0, 0, 0])
  assert.deepEqual([n.exposed, n.exposedVia], [false, []])
  assert.deepEqual(ok(await s.exposure(a.id)).json.namespaces, [
    { namespace: a.ns, workloads: 1, runningWorkloads: 1, exposedWorkloads: 0, unknownExposureWorkloads: 0 },
  ])
})

check('summary-exposure: exposed by pods and services of other namespaces', async () => {
  const a = await affected()
  const [one, two, service] = [address(), address(), address()]
  await s.run(
    pod({ ns: `${a.ns}-b`, workload: 'client', ip: one }),
    pod({ ns: `${a.ns}-c`, workload: 'client', ip: two }),
  )
  ok(
    await s.agent.post('/svc/spec', {
      svc_ip: service,
      svc_name: 'gate',
      svc_namespace: `${a.ns}-d`,
      time_stamp: naiveFromNow(0),
    }),
  )
  await s.flows([flow(a.pod, one), flow(a.pod, one, { pod_port: '81' }), flow(a.pod, two), flow(a.pod, service)])
  const n = await network(a.id)
  assert.deepEqual(counts(n), [3, 0, 0, 0], 'distinct peers, not flows')
  assert.deepEqual([n.exposed, n.exposedVia], [true, ['other_namespace']])
})

check('summary-exposure: exposed by peers that were never matched, public ones counted apart', async () => {
  const a = await affected()
  const peers = [
    '10.201.0.1',
    '10.201.0.2',
    '100.64.3.4',
    '169.254.7.7',
    '192.0.2.9',
    '127.0.0.9',
    'fd00::5',
    '2001:db8::1',
    'fe80::9',
    '8.8.4.4',
    '2606:4700::1111',
  ]
  await s.flows(peers.map((ip) => flow(a.pod, ip)))
  const n = await network(a.id)
  assert.deepEqual(counts(n), [0, peers.length, 2, 0])
  assert.deepEqual([n.exposed, n.exposedVia], [true, ['unattributed', 'public_ip']])
})

check('summary-exposure: exposed by nodes and host-network pods', async () => {
  const a = await affected()
  const node = address()
  await s.run(pod({ ns: a.ns, workload: 'node-agent', kind: 'DaemonSet', ip: node, host_network: true }))
  await s.flows([flow(a.pod, node)])
  const n = await network(a.id)
  assert.deepEqual(counts(n), [0, 0, 0, 1])
  assert.deepEqual([n.exposed, n.exposedVia], [true, ['node']])
})

check('summary-exposure: exposedVia names every class in a fixed order', async () => {
  const a = await affected()
  const [node, client] = [address(), address()]
  await s.run(pod({ ns: a.ns, ip: node, workload: 'agent', host_network: true }), pod({ ns: `${a.ns}-b`, ip: client }))
  await s.flows([flow(a.pod, node), flow(a.pod, '9.9.9.9'), flow(a.pod, client)])
  const n = await network(a.id)
  assert.deepEqual(n.exposedVia, ['other_namespace', 'unattributed', 'public_ip', 'node'])
  assert.deepEqual(counts(n), [1, 1, 1, 1])
})

check('summary-exposure: unknown (null) without any ingress flow in the window', async () => {
  const a = await affected()
  let n = await network(a.id)
  assert.deepEqual(
    [n.podsObserved, n.flowsObserved, n.ingressFlowsObserved, n.exposed, n.exposedVia],
    [1, 0, 0, null, []],
  )
  await s.flows([flow(a.pod, '8.8.8.8', { traffic_type: 'EGRESS', pod_port: '0', traffic_in_out_port: '53' })])
  n = await network(a.id)
  assert.deepEqual(
    [n.flowsObserved, n.ingressFlowsObserved, n.exposed, n.exposedVia],
    [1, 0, null, []],
    'egress proves nothing',
  )
  assert.deepEqual(ok(await s.exposure(a.id)).json.namespaces, [
    { namespace: a.ns, workloads: 1, runningWorkloads: 1, exposedWorkloads: 0, unknownExposureWorkloads: 1 },
  ])
})

check('summary-exposure: window_hours bounds the flows, defaults to 168 and is clamped to 1..720', async () => {
  const a = await affected()
  await s.flows([
    flow(a.pod, '10.202.0.1', { time_stamp: naiveFromNow(-1_800) }),
    flow(a.pod, '10.202.0.2', { time_stamp: naiveFromNow(-5 * 3_600) }),
    flow(a.pod, '10.202.0.3', { time_stamp: naiveFromNow(-200 * 3_600) }),
  ])
  for (const [window_hours, hours, seen] of [
    [undefined, 168, 2],
    [1, 1, 1],
    [0, 1, 1],
    [-4, 1, 1],
    [6, 6, 2],
    [720, 720, 3],
    [721, 720, 3],
    [99_999, 720, 3],
  ]) {
    const n = await network(a.id, { window_hours })
    assert.deepEqual(
      [n.windowHours, n.flowsObserved, n.ingressFlowsObserved, n.ingressFromUnattributedPeers],
      [hours, seen, seen, seen],
      `window_hours ${window_hours}`,
    )
  }
  refused(await s.exposure(a.id, { window_hours: 'week' }), 400)
})

check('summary-exposure: flows are matched on pod name and namespace', async () => {
  const a = await affected()
  await s.flows([
    flow({ ...a.pod, pod_namespace: `${a.ns}-other` }, '10.203.0.1'),
    flow({ ...a.pod, pod_name: 'somebody-else' }, '10.203.0.2'),
  ])
  assert.equal((await network(a.id)).flowsObserved, 0)
})

check('summary-exposure: dead pods of the workload count, a bare pod is its own workload', async () => {
  const a = await affected()
  const [dead] = await s.run(pod({ ns: a.ns, workload: 'web' }))
  ok(await s.agent.post('/pod/mark_dead', { pod_name: dead.pod_name }))
  await s.flows([flow(dead, '10.204.0.1'), flow(a.pod, '10.204.0.2')])
  const n = await network(a.id)
  assert.deepEqual([n.podsObserved, n.ingressFromUnattributedPeers], [2, 2])

  const lone = await affected({ podOver: { kind: null, name: `lone-${next()}` } })
  await s.flows([flow(lone.pod, '10.204.0.3')])
  const [w] = ok(await s.exposure(lone.id)).json.workloads
  assert.deepEqual([w.kind, w.name, w.network.podsObserved, w.network.exposed], ['Pod', lone.pod.pod_name, 1, true])
})

check('summary-exposure: running follows the state of the container, running ones come first', async () => {
  const [image, id, ns] = [digest('running'), cve(), `run-${next()}`]
  const states = [
    ['a-terminated', 'terminated', 'Completed', false],
    ['b-running', 'running', null, true],
    ['c-crashing', 'waiting', 'CrashLoopBackOff', true],
    ['d-pulling', 'waiting', 'ImagePullBackOff', false],
    ['e-unknown', undefined, undefined, true],
  ]
  await s.run(
    ...states.map(([workload, state, state_reason]) =>
      pod({ ns, workload, containers: [container(image, { state, state_reason })] }),
    ),
  )
  ok(await s.postVulns(vulns(image, [finding({ id })])))
  const r = ok(await s.exposure(id)).json
  assert.deepEqual(
    r.workloads.map((w) => [w.name, w.running]),
    [
      ['b-running', true],
      ['c-crashing', true],
      ['e-unknown', true],
      ['a-terminated', false],
      ['d-pulling', false],
    ],
  )
  assert.deepEqual(r.namespaces, [
    { namespace: ns, workloads: 5, runningWorkloads: 3, exposedWorkloads: 0, unknownExposureWorkloads: 5 },
  ])
})

check('summary-exposure: the join of an exposure row is the best one, by tag when there is no better', async () => {
  const n = next()
  const [image, report, id] = [digest('exposure-tag'), digest('exposure-tag-report'), cve()]
  const repository = `registry.test/exposure/tag${n}`
  await s.run(
    pod({
      ns: `xtag-${n}`,
      kind: 'DaemonSet',
      workload: 'agent',
      containers: [container(image, { repository, tag: 'v3', image: `${repository}:v3` })],
    }),
  )
  ok(
    await s.postVulns(
      vulns(
        { digest: report, registry: 'registry.test', repository: `exposure/tag${n}`, tag: 'v3' },
        [finding({ id })],
        {
          observed_in: [{ namespace: `xtag-${n}`, kind: 'DaemonSet', name: 'agent', container: 'app' }],
        },
      ),
    ),
  )
  const r = ok(await s.exposure(id)).json
  assert.deepEqual(
    [r.images[0].digest, r.images[0].reportDigests, r.images[0].join, r.workloads[0].join],
    [image, [report], 'workload_tag', 'workload_tag'],
  )
})

check('summary-exposure: truncated when more than 200 workload containers are affected', async () => {
  const [image, id, ns] = [digest('many-containers'), cve(), `many-${next()}`]
  const post = (from, to) =>
    pod({
      ns,
      workload: `w${String(from).padStart(3, '0')}`,
      containers: Array.from({ length: to - from }, (_, i) =>
        container(image, { name: `c${String(from + i).padStart(3, '0')}` }),
      ),
    })
  await s.run(post(0, 50), post(50, 100), post(100, 150), post(150, 200))
  ok(await s.postVulns(vulns(image, [finding({ id })])))
  let r = ok(await s.exposure(id)).json
  assert.deepEqual([r.workloads.length, r.truncated], [200, false])
  await s.run(post(200, 201))
  r = ok(await s.exposure(id)).json
  assert.deepEqual([r.workloads.length, r.truncated, r.images.length], [200, true, 1])
})

// ---------------------------------------------------------------- summary

check(
  'summary-exposure: before the first rebuild there are no items, computedAt and staleSeconds are null',
  async () => {
    const still = await startBroker({ env: { ...authEnv, JOBS: 'external' } })
    try {
      const o = session(still)
      const d = digest('no-pass')
      await o.run(pod({ ns: 'no-pass', containers: [container(d)] }))
      ok(await o.postVulns(vulns(d, [finding()], { scanned_at: at(0) })))
      assert.deepEqual(ok(await o.get('/vulnerabilities')).json, {
        order: 'tier',
        items: [],
        nextAfter: null,
        computedAt: null,
        staleSeconds: null,
      })
    } finally {
      await still.stop()
    }
  },
)

const S = { ns: ['sum-a', 'sum-b', 'sum-c'], cves: {} }
async function seedSummary() {
  const [a, c, e] = S.ns
  const [one, two, tagged, gone, late, index] = ['one', 'two', 'tagged', 'gone', 'late', 'index'].map((n) =>
    digest(`summary-${n}`),
  )
  Object.assign(S, { one, two, tagged, gone, late })
  for (const name of ['wide', 'tag', 'stopped', 'late', 'plain', 'low', 'used']) S.cves[name] = cve()
  const id = S.cves
  const f = (name, over) =>
    finding({
      id: id[name],
      package: { name: 'libx', version: '1' },
      severity: 'MEDIUM',
      score: 5,
      fixed_version: null,
      ...over,
    })
  const repository = 'registry.test/summary/tagged'
  await s.run(
    pod({ ns: a, workload: 'web', containers: [container(one), container(one, { name: 'second' })] }),
    pod({ ns: a, workload: 'web', containers: [container(one)] }),
    pod({ ns: a, workload: 'old', containers: [container(one, { state: 'terminated' })] }),
    pod({ ns: c, workload: 'api', containers: [container(two)] }),
    pod({
      ns: e,
      kind: 'DaemonSet',
      workload: 'agent',
      containers: [container(tagged, { repository, tag: 'v1', image: `${repository}:v1` })],
    }),
    pod({ ns: e, workload: 'job', containers: [container(gone, { state: 'terminated' })] }),
  )
  const posts = [
    vulns(one, [f('wide', { severity: 'LOW', score: 9.5 }), f('plain'), f('low', { severity: 'LOW' })]),
    vulns(
      { digest: index, platform_manifests: { 'linux/amd64': one, 'linux/arm64': two } },
      [
        f('wide', {
          package: { name: 'liba', version: '2' },
          severity: 'CRITICAL',
          score: 7,
          fixed_version: '3',
          kev: true,
          epss: 0.5,
        }),
        f('wide', { severity: 'LOW', epss: 0.25 }),
      ],
      { source: 'db-matcher' },
    ),
    vulns(
      { digest: digest('summary-tag-report'), registry: 'registry.test', repository: 'summary/tagged', tag: 'v1' },
      [f('tag', { severity: 'HIGH' })],
      { observed_in: [{ namespace: e, kind: 'DaemonSet', name: 'agent', container: 'app' }] },
    ),
    vulns(gone, [f('stopped')]),
    vulns(two, [f('used', { package: { name: 'used', version: '1', type: 'deb' }, file_paths: ['bin/used'] })]),
    vulns({ digest: digest('summary-late-index'), platform_manifests: { 'linux/amd64': late } }, [f('late')]),
    vulns(digest('summary-nobody'), [finding({ id: 'CVE-2031-00001' })]),
  ]
  for (const p of posts) ok(await s.postVulns(p))
  const ran = {
    ...{ pod_namespace: c, workload_kind: 'Deployment', workload_name: 'api', container_name: 'app' },
    ...{ image_digest: two, kind: 'exec', path: '/usr/bin/used', path_complete: true, source: 'ebpf', origin: 'image' },
    ...{ first_seen: naiveFromNow(-600), last_seen: naiveFromNow(-300) },
  }
  assert.deepEqual((await s.agent.post('/runtime/executables', [ran])).json, { accepted: 1, dropped: 0, written: 1 })
  // This pod starts after its image was scanned: the pass has to link it.
  await s.run(pod({ ns: e, workload: 'late', containers: [container(late)] }))
}

describe('after the first pass', () => {
  before(
    async () => {
      await summaryReady
    },
    { timeout: 110_000 },
  )
  const list = async (params) => (await s.whole('/vulnerabilities', { limit: 500, ...params })).items
  const ofMine = async (params) => (await list(params)).filter((i) => Object.values(S.cves).includes(i.id))
  const named = (items) => items.map((i) => Object.entries(S.cves).find(([, id]) => id === i.id)[0])
  const get = async (name, params) => (await list(params)).find((i) => i.id === S.cves[name])

  check(
    'summary-exposure: the summary counts distinct images and workloads, whatever number of sources agrees',
    async () => {
      const r = ok(await s.get('/vulnerabilities')).json
      sameKeys(r, ['order', 'items', 'nextAfter', 'computedAt', 'staleSeconds'], 'the answer')
      assert.match(r.computedAt, naiveTime)
      assert.ok(typeof r.staleSeconds === 'number' && r.staleSeconds >= 0, String(r.staleSeconds))
      assert.deepEqual(await get('wide'), {
        id: S.cves.wide,
        aliases: [],
        severity: 'CRITICAL',
        maxScore: 9.5,
        fixable: true,
        kev: true,
        maxEpss: 0.5,
        packages: ['liba', 'libx'],
        packageCount: 2,
        sources: ['db-matcher', 'operator-scanner'],
        images: 2,
        workloads: 3,
        runningWorkloads: 2,
        namespaces: 2,
        weakestJoin: 'platform_manifest',
        inUse: null,
        inUseState: 'unknown',
        // Exploited, and nobody knows what reaches it.
        tier: 'P0',
        executedWorkloads: 0,
        loadedWorkloads: 0,
        unknownWorkloads: 3,
        notObservedWorkloads: 0,
        exposedWorkloads: 0,
        decidedWorkloads: 0,
      })
      assert.deepEqual(await get('plain'), {
        id: S.cves.plain,
        aliases: [],
        severity: 'MEDIUM',
        maxScore: 5,
        fixable: false,
        kev: null,
        maxEpss: null,
        packages: ['libx'],
        packageCount: 1,
        sources: ['operator-scanner'],
        images: 1,
        workloads: 2,
        runningWorkloads: 1,
        namespaces: 1,
        weakestJoin: 'image_id',
        inUse: null,
        inUseState: 'unknown',
        tier: 'P2',
        executedWorkloads: 0,
        loadedWorkloads: 0,
        unknownWorkloads: 2,
        notObservedWorkloads: 0,
        exposedWorkloads: 0,
        decidedWorkloads: 0,
      })
    },
  )

  check('in-use: a package is in use where a container executed one of its files', async () => {
    const used = await get('used')
    assert.deepEqual(
      [used.inUse, used.inUseState, used.tier, used.workloads, used.executedWorkloads, used.unknownWorkloads],
      [true, 'executed', 'P2', 1, 1, 0],
    )
    assert.deepEqual(named(await ofMine({ in_use: 'Executed,loaded' })), ['used'])
    assert.deepEqual(named(await ofMine({ tier: 'p0' })), ['wide'])
    const [item] = ok(await s.getVulns(S.two, { in_use: 'executed' })).json.items
    assert.deepEqual(
      [item.id, item.inUseDetail.state, item.inUseDetail.containers, item.tier, item.tierFactors],
      [S.cves.used, 'executed', 1, 'P2', ['in_use:executed', 'severity:medium', 'exposure:unknown', 'no_fix']],
    )
    refused(await s.get('/vulnerabilities?tier=P9'), 400)
    refused(await s.get('/vulnerabilities?in_use=maybe'), 400)
  })

  check('summary-exposure: weakestJoin says when a count rests on a tag', async () => {
    assert.equal((await get('tag')).weakestJoin, 'workload_tag')
  })

  check('summary-exposure: a CVE of images that no workload runs is not in the summary', async () => {
    assert.equal(
      (await list()).some((i) => i.id === 'CVE-2031-00001'),
      false,
    )
  })

  check('summary-exposure: the pass links a pod that started after its image was scanned', async () => {
    const i = await get('late')
    assert.deepEqual([i.images, i.workloads, i.runningWorkloads, i.weakestJoin], [1, 1, 1, 'platform_manifest'])
    assert.deepEqual(
      ok(await s.getVulns(S.late)).json.reports.map((r) => r.join),
      ['platform_manifest'],
    )
  })

  check('summary-exposure: ordered by tier, severity, then id, a page at a time', async () => {
    const all = (await ofMine()).map((i) => i.id)
    for (const limit of [1, 2])
      assert.deepEqual(
        (await ofMine({ limit })).map((i) => i.id),
        all,
        `limit ${limit}`,
      )
    const rank = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN']
    const key = (i) => `${['P0', null, 'P1', 'P2', 'Background'].indexOf(i.tier)} ${rank.indexOf(i.severity)} ${i.id}`
    const keys = (await list()).map(key)
    assert.deepEqual(keys, [...keys].sort())
    refused(await s.get('/vulnerabilities', { after: 'nonsense' }), 400)
    refused(await s.get('/vulnerabilities', { limit: 'nonsense' }), 400)
  })

  check('summary-exposure: namespace counts that namespace and lists only what affects it', async () => {
    assert.deepEqual(named(await ofMine({ namespace: S.ns[0] })), ['wide', 'plain', 'low'])
    const { images, workloads, runningWorkloads, namespaces } = await get('wide', { namespace: S.ns[0] })
    assert.deepEqual([images, workloads, runningWorkloads, namespaces], [1, 2, 1, 1])
    assert.deepEqual(named(await ofMine({ namespace: S.ns[1] })), ['wide', 'used'])
    assert.deepEqual(await list({ namespace: 'sum-nowhere' }), [])
  })

  check('summary-exposure: severity, fixable and running filter the summary', async () => {
    assert.deepEqual(
      named(await ofMine({ severity: 'critical,LOW' })),
      ['wide', 'low'],
      'the highest severity of the CVE counts',
    )
    assert.deepEqual(named(await ofMine({ fixable: true })), ['wide'])
    assert.equal(named(await ofMine({ fixable: false })).includes('wide'), false)
    assert.ok(named(await ofMine()).includes('stopped'))
    assert.equal((await get('stopped')).runningWorkloads, 0)
    assert.equal(named(await ofMine({ running: true })).includes('stopped'), false)
    assert.ok(named(await ofMine({ running: false })).includes('stopped'))
    assert.ok((await list({ running: true })).every((i) => i.runningWorkloads > 0))
    for (const params of [{ severity: 'BAD' }, { fixable: 'x' }, { running: 'x' }])
      refused(await s.get('/vulnerabilities', params), 400)
  })
})
