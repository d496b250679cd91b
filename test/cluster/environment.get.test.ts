import assert from 'node:assert/strict'
import test, { beforeEach } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)
const token = TOKENS.BROKER_TOKEN_READ

beforeEach(async () => {
  await app.sql`truncate node_facts`
})

const UNKNOWN = { cni: 'unknown', ip_family: 'unknown', provider: 'unknown', distro: 'unknown', node_os: 'unknown' }

let made = 0
async function say(...all: Record<string, string | undefined>[]): Promise<void> {
  for (const fields of all) {
    const { status, text } = await app.post('/node/facts', { node_name: `node-${++made}`, ...UNKNOWN, ...fields })
    assert.equal(status, 200, text)
  }
}
const environment = async () => (await app.get('/cluster/environment')).json

test('GET /cluster/environment 200: all values are unknown before any node has reported', async () => {
  const { status, json } = await app.get('/cluster/environment')
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(json), [
    'cni',
    'ip_family',
    'provider',
    'distro',
    'node_os',
    'policy_enforcement',
    'nodes',
  ])
  assert.deepEqual(json, { ...UNKNOWN, policy_enforcement: 'unknown', nodes: 0 })
})

test('GET /cluster/environment 200: each field has its most frequent value', async () => {
  const one = {
    cni: 'cilium',
    provider: 'aws',
    distro: 'eks',
    node_os: 'bottlerocket',
    ip_family: 'ipv4',
    policy_enforcement: 'enforced',
  }
  await say(one, one, { ...one, cni: 'calico', provider: 'gcp', node_os: 'ubuntu' })
  assert.deepEqual(await environment(), { ...one, nodes: 3 })
})

test('GET /cluster/environment 200: when values are equally frequent, the alphabetically last one is chosen', async () => {
  await say({ cni: 'cilium', distro: 'k3s' }, { cni: 'weave', distro: 'rke2' }, { cni: 'calico', distro: 'eks' })
  const { cni, distro } = await environment()
  assert.deepEqual([cni, distro], ['weave', 'rke2'])
})

test('GET /cluster/environment 200: `unknown` and values that the broker does not know count as one value', async () => {
  await say({ cni: 'cilium' }, { cni: 'cilium' }, { cni: 'homegrown' }, { cni: 'Calico' }, { cni: 'unknown' })
  assert.equal((await environment()).cni, 'unknown')
  await say({ cni: 'cilium' }, { cni: 'cilium' })
  assert.equal((await environment()).cni, 'cilium')
})

for (const [families, family] of [
  [['ipv4'], 'ipv4'],
  [['ipv6', 'ipv6'], 'ipv6'],
  [['ipv4', 'ipv6'], 'dual'],
  [['ipv4', 'ipv4', 'dual'], 'dual'],
  [['ipv4', 'unknown', 'unknown'], 'unknown'],
  [['ipv4', 'ipv4', 'unknown'], 'ipv4'],
  [['ipv5'], 'unknown'],
] as const)
  test(`GET /cluster/environment 200: nodes of ${families.join(', ')} are ${family}`, async () => {
    await say(...families.map((ip_family) => ({ ip_family })))
    assert.equal((await environment()).ip_family, family)
  })

for (const [said, expected] of [
  [['enforced', 'enforced'], 'enforced'],
  [['unenforced'], 'unenforced'],
  [['enforced', 'unenforced'], 'mixed'],
  [['enforced', 'unknown'], 'unknown'],
  [['enforced', 'unenforced', 'unknown'], 'unknown'],
  [['enforced', undefined], 'unknown'],
] as const)
  test(`GET /cluster/environment 200: policies ${said.join(', ')} are ${expected}`, async () => {
    await say(...said.map((policy_enforcement) => ({ policy_enforcement })))
    assert.equal((await environment()).policy_enforcement, expected)
  })

test('GET /cluster/environment 401: without a token', async () =>
  assertUnauthorized(await guarded.get('/cluster/environment')))

test('GET /cluster/environment 200: with a token that reads', async () =>
  assert.equal((await guarded.get('/cluster/environment', { token })).status, 200))

test('GET /cluster/environment 503: a statement that is cancelled', async () => {
  await whileRefused(guarded.sql, 'node_facts', async () =>
    assertDatabaseBusy(await guarded.get('/cluster/environment', { token })),
  )
})
