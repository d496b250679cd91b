// Profiles of workloads: what is known and what is not, versions, the list, differences, exports that are recorded.

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import { digest, pod, profiling, computeJob as runJob, running } from '../lib/profiling.mjs'

const ENV = {
  ...{ BROKER_TOKEN_READ: 'profiles-read-token', BROKER_TOKEN_INGEST: 'profiles-ingest-token' },
  BROKER_TOKEN_ADMIN: 'profiles-admin-token',
}
const as = (scope) => ({ headers: { authorization: `Bearer ${ENV[`BROKER_TOKEN_${scope}`]}` } })
let dataDir
let b
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'broker-conformance-'))
  b = await startBroker({ env: ENV, dataDir })
})
after(async () => {
  await b?.stop()
  if (dataDir) await rm(dataDir, { recursive: true, force: true })
})

const W = '/workloads/shop/Deployment/web'
const get = async (path, status = 200) => {
  const answer = await b.get(path, as('READ'))
  assert.equal(answer.status, status, answer.text)
  return answer.json
}
const sends = async (path, body) => {
  const answer = await b.post(path, body, as('INGEST'))
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

const SAFE = {
  ...{ allowPrivilegeEscalation: false, runAsNonRoot: true, readOnlyRootFilesystem: true },
  ...{ capabilitiesDrop: ['ALL'], seccompProfileType: 'RuntimeDefault' },
}
const web = (image, security = SAFE) =>
  pod({
    ...{ ns: 'shop', name: 'web-1', containers: [running('app', digest(image), { security_context: security })] },
    pod_security: { automountServiceAccountToken: false, hostNetwork: false, securityContext: { runAsNonRoot: true } },
  })
const snapshot = async () => {
  const ran = await runJob(b, 'profile-snapshots')
  if (ran) assert.equal(ran.code, 0, ran.log)
  return ran !== null
}

check('a workload that nobody knows is 404 with a code, bad parameters are 400 with one', async () => {
  for (const path of [`${W}/profile`, `${W}/profile/versions`, `${W}/profile/diff`, `${W}/export`])
    assert.equal((await get(path, 404)).error, 'workload_not_found', path)
  for (const path of [
    '/workloads?status=good',
    '/workloads?limit=many',
    `${W}/profile/versions/x`,
    `${W}/export?mode=on`,
  ]) {
    const refused = await get(path, 400)
    assert.deepEqual(Object.keys(refused), ['error', 'message'], path)
    assert.equal(refused.error, 'bad_request', path)
  }
  assert.deepEqual(await get('/workloads'), { items: [], nextAfter: null })
})

check('what nobody observed is unknown, whatever passes', async () => {
  await profiling(b.as(ENV.BROKER_TOKEN_INGEST)).pods(web('one'))
  const { posture, dimensions, exposure, capabilities, version } = await get(`${W}/profile`)
  assert.equal(posture.status, 'unknown')
  assert.deepEqual(posture.unknownDimensions, ['network', 'syscalls', 'podSecurity', 'images'])
  assert.deepEqual(
    [dimensions.podSecurity.level, dimensions.podSecurity.levelConfidence],
    ['restricted', 'upper_bound'],
  )
  assert.deepEqual(Object.values(exposure), [null, null, null, null])
  assert.equal(capabilities.containers[0].evidence, 'insufficient')
  assert.equal(version, null)
})

check('a privileged container is a risk; its peers appear once flows are counted', async () => {
  await profiling(b.as(ENV.BROKER_TOKEN_INGEST)).pods(web('one', { privileged: true }))
  await sends('/pod/traffic/batch', [
    {
      ...{ uuid: 'profile-1', pod_name: 'web-1', pod_namespace: 'shop', pod_ip: '10.0.0.1', pod_port: '0' },
      ...{
        ip_protocol: 'TCP',
        traffic_type: 'EGRESS',
        decision: 'ALLOW',
        time_stamp: new Date().toISOString().slice(0, 19),
      },
      ...{ traffic_in_out_ip: '93.184.216.34', traffic_in_out_port: '443' },
    },
  ])
  const { json } = await eventually(
    async () => {
      const answer = await b.get(`${W}/profile`, as('READ'))
      return answer.json.dimensions.network.peers.length > 0 && answer
    },
    { timeoutMs: 40_000, what: 'the flow is counted' },
  )
  assert.equal(json.posture.status, 'risk')
  assert.ok(json.attention.some(({ id }) => id === 'podSecurity.privileged/app'))
  assert.deepEqual(json.dimensions.network.peers[0].peer.kind, 'external')
})

check('versions, the list, and the difference after a change', async () => {
  if (!(await snapshot())) return
  const first = await get(`${W}/profile`)
  assert.deepEqual([first.version.revision, first.snapshotPending], [1, false])
  await profiling(b.as(ENV.BROKER_TOKEN_INGEST)).pods(web('one', { ...SAFE, capabilitiesAdd: ['NET_ADMIN'] }))
  await snapshot()
  const { items, nextBefore } = await get(`${W}/profile/versions`)
  assert.deepEqual(
    items.map(({ revision, changedDimensions }) => [revision, changedDimensions.includes('podSecurity')]),
    [
      [2, true],
      [1, true],
    ],
  )
  assert.equal(nextBefore, null)
  const diff = await get(`${W}/profile/diff`)
  assert.deepEqual([diff.from.revision, diff.to.revision, diff.changed], [1, 2, true])
  const fields = diff.dimensions.podSecurity.containers[0].fields.map(({ field }) => field)
  assert.ok(fields.includes('securityContext.privileged') && fields.includes('securityContext.capabilitiesAdd'))
  const listed = (await get('/workloads?namespace=shop')).items
  assert.deepEqual(
    listed.map(({ name, revision }) => [name, revision]),
    [['web', 2]],
  )
  assert.equal((await get(`${W}/profile/versions/7`, 404)).error, 'revision_not_found')
})

check('an export is recorded only by the token of admins, and survives a kill', async () => {
  const refused = await b.post(`${W}/export?artifacts=securitycontext`, undefined, as('INGEST'))
  assert.equal(refused.status, 403)
  const recorded = await b.post(`${W}/export?artifacts=securitycontext&format=zip-manifest`, undefined, as('ADMIN'))
  assert.deepEqual([recorded.status, recorded.json.recorded], [200, true])
  await b.kill('SIGKILL')
  b = await startBroker({ env: ENV, dataDir })
  await profiling(b.as(ENV.BROKER_TOKEN_INGEST)).pods(web('two', { privileged: true }))
  const { drift } = await get(`${W}/profile`)
  assert.deepEqual(drift.baselines.export.artifacts, ['securitycontext'])
  assert.equal(drift.baselines.securityContext.source, 'export')
  const types = drift.items.map(({ type }) => type)
  assert.ok(types.includes('imageChangedSinceExport') && types.includes('securityContextRegression'), types.join())
})
