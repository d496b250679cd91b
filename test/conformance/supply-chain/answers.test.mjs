// Questions over everything stored: search and components, what is not known, what changed, what ran from outside an
// image, and decisions with VEX.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  authEnv,
  component,
  container,
  cve,
  digest,
  finding,
  naiveFromNow,
  next,
  ok,
  pod,
  refused,
  sbom,
  session,
  tokens,
  vulns,
} from '../lib/supply-chain.mjs'

let b, s
before(async () => {
  b = await startBroker({ env: authEnv })
  s = session(b)
})
after(() => b?.stop())

const LOG4J = 'org.apache.logging.log4j:log4j-core'
const log4j = (version) => ({
  ...{ name: LOG4J, version, type: 'jar' },
  purl: `pkg:maven/org.apache.logging.log4j/log4j-core@${version}`,
})
/** A workload that runs an image with an SBOM and a report; returns its names. */
async function seed(label, { version = '2.14.1', ...over } = {}) {
  const one = { ns: `answers-${next()}`, workload: label, image: digest(`answers-${label}-${next()}`), id: cve() }
  await s.run(pod({ ns: one.ns, workload: label, containers: [container(one.image, over)] }))
  ok(await s.postSbom(sbom(one.image, [component(`lib-${label}`), log4j(version)])))
  ok(await s.postVulns(vulns(one.image, [finding({ id: one.id, package: { name: LOG4J, version, type: 'jar' } })])))
  return one
}
const hits = async (q) => ok(await s.get('/search', { q })).json.hits
const typed = async (q, type) => (await hits(q)).filter((hit) => hit.type === type)

check('answers: one text finds a vulnerability, a package, an image, a workload and an address', async () => {
  const { ns, workload, image, id } = await seed('found')
  assert.deepEqual(
    (await typed(id.toLowerCase(), 'vulnerability')).map((hit) => [hit.id, hit.running]),
    [[id, true]],
  )
  for (const q of ['log4j-core', LOG4J, 'pkg:maven/org.apache.logging.log4j/log4j-core', 'LOG4J-CO'])
    assert.ok(
      (await typed(q, 'package')).some((hit) => hit.running),
      q,
    )
  assert.deepEqual(
    (await typed(image.slice(7, 23), 'image')).map((hit) => hit.digest),
    [image],
  )
  const [found] = await typed(`${ns}/${workload}`, 'workload')
  assert.deepEqual([found.namespace, found.kind, found.name], [ns, 'Deployment', workload])
  assert.equal((await s.reader.get(found.href)).status, 200, 'its href answers')
  for (const q of ['', ' ', 'a\0b', 'x'.repeat(10_000)]) refused(await s.get('/search', { q }), 400, /: q: /)
  assert.deepEqual(await hits('%'), [], 'a pattern is plain text')
})

check('answers: components say which images hold a package, by version, from SBOMs and from reports', async () => {
  const old = await seed('old', { version: '2.17.0' })
  const bare = digest('answers-bare')
  await s.run(pod({ ns: old.ns, workload: 'bare', containers: [container(bare)] }))
  ok(await s.postVulns(vulns(bare, [finding({ package: { name: LOG4J, version: '2.17.0', type: 'jar' } })])))
  const { items } = await s.whole('/components', { name: 'log4j-core', version: '2.17.0', limit: 1 })
  assert.deepEqual(
    items.map(({ imageDigest, evidence, running }) => [imageDigest, evidence, running]).sort(),
    [
      [old.image, 'sbom', true],
      [bare, 'findings', true],
    ].sort(),
  )
  for (const { inUse, inUseState } of items) assert.deepEqual([inUse, inUseState], [null, 'unknown'], 'nobody watches')
  refused(await s.get('/components', { version: '1' }), 400)
})

check(
  'answers: coverage names each running image and container of a namespace once, with what is missing',
  async () => {
    const { ns, image } = await seed('seen')
    const dark = digest(`answers-dark-${next()}`)
    await s.run(pod({ ns, workload: 'dark', containers: [container(dark)] }))
    const all = async (part) => {
      const items = []
      for (let after; ; ) {
        const list = ok(await s.get('/coverage', { namespace: ns, part, include_known: true, limit: 1, after })).json[
          part
        ]
        items.push(...list.items)
        if (list.nextAfter === null) return items
        after = list.nextAfter
      }
    }
    const missing = Object.fromEntries((await all('images')).map((one) => [one.digest, one.missing]))
    assert.deepEqual(Object.keys(missing).sort(), [image, dark].sort())
    assert.ok(missing[dark].includes('no_report') && missing[dark].includes('no_sbom'))
    assert.ok(!missing[image].includes('no_report') && !missing[image].includes('no_sbom'))
    const containers = await all('containers')
    assert.deepEqual(containers.map(({ imageDigest }) => imageDigest).sort(), [image, dark].sort())
    for (const { covered, reason } of containers) assert.deepEqual([covered, reason], [false, 'no_runtime_data'])
  },
)

