/** Where metrics show names of namespaces and workloads. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { createAdmin } from '../lib/app/admin.ts'
import { loadConfig } from '../lib/config/index.ts'
import { MAX_SERIES } from '../lib/seccomp/denials/series.ts'
import { startApp, TOKENS } from './support/app.ts'

const NAME = 'svc_seccomp_denials_total'
const WEB = `${NAME}{workload_namespace="shop",workload_kind="Deployment",workload="web"} 3`
const DB = `${NAME}{workload_namespace="shop",workload_kind="StatefulSet",workload="db"} 4`

/** The lines of the counter on the port of the API and on the admin port. */
async function shown(labels?: string, env: NodeJS.ProcessEnv = {}) {
  const app = await startApp({ ...env, ...(labels === undefined ? {} : { METRICS_WORKLOAD_LABELS: labels }) })
  const workload = { workload_namespace: 'shop', action: 'SCMP_ACT_LOG' }
  app.deps.denials.series.add({ ...workload, workload_kind: 'Deployment', workload_name: 'web', denials: 3 })
  app.deps.denials.series.add({ ...workload, workload_kind: 'StatefulSet', workload_name: 'db', denials: 4 })
  const linesOf = (text: string) => text.split('\n').filter((line) => /^\w+_seccomp_denials_total/.test(line))
  const api = (await app.get('/metrics')).text
  const admin = await (await createAdmin(app.deps).request('/metrics')).text()
  for (const text of [api, admin]) assert.ok(text.includes(`_seccomp_denials_total counter\n`))
  return { api: linesOf(api), admin: linesOf(admin) }
}

test('by default the metrics of both ports show workloads', async () => {
  for (const labels of [undefined, 'all', ' ALL '])
    assert.deepEqual(await shown(labels), { api: [WEB, DB], admin: [WEB, DB] })
})

test('METRICS_WORKLOAD_LABELS=admin shows workloads only on the admin port, and their sum on the API port', async () => {
  assert.deepEqual(await shown('admin'), { api: [`${NAME} 7`], admin: [WEB, DB] })
})

test('METRICS_WORKLOAD_LABELS=off shows the sum on both ports', async () => {
  assert.deepEqual(await shown('off'), { api: [`${NAME} 7`], admin: [`${NAME} 7`] })
  const name = 'kguardian_seccomp_denials_total'
  assert.deepEqual((await shown('off', { WIRE_NAMES: 'kguardian' })).api, [`${name} 7`])
})

test('the sum includes denials beyond the maximum of series, and is 0 before the first denial', async () => {
  const app = await startApp({ METRICS_WORKLOAD_LABELS: 'off' })
  const sum = async () => new RegExp(`^${NAME} (\\d+)$`, 'm').exec((await app.get('/metrics')).text)?.[1]
  assert.equal(await sum(), '0')
  const add = (i: number) =>
    app.deps.denials.series.add({
      workload_namespace: 'n',
      workload_kind: 'Deployment',
      workload_name: `w${i}`,
      action: 'SCMP_ACT_LOG',
      denials: 2,
    })
  for (let i = 0; i < MAX_SERIES + 5; i++) assert.equal(add(i), i < MAX_SERIES)
  assert.equal(await sum(), String(2 * (MAX_SERIES + 5)))
})

test('the default with tokens set gives a warning, and an unknown word is refused', () => {
  const warned = (env: NodeJS.ProcessEnv) =>
    loadConfig(env).warnings.filter((one) => one.startsWith('METRICS_WORKLOAD_LABELS: '))
  assert.equal(warned(TOKENS).length, 1)
  assert.equal(warned({ ...TOKENS, METRICS_WORKLOAD_LABELS: 'all' }).length, 1)
  for (const labels of ['admin', 'off']) assert.deepEqual(warned({ ...TOKENS, METRICS_WORKLOAD_LABELS: labels }), [])
  assert.deepEqual(warned({}), [])
  assert.throws(
    () => loadConfig({ METRICS_WORKLOAD_LABELS: 'some' }),
    /METRICS_WORKLOAD_LABELS: expected all, admin, off/,
  )
})
