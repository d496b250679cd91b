/** The labels that select the pods of a policy: of this workload, and of no other. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { HttpError } from '../../lib/errors.ts'
import type { PodGroup } from '../../lib/policies/facts.ts'
import type { Labels } from '../../lib/policies/policy.ts'
import { make, pods, seen } from './generate-facts.ts'

const OWN = 'shop/Deployment/own'
const own = (labels: Labels, more: Partial<PodGroup> = {}) => pods(OWN, labels, more)
const other = (labels: Labels, more: Partial<PodGroup> = {}) => pods('shop/Deployment/other', labels, more)

async function selected(...groups: PodGroup[]) {
  const { manifest, notes } = await make(OWN, {
    pods: groups,
    connections: [seen(`${OWN} > unresolved 10.9.9.9 53/UDP`)],
  })
  const { podSelector } = manifest.spec as { podSelector: { matchLabels: Labels } }
  return { labels: podSelector.matchLabels, notes }
}

async function selectedByCilium(...groups: PodGroup[]) {
  const { manifest } = await make(OWN, { pods: groups }, { format: 'cilium' })
  return (manifest.spec as { endpointSelector: { matchLabels: Labels } }).endpointSelector.matchLabels
}

const refused = (groups: PodGroup[], says: RegExp) =>
  assert.rejects(selected(...groups), (error: HttpError) => {
    assert.equal(error.status, 409)
    assert.match(error.message, says)
    return true
  })

test('the posted selector, also where it selects others, which a note names', async () => {
  const posted = own({ app: 'x', tier: 'a' }, { selectorLabels: { app: 'x' } })
  assert.deepEqual(await selected(posted, other({ app: 'x' })), {
    labels: { app: 'x' },
    notes: ['the selector of the workload also selects the pods of shop/Deployment/other'],
  })
})

test('a posted selector without its labels that change is not the posted one: it must select the workload alone', async () => {
  const job = own({ app: 'x', 'controller-uid': 'u' }, { selectorLabels: { 'controller-uid': 'u' } })
  await refused([job, other({ app: 'x' })], /no labels select shop\/Deployment\/own alone.*shop\/Deployment\/other/)
  assert.deepEqual((await selected(job, other({ app: 'y' }))).labels, { app: 'x' })
  const versioned = (group: typeof own, version: string, more: Labels = {}) =>
    group({ app: 'x', version, ...more }, { selectorLabels: { app: 'x', version } })
  await refused([versioned(own, 'v1'), versioned(other, 'v2')], /no labels select/)
  const labelled = versioned(own, 'v1', { role: 'first' })
  assert.deepEqual((await selected(labelled, versioned(other, 'v2'))).labels, { role: 'first' })
})

test('without a posted selector the smallest set of labels, in the order of their keys', async () => {
  assert.deepEqual((await selected(own({ a: '1', b: '2' }), other({ a: '1' }))).labels, { b: '2' })
  const two = await selected(own({ a: '1', b: '2', c: '3' }), other({ a: '1', c: '3' }), other({ b: '2', c: '3' }))
  assert.deepEqual(two.labels, { a: '1', b: '2' })
})

test('labels tell a workload from those that have no pods at the moment, too', async () => {
  const idle = other({ app: 'x' }, { isLiving: false })
  assert.deepEqual((await selected(own({ app: 'x', role: 'a' }), idle)).labels, { role: 'a' })
  assert.deepEqual((await selected(own({ app: 'x' }), idle)).labels, { app: 'x' }, 'else those are given up')
  const cronJob = pods('shop/CronJob/nightly', { app: 'x' }, { isLiving: false })
  await refused([own({ app: 'x' }), cronJob], /shop\/CronJob\/nightly/)
})

const CHANGING = [
  ...['pod-template-hash', 'controller-revision-hash', 'statefulset.kubernetes.io/pod-name'],
  ...['apps.kubernetes.io/pod-index', 'batch.kubernetes.io/job-name', 'batch.kubernetes.io/controller-uid'],
  ...['job-name', 'controller-uid', 'pod-template-generation', 'app.kubernetes.io/version', 'helm.sh/chart'],
  ...['version', 'chart', 'service.istio.io/canonical-revision', 'istio.io/rev', 'tags.datadoghq.com/version'],
  ...['serving.knative.dev/revision', 'serving.knative.dev/revisionUID', 'serving.knative.dev/configurationGeneration'],
]
for (const key of CHANGING)
  test(`never by ${key}`, async () => {
    await refused([own({ [key]: 'x' })], /no labels of shop\/Deployment\/own are known that do not change/)
  })

const IGNORED_BY_CILIUM = [
  ...['kubernetes.io/cluster-service', 'k8s.io/x', 'io.kubernetes.x', 'beta.kubernetes.io/os', 'annotation.x'],
  ...['topology.kubernetes.io/zone', 'etcd_node'],
]
for (const key of IGNORED_BY_CILIUM)
  test(`for Cilium never by ${key}, which it ignores`, async () => {
    const labels = { [key]: 'x', 'zone-of': 'x' }
    assert.deepEqual((await selected(own(labels), other({ 'zone-of': 'y' }))).labels, { [key]: 'x' })
    assert.deepEqual(await selectedByCilium(own(labels), other({ 'zone-of': 'y' })), { 'zone-of': 'x' })
    const posted = own(labels, { selectorLabels: { [key]: 'x' } })
    assert.deepEqual(await selectedByCilium(posted, other({ 'zone-of': 'y' })), { 'zone-of': 'x' })
  })

test('for Cilium by labels that it knows, although they look like those', async () => {
  for (const key of ['app.kubernetes.io/name', 'k8s-app', 'x.kubernetes.io/y', 'my-annotation'])
    assert.deepEqual(await selectedByCilium(own({ [key]: 'x' })), { [key]: 'x' })
})

test('labels that Kubernetes refuses are not used, and a note says so', async () => {
  for (const labels of [{ 'a b': 'x' }, { a: 'x y' }, { '-a': 'x' }, { a: 'x'.repeat(64) }, { 'A.com/é': 'x' }]) {
    const { labels: used, notes } = await selected(own({ ...labels, app: 'x' } as Labels))
    assert.deepEqual(used, { app: 'x' })
    assert.match(notes.join('\n'), /^labels of the workload that Kubernetes refuses are not used: /m)
  }
})

test('many labels that others share cost no search of their sets', async () => {
  // Of 2 000 labels there are 1.3 billion sets of three.
  const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`label-${i}`, 'x']))
  await refused([own(many), other(many)], /no labels select/)
  // Four labels are needed, more than are searched: all are taken.
  const lacking = (n: number) => Object.fromEntries(Object.entries(many).filter((_, i) => i % 4 !== n))
  const four = [0, 1, 2, 3].map((n) => pods(`shop/Deployment/lacks-${n}`, { ...lacking(n) }))
  assert.equal(Object.keys((await selected(own(many), ...four)).labels).length, 2_000)
})
