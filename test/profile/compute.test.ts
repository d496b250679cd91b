/** The dimension `compute` of a profile, from what agents posted. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeCompute, readCompute } from '../../lib/profile/compute/index.ts'
import { Compute } from '../../lib/profile/record/compute.ts'
import { sample, take } from '../compute/posts.ts'
import { startApp } from '../support/app.ts'
import { podOf } from '../support/policy-cluster.ts'

const app = await startApp()
const { sql } = app

async function read(name: string) {
  const rows = await readCompute(app.db.read, { namespace: 'shop', kind: 'Deployment', name })
  const { dimension, findings } = judgeCompute(rows)
  assert.deepEqual(Compute.parse(dimension), dimension)
  return { ...dimension, findings: findings.map(({ id, severity }) => `${id} ${severity}`) }
}
let made = 0
/** Posts a pod of a workload whose uid is that of its samples. */
const pod = async (name: string, of: string) => {
  const posted = podOf({ namespace: 'shop', name, ip: `10.9.0.${++made}`, workload: `Deployment/${of}` })
  assert.equal((await app.post('/pod/spec', posted)).status, 200)
}
const NO_OOM = { oom_kill: 0 }

test('the latest samples of live pods, by pod and container, with units', async () => {
  await pod('web-2', 'web')
  await pod('web-1', 'web')
  await pod('other-1', 'other')
  await take(app, [
    sample({ pod_name: 'web-2', memory: NO_OOM }),
    sample({ pod_name: 'web-1', container: 'side', memory: NO_OOM, cpu: { nr_periods: 0, nr_throttled: 0 } }),
    sample({ pod_name: 'web-1', memory: NO_OOM }),
    sample({ pod_name: 'other-1' }),
    sample({ pod_name: 'web-1', namespace: 'elsewhere', container_uid: 'uid-of-another/app' }),
  ])
  const { status, containers, coverage, reasons, findings, truncated } = await read('web')
  assert.deepEqual(
    containers.map((one) => `${one.pod}/${one.container}`),
    ['web-1/app', 'web-1/side', 'web-2/app'],
  )
  const { updatedAt, ...first } = containers[0]!
  assert.match(updatedAt, /Z$/)
  assert.deepEqual(first, {
    ...{ pod: 'web-1', container: 'app', cpuRequestMillis: 250, cpuLimitMillis: 2_000 },
    ...{ memRequestBytes: 268_435_456, memLimitBytes: 536_870_912, cpuUsageMillis: 100 },
    ...{ memWorkingSetBytes: 200_000_000, oomKills: 0, throttledRatio: 0.1 },
  })
  assert.equal(containers[1]!.throttledRatio, null, 'without periods')
  assert.deepEqual([status, coverage.level, reasons, findings, truncated], ['ok', 'full', [], [], false])
})

test('a missing limit is low, a kill for memory a warning; each container gives one of a kind', async () => {
  for (const name of ['api-1', 'api-2']) await pod(name, 'api')
  await take(app, [
    sample({ pod_name: 'api-1', memory: { ...NO_OOM, limit: null } }),
    sample({ pod_name: 'api-2', memory: { ...NO_OOM, limit: null } }),
  ])
  const unlimited = await read('api')
  assert.deepEqual(unlimited.findings, ['compute.missingMemoryLimit/app low'])
  assert.deepEqual([unlimited.status, unlimited.reasons.map(({ code }) => code)], ['ok', ['missing_limits']])
  await take(app, [sample({ pod_name: 'api-2' })])
  const killed = await read('api')
  assert.deepEqual(killed.findings.sort(), ['compute.missingMemoryLimit/app low', 'compute.oomKilled/app medium'])
  assert.equal(killed.status, 'warn')
})

test('dead pods, and samples of an earlier pod of the name, do not count', async () => {
  await pod('old-1', 'old')
  await take(app, [sample({ pod_name: 'old-1', pod_uid: 'uid-of-the-first', container_uid: 'uid-of-the-first/app' })])
  assert.deepEqual(
    (await read('old')).reasons.map(({ code }) => code),
    ['no_compute_data'],
  )
  await take(app, [sample({ pod_name: 'old-1' })])
  assert.equal((await read('old')).containers.length, 1)
  await sql`update pod set is_dead = true where pod_name = 'old-1'`
  const { status, coverage, containers } = await read('old')
  assert.deepEqual([status, coverage.level, containers], ['unknown', 'none', []])
})

test('50 containers are listed', async () => {
  await pod('many-1', 'many')
  const samples = (count: number) =>
    Array.from({ length: count }, (_, n) => sample({ pod_name: 'many-1', container: `c-${100 + n}`, memory: NO_OOM }))
  await take(app, samples(50))
  const whole = await read('many')
  assert.deepEqual([whole.containers.length, whole.truncated, whole.coverage.level], [50, false, 'full'])
  await take(app, samples(51))
  const cut = await read('many')
  assert.deepEqual([cut.containers.length, cut.truncated, cut.coverage.level], [50, true, 'partial'])
})
