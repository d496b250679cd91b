/** Every value has an effect: changing it changes the rendered text. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chartValues, readSchema, schemaAt } from '../../scripts/chart-values.ts'
import { render, skip, type Values } from '../support/helm.ts'

/** Everything on, so that every value counts: once with an external database, once with the trial database. */
const everything: Values = {
  'broker.auth.mode': 'shared',
  'broker.auth.existingSecret': 'broker-tokens',
  'broker.autoscaling.enabled': true,
  'evaluator.enabled': true,
  'evaluator.url': 'http://evaluator',
  'frontend.enabled': true,
  'frontend.ingress.enabled': true,
  'frontend.ingress.hosts': ['ui.example.com'],
  'frontend.httpRoute.enabled': true,
  'frontend.httpRoute.parentRefs': [{ name: 'public' }],
  'frontend.httpRoute.hostnames': ['ui.example.com'],
  'backup.enabled': true,
  'backup.existingClaim': 'dumps',
  'frontend.brokerAuth.allowSharedToken': true,
  'controller.enabled': true,
  'controller.image.repository': 'controller',
  'controller.image.tag': 'v1',
  'controller.runtimeInventory.mode': 'exec',
  'syscalls.captureLevel': 'custom',
  'syscalls.customList': ['read'],
  'jobs.mode': 'external',
  'serviceMonitor.enabled': true,
  'prometheusRule.enabled': true,
  'dashboard.enabled': true,
  'networkPolicy.enabled': true,
}
const bases: Values[] = [
  {
    ...everything,
    'postgres.enabled': false,
    'database.host': 'db',
    'database.existingSecret': 'broker-database',
    'database.sslMode': 'verify-full',
    'database.caSecret': 'ca',
  },
  {
    ...everything,
    'postgres.existingSecret': 'password',
    'broker.autoscaling.enabled': false,
    'broker.auth.mode': 'scoped',
    'supplychain.enabled': true,
    'supplychain.image.repository': 'supplychain',
    'supplychain.image.tag': 'v1',
  },
  { ...everything, 'postgres.enabled': false, 'database.existingSecret': 'broker-database' },
]

/** Other values, with further changes, where the type does not suggest one. */
const others: Record<string, Values> = {
  'frontend.enabled': {
    'frontend.enabled': false,
    'frontend.ingress.enabled': false,
    'frontend.httpRoute.enabled': false,
  },
  'image.repository': { 'image.repository': 'registry.example.com/other' },
  'broker.autoscaling.targetCPU': { 'broker.autoscaling.targetCPU': '800m' },
  'frontend.ingress.hosts': { 'frontend.ingress.hosts': ['other.example.com'] },
  'frontend.httpRoute.hostnames': { 'frontend.httpRoute.hostnames': ['other.example.com'] },
  'image.digest': { 'image.digest': `sha256:${'0'.repeat(64)}` },
  'image.pullSecrets': { 'image.pullSecrets': [{ name: 'registry' }] },
  'broker.auth.mode': { 'broker.auth.mode': 'none', 'broker.auth.existingSecret': '' },
  'database.sslMode': { 'database.sslMode': 'verify-ca' },
  'controller.excludedNamespaces': { 'controller.excludedNamespaces': ['default'] },
  'networkPolicy.supplychainPorts': { 'networkPolicy.supplychainPorts': [5000] },
  'jobs.schedules': { 'jobs.schedules': { 'stale-sweep': '*/2 * * * *' } },
  'postgres.storage.size': { 'postgres.storage.size': '20Gi' },
  'syscalls.captureLevel': { 'syscalls.captureLevel': 'low', 'syscalls.customList': [] },
  'frontend.allowedHosts': { 'frontend.allowedHosts': ['console.example.com'] },
  'syscalls.customList': { 'syscalls.customList': ['write'] },
  'serviceMonitor.enabled': { 'serviceMonitor.enabled': false, 'prometheusRule.enabled': false },
  'serviceMonitor.interval': { 'serviceMonitor.interval': '1m' },
  'broker.supplychain.tier.epss': { 'broker.supplychain.tier.epss': 0.5 },
  'compute.thresholds.throttledRatio': { 'compute.thresholds.throttledRatio': 0.5 },
  'compute.thresholds.throttledRatioMax': { 'compute.thresholds.throttledRatioMax': 0.5 },
  'compute.thresholds.blameShare': { 'compute.thresholds.blameShare': 0.5 },
}
/** Changing one of these makes the other values invalid. */
const REFUSED = ['frontend.brokerAuth.allowSharedToken', 'postgres.enabled']

/** Another value of the same type. */
function another(path: string, value: unknown): unknown {
  const schema = schemaAt(path, readSchema())
  if (schema.enum) return schema.enum.find((one) => one !== value)
  if (typeof value === 'boolean') return !value
  if (typeof value === 'number') return value + 1
  if (typeof value === 'string') return value.startsWith('/') ? `${value}/x` : `${value}x`
  if (Array.isArray(value))
    return path.endsWith('.env') ? [{ name: 'EXTRA', value: 'x' }] : [{ key: 'x', topologyKey: 'x' }]
  return path.endsWith('.resources') ? { limits: { memory: '700Mi' } } : { x: 'y' }
}

const before = skip ? [] : bases.map((base) => ({ base, text: render(base) }))

test('the unchanged values render', { skip }, () => {
  for (const { text } of before) assert.match(text!, /kind: Deployment/)
})

for (const { path, fallback } of skip ? [] : chartValues()) {
  test(`${path} changes what is rendered`, { skip }, () => {
    const hasEffect = before.some(({ base, text }) => {
      const changed = render({ ...base, ...(others[path] ?? { [path]: another(path, base[path] ?? fallback) }) })
      return REFUSED.includes(path) ? changed === null : changed !== null && changed !== text
    })
    assert.ok(hasEffect)
  })
}