check('answers: the difference of two images, and what is not known is null with a reason', async () => {
  const [from, to] = [await seed('before', { version: '2.14.1' }), await seed('after', { version: '2.17.1' })]
  const diff = ok(await s.get(`/images/${from.image}/diff/${to.image}`)).json
  const changed = diff.components.changed.items.find(({ name }) => name === LOG4J)
  assert.deepEqual([changed.from, changed.to], ['2.14.1', '2.17.1'])
  assert.deepEqual(
    diff.components.added.items.map(({ name }) => name),
    ['lib-after'],
  )
  assert.deepEqual(
    diff.components.removed.items.map(({ name }) => name),
    ['lib-before'],
  )
  const bare = digest(`answers-unscanned-${next()}`)
  await s.run(pod({ ns: to.ns, workload: 'unscanned', containers: [container(bare)] }))
  const unknown = ok(await s.get(`/images/${bare}/diff/${to.image}`)).json
  assert.equal(unknown.components, null)
  assert.ok(unknown.notKnown.some(({ part, reason }) => part === 'components' && reason === 'no_sbom'))
})

check('answers: changes of a namespace name its workloads, and a young record brings nothing new', async () => {
  const { ns, workload } = await seed('young')
  const { items } = ok(await s.get('/changes', { namespace: ns })).json
  assert.deepEqual(
    items.map(({ kind, name }) => [kind, name]),
    [['Deployment', workload]],
  )
  const diff = ok(await s.get(`/workloads/${ns}/Deployment/${workload}/diff`)).json
  assert.equal(diff.files, null, 'nobody watched it before')
  assert.ok(diff.notKnown.some(({ part }) => part === 'files'))
  refused(await s.get('/changes'), 400)
})

check('answers: files that no image shipped are listed, beside how many containers nobody watches', async () => {
  const { ns, workload, image } = await seed('dropper')
  const ran = {
    ...{
      pod_namespace: ns,
      workload_kind: 'Deployment',
      workload_name: workload,
      pod_name: 'x',
      container_name: 'app',
    },
    ...{ image_digest: image, kind: 'exec', path_complete: true, source: 'ebpf' },
    ...{ first_seen: naiveFromNow(-60), last_seen: naiveFromNow(-1) },
  }
  const posted = [
    { ...ran, path: '/tmp/dropped', origin: 'writableLayer' },
    { ...ran, path: '/usr/bin/shipped', origin: 'image' },
  ]
  assert.equal(ok(await s.agent.post('/runtime/executables', posted)).json.written, 2)
  const { items, watch } = ok(await s.get('/runtime/unshipped', { namespace: ns })).json
  assert.deepEqual(
    items.map(({ path, origin }) => [path, origin]),
    [['/tmp/dropped', 'writableLayer']],
  )
  assert.ok(watch.unwatchedInstances >= 1)
})

check('answers: a decision is shown beside the finding and hides nothing, and VEX goes in and out', async () => {
  const { image, id } = await seed('decided')
  const put = (body, bearer) => s.supply.put(`/vulnerabilities/${id}/decision`, body, bearer && { bearer })
  const scope = { type: 'image', digest: image }
  const decision = { scope, decision: 'accepted', by: 'team', why: 'a risk that we take' }
  for (const bearer of [tokens.read, tokens.ingest]) assert.equal((await put(decision, bearer)).status, 403)
  refused(await put({ ...decision, decision: 'fine' }), 400)
  assert.equal(ok(await put(decision)).json.status, 'stored')
  assert.equal(ok(await put(decision)).json.status, 'unchanged')
  const shown = async () => ok(await s.getVulns(image)).json.items.find((item) => item.id === id)
  const item = await shown()
  assert.deepEqual([item.decision.decision, item.decided, item.severity], ['accepted', true, 'HIGH'])
  const vex = ok(await s.get(`/images/${image}/vex`)).json
  assert.deepEqual(
    vex.statements.map(({ vulnerability }) => vulnerability.name),
    [id],
  )
  assert.equal(ok(await put({ ...decision, decision: null })).json.status, 'withdrawn')
  assert.deepEqual([(await shown()).decision, (await shown()).decided], [null, false])
  const document = {
    ...{ '@context': 'https://openvex.dev/ns/v0.2.0', '@id': `https://vendor.test/${next()}`, author: 'vendor' },
    ...{ timestamp: '2026-01-01T00:00:00Z', version: 1 },
    statements: [
      {
        vulnerability: { name: id },
        products: [{ '@id': `pkg:oci/app@${image}` }],
        ...{ status: 'not_affected', justification: 'component_not_present' },
      },
    ],
  }
  assert.equal(ok(await s.supply.post('/vex', document)).json.accepted, 1)
  assert.equal((await shown()).decision.justification, 'component_not_present')
  const listed = ok(await s.get(`/vulnerabilities/${id}/decisions`)).json
  assert.equal(listed.items.length, 2, 'the history keeps the one that was withdrawn')
})
