import assert from 'node:assert/strict'
import { BlockList, isIP } from 'node:net'
import test from 'node:test'
import fc from 'fast-check'
import { canonicalAddress } from '../../lib/net/address.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { podPost, servicePost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { finding, storeFindings } from '../support/supply-chain.ts'

type Fields = Record<string, unknown>
type Pod = Fields & { pod_name: string }

const CHARGE_KIB = 8 * 1024
const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

let made = 0
const newCve = () => `CVE-2031-${10_000 + made++}`
const newAddress = () => `10.70.${++made >> 8}.${made & 255}`
const naive = (secs: number) => new Date(Date.now() + secs * 1_000).toISOString().slice(0, -1)

const post = async (path: string, ...bodies: unknown[]) => {
  for (const body of bodies) {
    const answer = await app.post(path, body)
    assert.equal(answer.status, 200, answer.text)
  }
}
const run = (...pods: Fields[]) => post('/pod/spec', ...pods)
const flow = (pod: Pod, peer: string | null, fields: Fields = {}): Fields => ({
  uuid: `flow-${made++}`,
  pod_name: pod.pod_name,
  pod_namespace: pod.pod_namespace,
  pod_ip: pod.pod_ip,
  pod_port: String(made++),
  ip_protocol: 'TCP',
  traffic_type: 'INGRESS',
  traffic_in_out_ip: peer,
  traffic_in_out_port: '0',
  decision: 'ALLOW',
  time_stamp: naive(-60),
  ...fields,
})
const see = (...flows: Fields[]) => post('/pod/traffic/batch', flows)
const read = async (id: string, query = '') => {
  const answer = await app.get(`/vulnerabilities/${id}/exposure${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

/** A workload with one pod that runs one image with one vulnerability, all new. */
async function affected(fields: Fields = {}, of: Fields = {}) {
  const [namespace, digest, id] = [newNamespace(), newDigest(), newCve()]
  const pod = replica(namespace, [container('app', digest, of)], fields)
  await run(pod)
  await storeFindings(app, digest, 'operator-scanner', [finding(id)])
  return { namespace, digest, id, pod: pod as Pod }
}
const network = async (id: string, query = '') => {
  const { workloads } = await read(id, query)
  assert.equal(workloads.length, 1)
  return workloads[0].network
}
const assertNotAffected = (answer: Awaited<ReturnType<typeof app.get>>) =>
  assert.deepEqual([answer.status, answer.text], [404, 'No affected image in the inventory'])
const CLASSES = [
  'ingressFromOtherNamespaces',
  'ingressFromUnattributedPeers',
  'ingressFromPublicIps',
  'ingressFromNodes',
]
const counts = (found: Record<string, number>) => CLASSES.map((key) => found[key])

test('GET /vulnerabilities/{id}/exposure 200: images, workloads and namespaces, every key in wire order', async () => {
  const [namespace, digest, index, id] = [newNamespace(), newDigest(), newDigest(), newCve()]
  const pod = replica(namespace, [container('front', digest)]) as Pod
  await run(pod)
  await storeFindings(app, digest, 'operator-scanner', [
    finding(id, { severity: 3, package_name: 'zlib', installed_version: '1' }),
    finding(id, { severity: 1, package_name: 'curl', installed_version: '8', fixed_versions: ['8.1'] }),
    finding(newCve(), { severity: 0, fixed_versions: ['1'] }),
  ])
  await storeFindings(
    app,
    index,
    'db-matcher',
    [finding(id, { severity: 2, package_name: 'curl', installed_version: '8', fixed_versions: ['8.2'] })],
    {
      platform_manifests: { 'linux/amd64': digest },
    },
  )
  await see(flow(pod, '8.8.8.8'), flow(pod, '10.9.9.9', { traffic_type: 'EGRESS' }))
  const { lastSeen } = (await app.get(`/images/${digest}`)).json.workloads[0]
  const expected = {
    id,
    aliases: [],
    severity: 'HIGH',
    fixable: true,
    images: [
      {
        digest,
        repository: 'registry.test/team/app',
        tags: ['v1'],
        sources: ['db-matcher', 'operator-scanner'],
        reportDigests: [digest, index].sort(),
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
      },
    ],
    workloads: [
      {
        clusterId: 'primary',
        namespace,
        kind: 'Deployment',
        name: 'web',
        container: 'front',
        imageDigest: digest,
        join: 'image_id',
        running: true,
        lastSeen,
        network: {
          windowHours: 168,
          podsObserved: 1,
          flowsObserved: 2,
          ingressFlowsObserved: 1,
          ingressFromOtherNamespaces: 0,
          ingressFromUnattributedPeers: 1,
          ingressFromPublicIps: 1,
          ingressFromNodes: 0,
          exposed: true,
          exposedVia: ['unattributed', 'public_ip'],
        },
        inUse: null,
        inUseState: 'unknown',
      },
    ],
    namespaces: [{ namespace, workloads: 1, runningWorkloads: 1, exposedWorkloads: 1, unknownExposureWorkloads: 0 }],
    truncated: false,
    truncatedLists: [],
    inUse: null,
    inUseState: 'unknown',
  }
  assert.equal(JSON.stringify(await read(id)), JSON.stringify(expected))
})

test('GET /vulnerabilities/{id}/exposure 200: the id is found in any case, and returned as in the path', async () => {
  const { id, digest } = await affected()
  await storeFindings(app, digest, 'registry', [finding(id.toLowerCase(), { severity: 0 })])
  const found = await read(id.toLowerCase())
  assert.deepEqual(
    [found.id, found.severity, found.images[0].sources],
    [id.toLowerCase(), 'CRITICAL', ['operator-scanner', 'registry']],
  )
  const odd = `Odd._:-9${'x'.repeat(120)}`
  await storeFindings(app, digest, 'registry', [finding(odd)])
  assert.equal((await read(odd)).id, odd)
  assert.equal((await read(odd.replaceAll(':', '%3a'))).id, odd)
})

test('GET /vulnerabilities/{id}/exposure 200: with WIRE_NAMES=kguardian sources have product names, in the order of the neutral ones', async () => {
  const [digest, id] = [newDigest(), newCve()]
  const { status } = await products.post('/pod/spec', replica('shop', [container('app', digest)]))
  assert.equal(status, 200)
  for (const source of ['registry', 'operator-scanner', 'db-matcher'])
    await storeFindings(products, digest, source, [finding(id)])
  const [image] = (await products.get(`/vulnerabilities/${id}/exposure`)).json.images
  assert.deepEqual(image.sources, ['grype', 'trivy-operator', 'registry'])
  assert.deepEqual(image.packages[0].sources, ['grype', 'trivy-operator', 'registry'])
})

test('GET /vulnerabilities/{id}/exposure 404: no image has it, or only images outside the inventory', async () => {
  const id = newCve()
  assertNotAffected(await app.get(`/vulnerabilities/${id}/exposure`))
  await storeFindings(app, newDigest(), 'operator-scanner', [finding(id)])
  assertNotAffected(await app.get(`/vulnerabilities/${id}/exposure`))
})

test('GET /vulnerabilities/{id}/exposure 404: the payload that counts for the image does not have it', async () => {
  const { digest, id } = await affected()
  const index = newDigest()
  const as = { platform_manifests: { 'linux/amd64': digest } }
  // Linked by a weaker rule than the payload of the image itself.
  await storeFindings(app, index, 'operator-scanner', [finding(`${id}-index`)], as)
  assertNotAffected(await app.get(`/vulnerabilities/${id}-index/exposure`))
  await storeFindings(app, digest, 'operator-scanner', [finding(`${id}-new`)])
  assertNotAffected(await app.get(`/vulnerabilities/${id}/exposure`))
  // A payload of another source answers.
  await storeFindings(app, index, 'db-matcher', [finding(`${id}-index`)], as)
  const [image] = (await read(`${id}-index`)).images
  assert.deepEqual(
    [image.digest, image.sources, image.reportDigests, image.join],
    [digest, ['db-matcher'], [index], 'platform_manifest'],
  )
})

test('GET /vulnerabilities/{id}/exposure 404: the image has left the inventory', async () => {
  const { digest, id } = await affected()
  await app.sql`delete from workload_container where image_digest = ${digest}`
  assert.deepEqual((await read(id)).workloads, [])
  await app.sql`delete from image where digest = ${digest}`
  assertNotAffected(await app.get(`/vulnerabilities/${id}/exposure`))
})

test('GET /vulnerabilities/{id}/exposure 200: packages are merged over sources, fixed versions without repeats, by source', async () => {
  const { digest, id } = await affected()
  const of = (package_name: string, installed_version: string, severity: number, fixed_versions: string[] = []) =>
    finding(id, { package_name, installed_version, severity, fixed_versions })
  await storeFindings(app, digest, 'operator-scanner', [
    of('b', '1', 2, ['10', '9', '5']),
    of('a', '1', 2),
    of('a', '2', 5),
  ])
  await storeFindings(app, digest, 'db-matcher', [of('b', '1', 3, ['9', 'x']), of('a', '2', 4), of('B', '1', 2)])
  await storeFindings(app, digest, 'registry', [of('b', '1', 4, ['X', '5', '0'])])
  const { severity, fixable, images } = await read(id)
  assert.deepEqual([severity, fixable], ['MEDIUM', true])
  const all = ['db-matcher', 'operator-scanner', 'registry']
  assert.deepEqual(
    images[0].packages.map((p: Record<string, unknown>) => [
      p.name,
      p.installedVersion,
      p.severity,
      p.fixedVersions,
      p.sources,
    ]),
    [
      ['B', '1', 'MEDIUM', [], ['db-matcher']],
      ['a', '1', 'MEDIUM', [], ['operator-scanner']],
      ['b', '1', 'MEDIUM', ['9', 'x', '10', '5', '0', 'X'], all],
      ['a', '2', 'NONE', [], ['db-matcher', 'operator-scanner']],
    ],
  )
})

test('GET /vulnerabilities/{id}/exposure 200: not fixable when no source has a fixed version', async () => {
  const { id } = await affected()
  assert.equal((await read(id)).fixable, false)
})

test('GET /vulnerabilities/{id}/exposure 200: 50 packages are listed completely; of 51 the least severe is left out and `truncated` is set', async () => {
  const { digest, id } = await affected()
  const packages = (n: number) =>
    Array.from({ length: n }, (_, i) =>
      finding(id, { package_name: `p${100 + i}`, severity: i === 0 ? 5 : 3, fixed_versions: i === 0 ? ['1'] : [] }),
    )
  await storeFindings(app, digest, 'operator-scanner', packages(50))
  const whole = await read(id)
  assert.deepEqual([whole.images[0].packages.length, whole.truncated, whole.truncatedLists], [50, false, []])
  await storeFindings(app, digest, 'operator-scanner', packages(51))
  const cut = await read(id)
  assert.deepEqual([cut.images[0].packages.length, cut.truncated, cut.images[0].packages[49].name], [50, true, 'p150'])
  assert.deepEqual(cut.truncatedLists, ['packages'])
  assert.equal(cut.fixable, true, 'by what is not listed, too')
})

test('GET /vulnerabilities/{id}/exposure 200: 200 images are listed completely; of 201 the last is left out and `truncated` is set', async () => {
  const [id, namespace] = [newCve(), newNamespace()]
  const digests = Array.from({ length: 201 }, newDigest)
  const sorted = digests.slice(0, 200).sort()
  const last = `sha256:${'f'.repeat(64)}`
  await run(replica(namespace, [container('app', last)]))
  for (let at = 0; at < 200; at += 50)
    await run(
      replica(
        namespace,
        sorted.slice(at, at + 50).map((digest, i) => container(`c${i}`, digest, { state: 'terminated' })),
        { workload_name: `w${at}` },
      ),
    )
  for (const digest of sorted) await storeFindings(app, digest, 'operator-scanner', [finding(id, { severity: 4 })])
  const whole = await read(id)
  assert.deepEqual(
    [whole.images.map((i: { digest: string }) => i.digest), whole.truncated, whole.workloads.length],
    [sorted, false, 200],
  )
  await storeFindings(app, last, 'operator-scanner', [finding(id, { severity: 0, fixed_versions: ['1'] })])
  const cut = await read(id)
  assert.deepEqual(
    [cut.images.map((i: { digest: string }) => i.digest), cut.truncated, cut.severity, cut.fixable],
    [sorted, true, 'NONE', false],
  )
  assert.deepEqual(cut.truncatedLists, ['images', 'workloads'])
  // Workloads of an image that is not listed are still listed.
  assert.deepEqual([cut.workloads.length, cut.workloads[0].imageDigest, cut.workloads[0].running], [200, last, true])
})

test('GET /vulnerabilities/{id}/exposure 200: 200 containers are listed completely; of 201 the last is left out and `truncated` is set', async () => {
  const [digest, id, namespace] = [newDigest(), newCve(), newNamespace()]
  const some = (from: number, to: number, fields: Fields = {}) =>
    replica(
      namespace,
      Array.from({ length: to - from }, (_, i) => container(`c${from + i}`, digest, fields)),
      { workload_name: `w${from}` },
    )
  await run(some(100, 150), some(150, 200), some(200, 250), some(250, 300))
  await storeFindings(app, digest, 'operator-scanner', [finding(id)])
  const whole = await read(id)
  assert.deepEqual([whole.workloads.length, whole.truncated, whole.workloads[0].container], [200, false, 'c100'])
  await run(some(50, 51, { state: 'terminated' }))
  const cut = await read(id)
  assert.deepEqual(
    [cut.workloads.length, cut.truncated, cut.workloads.at(-1).container],
    [200, true, 'c299'],
    'the running come first',
  )
  assert.deepEqual(cut.truncatedLists, ['workloads'])
  assert.deepEqual(cut.namespaces, [
    { namespace, workloads: 4, runningWorkloads: 4, exposedWorkloads: 0, unknownExposureWorkloads: 4 },
  ])
})

test('GET /vulnerabilities/{id}/exposure 200: a vulnerability is found by each of its ids, in any case, and lists the others', async () => {
  const [namespace, digest, second, cve] = [newNamespace(), newDigest(), newDigest(), newCve()]
  const [ghsa, pysec] = [`GHSA-${cve}`, `PYSEC-${cve}`]
  await run(replica(namespace, [container('app', digest), container('other', second)]))
  await storeFindings(app, digest, 'db-matcher', [finding(cve, { aliases: [ghsa, pysec], fixed_versions: ['2'] })])
  await storeFindings(app, digest, 'operator-scanner', [finding(cve, { severity: 0 })])
  // Stored before its aliases were known.
  await storeFindings(app, second, 'registry', [finding(ghsa)])
  for (const [asked, aliases] of [
    [cve, [ghsa, pysec]],
    [cve.toLowerCase(), [ghsa, pysec]],
    [ghsa.toLowerCase(), [cve, pysec]],
    [pysec, [cve, ghsa]],
  ] as const) {
    const found = await read(asked)
    assert.deepEqual([found.id, found.aliases, found.severity, found.fixable], [asked, aliases, 'CRITICAL', true])
    assert.deepEqual(found.images.map((one: { digest: string }) => one.digest).sort(), [digest, second].sort())
    const { packages } = found.images.find((one: { digest: string }) => one.digest === digest)
    assert.deepEqual(packages, [
      {
        name: 'openssl',
        installedVersion: '3.0.1',
        fixedVersions: ['2'],
        severity: 'CRITICAL',
        sources: ['db-matcher', 'operator-scanner'],
      },
    ])
  }
  assert.deepEqual((await read((await affected()).id)).aliases, [])
})

test('GET /vulnerabilities/{id}/exposure 200: running workloads first, then by namespace, kind, name, container and digest', async () => {
  const [namespace, id] = [newNamespace(), newCve()]
  const [one, two] = [newDigest(), newDigest()].sort() as [string, string]
  const uses: [live: boolean, namespace: string, kind: string, name: string, container: string, digest: string][] = []
  for (const space of ['b', 'A', 'a'])
    for (const kind of ['StatefulSet', 'DaemonSet'])
      for (const name of ['web', 'api'])
        for (const part of ['y', 'x'])
          for (const digest of [two, one])
            uses.push([uses.length % 3 === 0, `${namespace}${space}`, kind, name, part, digest])
  for (const [live, space, workload_kind, workload_name, part, digest] of uses)
    await run(
      replica(space, [container(part, digest, { state: live ? 'running' : 'terminated' })], {
        workload_kind,
        workload_name,
      }),
    )
  await storeFindings(app, one, 'operator-scanner', [finding(id)])
  await storeFindings(app, two, 'db-matcher', [finding(id)])
  const { workloads, namespaces } = await read(id)
  const key = ([live, ...names]: (boolean | string)[]) => [live ? 0 : 1, ...names].join(' ')
  assert.deepEqual(
    workloads.map((w: Record<string, unknown>) => [w.running, w.namespace, w.kind, w.name, w.container, w.imageDigest]),
    [...uses].sort((x, y) => (key(x) < key(y) ? -1 : 1)),
  )
  assert.deepEqual(
    namespaces.map((n: { namespace: string; workloads: number }) => [n.namespace, n.workloads]),
    ['A', 'a', 'b'].map((space) => [`${namespace}${space}`, 4]),
  )
})

test('GET /vulnerabilities/{id}/exposure 200: running needs a running state, and a workload runs if any container does', async () => {
  const [namespace, digest, id] = [newNamespace(), newDigest(), newCve()]
  const states = { a: 'terminated', b: 'running', c: undefined, d: 'waiting' }
  for (const [workload_name, state] of Object.entries(states))
    await run(replica(namespace, [container('app', digest, { state })], { workload_name }))
  await run(
    replica(namespace, [container('one', digest, { state: 'terminated' }), container('two', digest)], {
      workload_name: 'e',
    }),
  )
  await storeFindings(app, digest, 'operator-scanner', [finding(id)])
  const { workloads, namespaces } = await read(id)
  assert.deepEqual(
    workloads.map((w: Record<string, unknown>) => `${w.name} ${w.container} ${w.running}`),
    ['b app true', 'c app true', 'e two true', 'a app false', 'd app false', 'e one false'],
  )
  assert.deepEqual(namespaces, [
    { namespace, workloads: 5, runningWorkloads: 3, exposedWorkloads: 0, unknownExposureWorkloads: 5 },
  ])
})

test('GET /vulnerabilities/{id}/exposure 200: the join is the best of the payloads that have it', async () => {
  const [namespace, digest, index, tagged, id] = [newNamespace(), newDigest(), newDigest(), newDigest(), newCve()]
  await run(replica(namespace, [container('app', digest, { repository: 'registry.test/team/tagged', tag: 'v9' })]))
  const observed_in = [{ namespace, kind: 'ReplicaSet', name: 'web-5d8f', container: 'app' }]
  const as = { normal_repository: 'registry.test/team/tagged', tag: 'v9', observed_in }
  await storeFindings(app, tagged, 'registry', [finding(id)], as)
  const joins = async () => {
    const { images, workloads } = await read(id)
    return [images[0].join, workloads[0].join, images[0].reportDigests]
  }
  assert.deepEqual(await joins(), ['workload_tag', 'workload_tag', [tagged]])
  await storeFindings(app, index, 'db-matcher', [finding(id)], { platform_manifests: { 'linux/amd64': digest } })
  assert.deepEqual(await joins(), ['platform_manifest', 'platform_manifest', [index]])
  await storeFindings(app, digest, 'operator-scanner', [finding(newCve())])
  assert.deepEqual(
    await joins(),
    ['platform_manifest', 'platform_manifest', [index]],
    'the better one does not tell of it',
  )
  await storeFindings(app, digest, 'registry', [finding(id)])
  assert.deepEqual(await joins(), ['image_id', 'image_id', [digest, index].sort()])
})

test('GET /vulnerabilities/{id}/exposure 200: no pods, no flows or no ingress are unknown, not safe', async () => {
  const { id, pod } = await affected()
  const nothing = {
    windowHours: 168,
    podsObserved: 1,
    flowsObserved: 0,
    ingressFlowsObserved: 0,
    ingressFromOtherNamespaces: 0,
    ingressFromUnattributedPeers: 0,
    ingressFromPublicIps: 0,
    ingressFromNodes: 0,
    exposed: null,
    exposedVia: [],
  }
  assert.deepEqual(await network(id), nothing)
  await see(
    flow(pod, '8.8.8.8', { traffic_type: 'EGRESS' }),
    flow(pod, '8.8.8.8', { traffic_type: null }),
    flow(pod, '8.8.8.8', { traffic_type: 'ingress' }),
  )
  assert.deepEqual(await network(id), { ...nothing, flowsObserved: 3 })
  const [unknown] = (await read(id)).namespaces
  assert.deepEqual([unknown.exposedWorkloads, unknown.unknownExposureWorkloads], [0, 1])
  await app.sql`delete from pod where pod_name = ${pod.pod_name}`
  assert.deepEqual(await network(id), { ...nothing, podsObserved: 0 })
})

test('GET /vulnerabilities/{id}/exposure 200: peers of the same namespace are no exposure', async () => {
  const { id, pod, namespace } = await affected()
  const [friend, gate] = [newAddress(), newAddress()]
  await run(podPost({ pod_ip: friend, pod_namespace: namespace, started_at: '2024-01-01T00:00:00' }))
  await post('/svc/spec', servicePost({ svc_ip: gate, svc_namespace: namespace, svc_name: 'gate' }))
  await see(flow(pod, friend), flow(pod, friend), flow(pod, gate))
  const found = await network(id)
  assert.deepEqual([found.flowsObserved, found.ingressFlowsObserved, ...counts(found)], [3, 3, 0, 0, 0, 0])
  assert.deepEqual([found.exposed, found.exposedVia], [false, []])
  assert.deepEqual((await read(id)).namespaces[0].unknownExposureWorkloads, 0)
})

test('GET /vulnerabilities/{id}/exposure 200: a flow without a peer address makes the exposure unknown', async () => {
  const { id, pod, namespace } = await affected()
  const friend = newAddress()
  await run(podPost({ pod_ip: friend, pod_namespace: namespace, started_at: '2024-01-01T00:00:00' }))
  await see(flow(pod, friend), flow(pod, null))
  const found = await network(id)
  assert.deepEqual([found.ingressFlowsObserved, ...counts(found)], [2, 0, 0, 0, 0])
  assert.deepEqual([found.exposed, found.exposedVia], [null, []], 'one of its own namespace does not tell of the other')
  const [unknown] = (await read(id)).namespaces
  assert.deepEqual([unknown.exposedWorkloads, unknown.unknownExposureWorkloads], [0, 1])
  await app.sql`update traffic set peer_kind = 'node' where pod_name = ${pod.pod_name} and traffic_in_out_ip is null`
  assert.equal((await network(id)).exposed, null, 'a node that has no address')
  await see(flow(pod, '8.8.8.8'))
  assert.deepEqual((await network(id)).exposed, true)
})

test('GET /vulnerabilities/{id}/exposure 200: peers of other namespaces are counted by owner, else by name', async () => {
  const { id, pod, namespace } = await affected()
  const peer = async (pod_namespace: string | null, workload_name: string | null, pod_name?: string) => {
    const pod_ip = newAddress()
    const fields = {
      pod_ip,
      pod_namespace,
      started_at: '2024-01-01T00:00:00',
      workload_kind: workload_name && 'Deployment',
      workload_name,
    }
    await run(podPost(pod_name === undefined ? fields : { ...fields, pod_name }))
    return pod_ip
  }
  const gate = newAddress()
  await post('/svc/spec', servicePost({ svc_ip: gate, svc_namespace: `${namespace}-b`, svc_name: 'gate' }))
  const of = `${namespace}-b`
  const peers = [
    await peer(of, 'client'),
    await peer(of, 'client'),
    await peer(`${namespace}-c`, 'client'),
    await peer(of, null, 'gate'),
    await peer(of, null),
    gate,
  ]
  await see(...peers.flatMap((one) => [flow(pod, one), flow(pod, one)]))
  const found = await network(id)
  assert.deepEqual(
    [found.ingressFlowsObserved, ...counts(found)],
    [12, 4, 0, 0, 0],
    'the pod and the service of one name are one',
  )
  assert.deepEqual([found.exposed, found.exposedVia], [true, ['other_namespace']])
  await see(flow(pod, await peer(null, 'nowhere')))
  assert.deepEqual(
    counts(await network(id)),
    [5, 0, 0, 0],
    'whose namespace nobody knows is not known to be of this one',
  )
})

test('GET /vulnerabilities/{id}/exposure 200: every class is listed, in a fixed order, and nodes are exposure', async () => {
  const { id, pod, namespace } = await affected()
  const [node, client] = [newAddress(), newAddress()]
  await run(podPost({ pod_ip: node, pod_namespace: namespace, host_network: true, started_at: '2024-01-01T00:00:00' }))
  await run(podPost({ pod_ip: client, pod_namespace: `${namespace}-b`, started_at: '2024-01-01T00:00:00' }))
  await see(flow(pod, node), flow(pod, node))
  const first = await network(id)
  assert.deepEqual([counts(first), first.exposed, first.exposedVia], [[0, 0, 0, 1], true, ['node']])
  await see(flow(pod, '9.9.9.9'), flow(pod, client))
  const found = await network(id)
  assert.deepEqual(
    [counts(found), found.exposedVia],
    [
      [1, 1, 1, 1],
      ['other_namespace', 'unattributed', 'public_ip', 'node'],
    ],
  )
})

test('GET /vulnerabilities/{id}/exposure 200: malformed addresses are unattributed peers, and not public', async () => {
  const { id, pod } = await affected()
  const odd = [
    '',
    'None',
    '::',
    ':::',
    '1.2.3',
    '01.2.3.4',
    '256.1.1.1',
    '8.8.8.8/32',
    '8.8.8.8 ',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7:8:9',
    '::g',
    "'); drop",
    '8.8.8.8\n9.9.9.9',
    '12345::1',
  ]
  await see(...odd.map((one) => flow(pod, one)), flow(pod, null))
  assert.deepEqual(counts(await network(id)), [0, odd.length, 0, 0], 'of no address nothing is counted')
  // As another version may have stored it.
  await app.sql`update traffic set traffic_in_out_ip = '::FFFF:8.8.8.8' where pod_name = ${pod.pod_name} and traffic_in_out_ip = ''`
  await app.sql`update traffic set traffic_in_out_ip = '::ffff:10.0.0.1' where pod_name = ${pod.pod_name} and traffic_in_out_ip = 'None'`
  await app.sql`update traffic set traffic_in_out_ip = '::ffff:808:808' where pod_name = ${pod.pod_name} and traffic_in_out_ip = '1.2.3'`
  assert.deepEqual(counts(await network(id)), [0, odd.length, 2, 0])
})

test('GET /vulnerabilities/{id}/exposure 200: the number of public peers has no limit', async () => {
  const { id, pod } = await affected()
  const peers = Array.from({ length: 700 }, (_, i) => `8.8.${i >> 8}.${i & 255}`)
  await see(...peers.map((one) => flow(pod, one)))
  assert.deepEqual(counts(await network(id)), [0, 700, 700, 0])
})

test('GET /vulnerabilities/{id}/exposure 200: window_hours bounds the flows, is 168 by default and clamped to 1..720', async () => {
  const { id, pod } = await affected()
  const hours = [0.5, 0.99, 1.01, 5, 167.9, 168.1, 719.9, 720.1]
  await see(...hours.map((one, i) => flow(pod, `10.5.0.${i}`, { time_stamp: naive(-one * 3_600) })))
  for (const [sent, windowHours, seen] of [
    ['', 168, 5],
    ['?window_hours=168', 168, 5],
    ['?window_hours=169', 169, 6],
    ['?window_hours=1', 1, 2],
    ['?window_hours=0', 1, 2],
    ['?window_hours=-7', 1, 2],
    ['?window_hours=720', 720, 7],
    ['?window_hours=721', 720, 7],
    [`?window_hours=${'9'.repeat(400)}`, 720, 7],
  ] as const) {
    const found = await network(id, sent)
    assert.deepEqual(
      [found.windowHours, found.flowsObserved, found.ingressFromUnattributedPeers],
      [windowHours, seen, seen],
      sent,
    )
  }
})

test('GET /vulnerabilities/{id}/exposure 200: flows match by pod name and namespace, pods by namespace and workload', async () => {
  const { id, pod, namespace } = await affected()
  await see(
    flow({ ...pod, pod_namespace: `${namespace}-b` }, '10.6.0.1'),
    flow({ ...pod, pod_namespace: null }, '10.6.0.2'),
    flow({ ...pod, pod_name: 'nobody' }, '10.6.0.3'),
  )
  for (const other of [
    { pod_namespace: `${namespace}-b` },
    { workload_kind: 'StatefulSet' },
    { workload_name: 'other' },
    { workload_kind: null, workload_name: null, pod_name: 'web' },
  ]) {
    const stranger = podPost({ pod_namespace: namespace, workload_kind: 'Deployment', workload_name: 'web', ...other })
    await run(stranger)
    await see(flow(stranger, '10.6.0.4'))
  }
  const found = await network(id)
  assert.deepEqual([found.podsObserved, found.flowsObserved], [1, 0])
})

test('GET /vulnerabilities/{id}/exposure 200: dead pods count, and of more than 50 pods the newest are used', async () => {
  const { id, pod, namespace } = await affected({ time_stamp: '2024-01-01T00:00:00' })
  const pods = Array.from({ length: 49 }, (_, i) =>
    podPost({
      pod_namespace: namespace,
      workload_kind: 'Deployment',
      workload_name: 'web',
      is_dead: i % 2 === 0,
      time_stamp: `2024-05-01T10:00:${10 + i}`,
    }),
  )
  await run(...pods)
  await see(flow(pod, '10.7.0.1'), ...pods.map((one, i) => flow(one, `10.7.1.${i}`)))
  const whole = await network(id)
  assert.deepEqual([whole.podsObserved, whole.flowsObserved, counts(whole)[1]], [50, 50, 50])
  const newest = podPost({
    pod_namespace: namespace,
    workload_kind: 'Deployment',
    workload_name: 'web',
    time_stamp: '2024-06-01T00:00:00',
  })
  await run(newest)
  const cut = await network(id)
  assert.deepEqual([cut.podsObserved, cut.flowsObserved], [50, 49], 'the oldest is out')
})

test('GET /vulnerabilities/{id}/exposure 200: a pod without an owner is its own workload', async () => {
  const { id, pod } = await affected({ workload_kind: null, workload_name: null })
  await see(flow(pod, '10.8.0.1'))
  const [found] = (await read(id)).workloads
  assert.deepEqual(
    [found.kind, found.name, found.network.podsObserved, found.network.exposed],
    ['Pod', pod.pod_name, 1, true],
  )
})

test('GET /vulnerabilities/{id}/exposure 200: a workload with several containers and digests counts once, with one network', async () => {
  const [namespace, one, two, id] = [newNamespace(), newDigest(), newDigest(), newCve()]
  const pod = replica(namespace, [container('a', one), container('b', one), container('c', two)]) as Pod
  const quiet = replica(namespace, [container('a', one)], { workload_name: 'quiet' }) as Pod
  const closed = replica(namespace, [container('a', one, { state: 'terminated' })], { workload_name: 'closed' }) as Pod
  await run(pod, quiet, closed)
  for (const digest of [one, two]) await storeFindings(app, digest, 'operator-scanner', [finding(id)])
  await see(flow(pod, '8.8.8.8'), flow(closed, String(pod.pod_ip)))
  await app.sql`update traffic set peer_kind = 'pod', peer_namespace = ${namespace} where pod_name = ${closed.pod_name}`
  const { workloads, namespaces } = await read(id)
  const seen = workloads.map(
    (w: Record<string, Record<string, unknown>>) => `${w.name} ${w.container} ${w.network!.exposed}`,
  )
  assert.deepEqual(seen, ['quiet a null', 'web a true', 'web b true', 'web c true', 'closed a false'])
  assert.deepEqual(namespaces, [
    { namespace, workloads: 3, runningWorkloads: 2, exposedWorkloads: 1, unknownExposureWorkloads: 1 },
  ])
})

// The documented ranges, in the notation of Node.
const withheld = new BlockList()
for (const [range, bits] of Object.entries({
  '0.0.0.0': 8,
  '10.0.0.0': 8,
  '100.64.0.0': 10,
  '127.0.0.0': 8,
  '169.254.0.0': 16,
  '172.16.0.0': 12,
  '192.0.2.0': 24,
  '192.168.0.0': 16,
  '198.51.100.0': 24,
  '203.0.113.0': 24,
  '224.0.0.0': 4,
  '240.0.0.0': 4,
}))
  withheld.addSubnet(range, bits, 'ipv4')
for (const [range, bits] of Object.entries({
  '::': 127,
  'fc00::': 7,
  'fe80::': 10,
  'ff00::': 8,
  '2001:db8::': 32,
  '3fff::': 20,
}))
  withheld.addSubnet(range, bits, 'ipv6')
const isPublic = (address: string) => {
  const family = address.includes('%') ? 0 : isIP(address)
  return family !== 0 && !withheld.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

const edges = [
  '0',
  '9',
  '10',
  '11',
  '63',
  '64',
  '100',
  '126',
  '127',
  '128',
  '169',
  '172',
  '192',
  '198',
  '203',
  '223',
  '224',
  '239',
  '240',
  '255',
]
const octet = fc.oneof(
  fc.nat(255).map(String),
  fc.constantFrom(...edges, '2', '16', '31', '32', '51', '113', '168', '254'),
)
const ipv4 = fc.tuple(fc.constantFrom(...edges), octet, octet, octet).map((parts) => parts.join('.'))
const prefixes = [
  'fc00',
  'fdff',
  'fe00',
  'fe80',
  'febf',
  'fec0',
  'ff02',
  '2001:db8',
  '2001:db9',
  '3fff',
  '3fff:1000',
  '2606',
  '::',
  '::1',
  '64:ff9b:',
]
const ipv6 = fc.oneof(
  fc.ipV6(),
  fc
    .constantFrom(...prefixes)
    .chain((start) => fc.nat(0xffff).map((end) => (start.startsWith('::') ? start : `${start}::${end.toString(16)}`))),
  ipv4.map((one) => `::ffff:${one}`),
)
const free = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.stringMatching(/^[0-9a-f:.]{0,20}$/),
  fc.constantFrom('None', 'fe80::1%eth0', '10.0.0.0/8'),
)
const sendable = (one: string) => !one.includes('\0') && one.isWellFormed()

test('GET /vulnerabilities/{id}/exposure 200: property: an address is public by the documented ranges, and none is an error', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(ipv4, ipv4, ipv6, ipv6, free.filter(sendable)), { minLength: 1, maxLength: 60 }),
      async (addresses) => {
        // Stored addresses are canonical, but any text has to work.
        const sent = [...new Set([...addresses, ...addresses.map(canonicalAddress)])]
        const rows = await app.sql<{ address: string; is_public: boolean }[]>`
        select a.address, is_public_address(a.address) as is_public from json_array_elements_text(${JSON.stringify(sent)}::text::json) a(address)`
        for (const { address, is_public } of rows)
          if (canonicalAddress(address) === address) assert.equal(is_public, isPublic(address), JSON.stringify(address))
      },
    ),
    { numRuns: depth(25, 200) },
  )
})

interface Peer {
  kind: 'pod' | 'host' | 'service' | 'unknown'
  space: number | null
  owner: number | null
  address: string
}

test('GET /vulnerabilities/{id}/exposure 200: property: the network equals a plain count of the flows', async () => {
  const peer: fc.Arbitrary<Peer> = fc.record({
    kind: fc.constantFrom('pod', 'pod', 'host', 'service', 'unknown', 'unknown', 'unknown'),
    space: fc.option(fc.nat(2), { freq: 8 }),
    owner: fc.option(fc.nat(1)),
    address: fc.oneof(ipv4, ipv6, free.filter(sendable)),
  })
  const seen = fc.record({
    pod: fc.nat(3),
    peer: fc.nat(9),
    hours: fc.nat(30),
    type: fc.constantFrom('INGRESS', 'INGRESS', 'INGRESS', 'EGRESS', null),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
      fc.uniqueArray(peer, { minLength: 1, maxLength: 10, selector: ({ address }) => canonicalAddress(address) }),
      fc.array(seen, { maxLength: 40 }),
      fc.integer({ min: 1, max: 31 }),
      async (dead, sketches, seen, windowHours) => {
        const [namespace, digest, id] = [newNamespace(), newDigest(), newCve()]
        const spaces = [namespace, `${namespace}-b`, `${namespace}-c`]
        const pods = dead.map(() => replica(namespace, [container('app', digest)]) as Pod)
        await run(...pods)
        for (const [i, isDead] of dead.entries())
          if (isDead) await post('/pod/mark_dead', { pod_name: pods[i]!.pod_name })
        // Known peers have their own addresses, so that unknown ones stay unknown.
        const peers = sketches.map((one) => ({
          ...one,
          address: one.kind === 'unknown' ? one.address : newAddress(),
          name: `peer-${made++}`,
        }))
        for (const { kind, space, owner, address, name } of peers) {
          const pod_namespace = space === null ? null : spaces[space]
          const workload = owner === null ? {} : { workload_kind: 'Deployment', workload_name: `owner-${owner}` }
          if (kind === 'service')
            await post('/svc/spec', servicePost({ svc_ip: address, svc_name: name, svc_namespace: pod_namespace }))
          else if (kind !== 'unknown')
            await run(
              podPost({
                pod_name: name,
                pod_ip: address,
                pod_namespace,
                host_network: kind === 'host',
                started_at: '2024-01-01T00:00:00',
                ...workload,
              }),
            )
        }
        const flows = seen.map((one) => ({
          ...one,
          pod: pods[one.pod % pods.length]!,
          peer: peers[one.peer % peers.length]!,
        }))
        if (flows.length > 0)
          await see(
            ...flows.map((f) =>
              flow(f.pod, f.peer.address, { traffic_type: f.type, time_stamp: naive(-f.hours * 3_600 - 60) }),
            ),
          )
        await storeFindings(app, digest, 'operator-scanner', [finding(id)])

        const inside = flows.filter((f) => f.hours < windowHours)
        const ingress = inside.filter((f) => f.type === 'INGRESS').map((f) => f.peer)
        const different = (some: Peer[], by: (one: (typeof peers)[number]) => string) =>
          new Set((some as typeof peers).map(by)).size
        const address = (one: Peer) => canonicalAddress(one.address)
        const unknown = ingress.filter((one) => one.kind === 'unknown')
        const named = ingress.filter((one) => (one.kind === 'pod' || one.kind === 'service') && one.space !== 0)
        const expected = [
          different(
            named,
            (one) => `${one.space} ${one.kind === 'pod' && one.owner !== null ? `owner-${one.owner}` : one.name}`,
          ),
          different(unknown, address),
          different(
            unknown.filter((one) => isPublic(address(one))),
            address,
          ),
          different(
            ingress.filter((one) => one.kind === 'host'),
            address,
          ),
        ]
        const found = await network(id, `?window_hours=${windowHours}`)
        const via = ['other_namespace', 'unattributed', 'public_ip', 'node'].filter(
          (_, i) => ingress.length > 0 && expected[i]! > 0,
        )
        assert.deepEqual(
          [
            found.podsObserved,
            found.flowsObserved,
            found.ingressFlowsObserved,
            counts(found),
            found.exposed,
            found.exposedVia,
          ],
          [pods.length, inside.length, ingress.length, expected, ingress.length > 0 ? via.length > 0 : null, via],
        )
      },
    ),
    { numRuns: depth(12, 60) },
  )
})

for (const id of ['CVE%202024', 'x'.repeat(129), 'CVE-1%3B', 'CVE%2F1', '%00', 'CVE-%C3%9F', "x'"])
  test(`GET /vulnerabilities/{id}/exposure 400: ${id.slice(0, 20)} is no id`, async () => {
    const answer = await app.get(`/vulnerabilities/${id}/exposure`)
    assert.equal(answer.status, 400)
    assert.match(
      answer.text,
      /^Path deserialize error: id: expected 1 to 128 letters, digits, dots, underscores, colons and hyphens$/,
    )
  })

for (const hours of ['week', '', '1.5', '1e2', '0x10', ' 1'])
  test(`GET /vulnerabilities/{id}/exposure 400: window_hours=${hours}`, async () => {
    const answer = await app.get(`/vulnerabilities/CVE-1/exposure?window_hours=${hours}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Query deserialize error: window_hours: expected an integer$/)
  })

test('GET /vulnerabilities/{id}/exposure 400: a malformed window is refused before the read budget is charged', async () => {
  const release = await guarded.deps.budget.acquire(guarded.deps.config.readMemoryBudgetMb * 1024)
  assert.equal((await guarded.get('/vulnerabilities/CVE-1/exposure?window_hours=x', { token })).status, 400)
  release()
})

test('GET /vulnerabilities/{id}/exposure 401: without a token', async () =>
  assertUnauthorized(await guarded.get('/vulnerabilities/CVE-1/exposure')))

test('GET /vulnerabilities/{id}/exposure 503: 8 MiB are charged', async () => {
  const total = guarded.deps.config.readMemoryBudgetMb * 1024
  const release = await guarded.deps.budget.acquire(total - CHARGE_KIB + 1)
  assertShed(await guarded.get('/vulnerabilities/CVE-1/exposure', { token }), CHARGE_KIB, total)
  release()
  assert.equal((await guarded.get('/vulnerabilities/CVE-1/exposure', { token })).status, 404)
})

test('GET /vulnerabilities/{id}/exposure 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'image_finding', async () =>
    assertDatabaseBusy(await guarded.get('/vulnerabilities/CVE-1/exposure', { token })),
  )
})
