import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { container, digestOf, newDigest, newNamespace, replica } from '../support/images.ts'
import { podPost, servicePost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { finding, storeFindings } from '../support/supply-chain.ts'

type Fields = Record<string, unknown>
type Pod = Fields & { pod_name: string }

const CHARGE_KIB = 8 * 1024
const app = await startApp()
const guarded = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '300', BROKER_READ_ACQUIRE_WAIT_MS: '0' })
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

/** A workload with one pod that runs one image with one vulnerability, all of them new. */
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
const CLASSES = ['ingressFromOtherNamespaces', 'ingressFromUnattributedPeers', 'ingressFromPublicIps', 'ingressFromNodes']
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
  await storeFindings(app, index, 'db-matcher', [finding(id, { severity: 2, package_name: 'curl', installed_version: '8', fixed_versions: ['8.2'] })], {
    platform_manifests: { 'linux/amd64': digest },
  })
  await see(flow(pod, '8.8.8.8'), flow(pod, '10.9.9.9', { traffic_type: 'EGRESS' }))
  const { lastSeen } = (await app.get(`/images/${digest}`)).json.workloads[0]
  const expected = {
    id,
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
          { name: 'curl', installedVersion: '8', fixedVersions: ['8.2', '8.1'], severity: 'HIGH', sources: ['db-matcher', 'operator-scanner'] },
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
    inUse: null,
    inUseState: 'unknown',
  }
  assert.equal(JSON.stringify(await read(id)), JSON.stringify(expected))
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

test('GET /vulnerabilities/{id}/exposure 503: a statement that is cancelled', async () => {
  await whileLocked(guarded.sql, 'image_finding', async () =>
    assertDatabaseBusy(await guarded.get('/vulnerabilities/CVE-1/exposure', { token })),
  )
})

void [servicePost, podPost, digestOf, network, counts, affected, see]
