// How a report is linked to the digests that workloads run: image_id, platform_manifest, workload_tag, report_digest.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  at,
  authEnv,
  component,
  container,
  cve,
  digest,
  finding,
  next,
  ok,
  pod,
  sbom,
  session,
  vulns,
} from '../lib/supply-chain.mjs'

let b, s
before(async () => {
  b = await startBroker({ env: authEnv })
  s = session(b)
})
after(() => b?.stop())

/** [source, report digest, join] of every report that answers for a digest. */
const joined = async (d) => ok(await s.getVulns(d)).json.reports.map((r) => [r.source, r.reportDigest, r.join])
const sbomJoined = async (d) => ok(await s.getSbom(d)).json.reports.map((r) => [r.source, r.reportDigest, r.join])
/** A tag-only setting: one workload runs `image` from `repository:tag`, one report was seen at `seen`. */
function setting(over = {}) {
  const n = next()
  const at_ = {
    ns: `tag-${n}`,
    kind: 'StatefulSet',
    workload: 'db',
    name: 'app',
    repository: `registry.test/tag/app${n}`,
    tag: 'v1',
    ...over,
  }
  return {
    image: digest(`tag-image-${n}`),
    report: digest(`tag-report-${n}`),
    ...at_,
    pod: () =>
      pod({
        ns: at_.ns,
        kind: at_.kind,
        workload: at_.workload,
        containers: [
          container(digest(`tag-image-${n}`), {
            name: at_.name,
            image: `${at_.repository}:${at_.tag}`,
            repository: at_.repository,
            tag: at_.tag,
          }),
        ],
      }),
    payload: (seen = {}, image = {}, rest = {}) =>
      vulns(
        {
          digest: digest(`tag-report-${n}`),
          registry: 'registry.test',
          repository: `tag/app${n}`,
          tag: at_.tag,
          ...image,
        },
        [finding()],
        {
          observed_in: [{ namespace: at_.ns, kind: at_.kind, name: at_.workload, container: at_.name, ...seen }],
          ...rest,
        },
      ),
  }
}

// ---------------------------------------------------------------- exact

check('joins: image_id when the running digest equals the digest of the payload', async () => {
  const d = digest('j-image-id')
  await s.run(pod({ ns: 'j-image-id', containers: [container(d)] }))
  ok(await s.postVulns(vulns(d, [finding()])))
  assert.deepEqual(await joined(d), [['operator-scanner', d, 'image_id']])
})

check('joins: platform_manifest when the running digest is one of platform_manifests', async () => {
  const [index, amd, arm, other] = ['index', 'amd', 'arm', 'other'].map((n) => digest(`j-platform-${n}`))
  await s.run(pod({ ns: 'j-platform', containers: [container(amd), container(other, { name: 'side' })] }))
  const f = finding()
  ok(
    await s.postVulns(
      vulns(
        { digest: index, digest_kind: 'index', platform_manifests: { 'linux/amd64': amd, 'linux/arm64/v8': arm } },
        [f],
      ),
    ),
  )
  const got = ok(await s.getVulns(amd)).json
  assert.deepEqual(
    got.reports.map((r) => [r.reportDigest, r.join, r.digestKind]),
    [[index, 'platform_manifest', 'index']],
  )
  assert.deepEqual(
    got.items.map((i) => [i.id, i.reportDigests]),
    [[f.id, [index]]],
  )
  assert.deepEqual(await joined(other), [])
  assert.deepEqual(await joined(arm), [], 'a manifest nobody runs and nobody reported is not linked')
})

check('joins: platform_manifest when an SBOM of one manifest names the running index in index_digest', async () => {
  const [index, manifest] = [digest('j-index'), digest('j-manifest')]
  await s.run(pod({ ns: 'j-index', containers: [container(index)] }))
  ok(await s.postSbom(sbom({ digest: manifest, index_digest: index }, [component('a')], { source: 'registry' })))
  assert.deepEqual(await sbomJoined(index), [['registry', manifest, 'platform_manifest']])
  assert.deepEqual(
    ok(await s.getSbom(index)).json.items.map((c) => c.name),
    ['a'],
  )
})

check('joins: report_digest when the reported digest itself is asked for and nothing runs it', async () => {
  const d = digest('j-report')
  ok(await s.postVulns(vulns(d, [finding()])))
  ok(await s.postSbom(sbom(d, [component('a')])))
  assert.deepEqual(await joined(d), [['operator-scanner', d, 'report_digest']])
  assert.deepEqual(await sbomJoined(d), [['operator-scanner', d, 'report_digest']])
})

check(
  'joins: a payload of the running digest comes before one that matches by platform manifest, however new',
  async () => {
    const [running, index] = [digest('j-best'), digest('j-best-index')]
    await s.run(pod({ ns: 'j-best', containers: [container(running)] }))
    const [own, wide] = [finding(), finding()]
    ok(await s.postVulns(vulns(running, [own], { scanned_at: at(1) })))
    ok(
      await s.postVulns(
        vulns({ digest: index, platform_manifests: { 'linux/amd64': running } }, [wide], { scanned_at: at(100) }),
      ),
    )
    const got = ok(await s.getVulns(running)).json
    assert.deepEqual(
      got.reports.map((r) => [r.reportDigest, r.join]),
      [[running, 'image_id']],
      'one report per source',
    )
    assert.deepEqual(
      got.items.map((i) => i.id),
      [own.id],
    )
  },
)

check('joins: of two equally good payloads of one source the newest scan answers', async () => {
  const [running, first, second] = ['run', 'one', 'two'].map((n) => digest(`j-tie-${n}`))
  await s.run(pod({ ns: 'j-tie', containers: [container(running)] }))
  const post = (d, when) =>
    s.postVulns(vulns({ digest: d, platform_manifests: { 'linux/amd64': running } }, [finding()], { scanned_at: when }))
  ok(await post(first, at(20)))
  ok(await post(second, at(10)))
  assert.deepEqual(await joined(running), [['operator-scanner', first, 'platform_manifest']])
})

check('joins: reports of two sources under different digests are merged for the digest that runs', async () => {
  const [running, index] = [digest('j-merge'), digest('j-merge-index')]
  await s.run(pod({ ns: 'j-merge', containers: [container(running)] }))
  const id = cve()
  const f = (over) => finding({ id, package: { name: 'p', version: '1' }, ...over })
  ok(await s.postVulns(vulns(running, [f({ severity: 'LOW' })])))
  ok(
    await s.postVulns(
      vulns({ digest: index, platform_manifests: { 'linux/amd64': running } }, [f({ severity: 'HIGH' })], {
        source: 'db-matcher',
      }),
    ),
  )
  const got = ok(await s.getVulns(running)).json
  assert.deepEqual(
    got.reports.map((r) => [r.source, r.join]),
    [
      ['db-matcher', 'platform_manifest'],
      ['operator-scanner', 'image_id'],
    ],
  )
  assert.equal(got.items.length, 1)
  assert.deepEqual([got.items[0].severity, got.items[0].sources], ['HIGH', ['db-matcher', 'operator-scanner']])
  assert.deepEqual(got.items[0].reportDigests, [running, index].sort())
})

// ---------------------------------------------------------------- by tag

check('joins: workload_tag when namespace, workload, container and repository:tag agree', async () => {
  const t = setting()
  await s.run(t.pod())
  ok(await s.postVulns(t.payload()))
  assert.deepEqual(await joined(t.image), [['operator-scanner', t.report, 'workload_tag']])
})

check('joins: workload_tag needs each of namespace, kind, name, container, repository and tag', async () => {
  const wrong = [
    [{ namespace: 'elsewhere' }],
    [{ kind: 'DaemonSet' }],
    [{ name: 'db2' }],
    [{ container: 'sidecar' }],
    [{}, { repository: 'tag/other' }],
    [{}, { registry: 'mirror.test' }],
    [{}, { tag: 'v2' }],
    [{}, { tag: undefined }],
    [{}, { repository: undefined }],
  ]
  for (const [seen, image] of wrong) {
    const t = setting()
    await s.run(t.pod())
    ok(await s.postVulns(t.payload(seen, image)))
    assert.deepEqual(await joined(t.image), [], JSON.stringify([seen, image]))
  }
})

check('joins: a ReplicaSet of the scanner matches the owning Deployment, a Job the owning CronJob', async () => {
  for (const [kind, workload, seenKind, seenName, linked] of [
    ['Deployment', 'web', 'ReplicaSet', 'web-6d4cf56db9', true],
    ['CronJob', 'backup', 'Job', 'backup-28912345', true],
    ['Deployment', 'web', 'ReplicaSet', 'webx-6d4cf56db9', false],
    ['Deployment', 'web', 'ReplicaSet', 'web', false],
    ['Deployment', 'web', 'Job', 'web-28912345', false],
    ['CronJob', 'backup', 'ReplicaSet', 'backup-6d4cf56db9', false],
    ['StatefulSet', 'db', 'ReplicaSet', 'db-6d4cf56db9', false],
  ]) {
    const t = setting({ kind, workload })
    await s.run(t.pod())
    ok(await s.postVulns(t.payload({ kind: seenKind, name: seenName })))
    assert.deepEqual(
      await joined(t.image),
      linked ? [['operator-scanner', t.report, 'workload_tag']] : [],
      `${seenKind} ${seenName} and ${kind} ${workload}`,
    )
  }
})

check('joins: repository names are normalised before they are compared by tag', async () => {
  const n = next()
  const cases = [
    ['docker.io', 'library/nginx', 'docker.io/library/nginx'],
    ['index.docker.io', 'library/nginx', 'docker.io/library/nginx'],
    ['registry-1.docker.io', 'nginx', 'docker.io/library/nginx'],
    ['', 'team/app', 'docker.io/team/app'],
    [undefined, 'nginx', 'docker.io/library/nginx'],
    ['Registry.TEST', '/team/app/', 'registry.test/team/app'],
    [undefined, 'registry.test:5000/team/app', 'registry.test:5000/team/app'],
  ]
  for (const [i, [registry, repository, stored]] of cases.entries()) {
    const [image, report] = [digest(`j-norm-image-${i}`), digest(`j-norm-report-${i}`)]
    const ns = `j-norm-${n}-${i}`
    await s.run(
      pod({
        ns,
        kind: 'StatefulSet',
        workload: 'db',
        containers: [container(image, { image: `${stored}:v1`, repository: stored, tag: 'v1' })],
      }),
    )
    ok(
      await s.postVulns(
        vulns({ digest: report, registry, repository, tag: 'v1' }, [], {
          observed_in: [{ namespace: ns, kind: 'StatefulSet', name: 'db', container: 'app' }],
        }),
      ),
    )
    assert.deepEqual(await joined(image), [['operator-scanner', report, 'workload_tag']], `${registry} ${repository}`)
  }
})

check('joins: workload_tag is not applied by a payload that a digest rule matched', async () => {
  const t = setting()
  await s.run(t.pod(), pod({ ns: 'j-exact-elsewhere', containers: [container(t.report)] }))
  ok(await s.postVulns(t.payload()))
  assert.deepEqual(await joined(t.report), [['operator-scanner', t.report, 'image_id']])
  assert.deepEqual(await joined(t.image), [])
})

check('joins: workload_tag is not applied to an image with an exact link from any source', async () => {
  const t = setting()
  await s.run(t.pod())
  ok(await s.postVulns(vulns(t.image, [], { source: 'db-matcher' })))
  ok(await s.postVulns(t.payload()))
  assert.deepEqual(await joined(t.image), [['db-matcher', t.image, 'image_id']])
})

check('joins: an exact link retires the tag guesses of every source on the same image', async () => {
  const t = setting()
  await s.run(t.pod())
  ok(await s.postVulns(t.payload()))
  ok(await s.postVulns({ ...t.payload(), source: 'registry' }))
  assert.deepEqual(await joined(t.image), [
    ['operator-scanner', t.report, 'workload_tag'],
    ['registry', t.report, 'workload_tag'],
  ])
  ok(await s.postVulns(vulns(t.image, [], { source: 'db-matcher' })))
  assert.deepEqual(await joined(t.image), [['db-matcher', t.image, 'image_id']])
  ok(await s.postVulns(t.payload({}, {}, { scanned_at: at(50) })))
  assert.deepEqual(await joined(t.image), [['db-matcher', t.image, 'image_id']], 'and they do not come back')
})

// ---------------------------------------------------------------- when links are made

check('joins: posting the same payload again links pods that started after the scan', async () => {
  const d = digest('j-late')
  const index = digest('j-late-index')
  const p = vulns({ digest: index, platform_manifests: { 'linux/amd64': d } }, [finding()])
  ok(await s.postVulns(p))
  await s.run(pod({ ns: 'j-late', containers: [container(d)] }))
  assert.deepEqual(ok(await s.postVulns(p)).json, { status: 'unchanged' })
  assert.deepEqual(await joined(d), [['operator-scanner', index, 'platform_manifest']])
})

check('joins: posting the same SBOM again links pods that started after the scan', async () => {
  const d = digest('j-late-sbom')
  const index = digest('j-late-sbom-index')
  const p = sbom({ digest: index, platform_manifests: { 'linux/amd64': d } }, [component('a')])
  ok(await s.postSbom(p))
  await s.run(pod({ ns: 'j-late-sbom', containers: [container(d)] }))
  assert.deepEqual(ok(await s.postSbom(p)).json, { status: 'unchanged' })
  assert.deepEqual(await sbomJoined(d), [['operator-scanner', index, 'platform_manifest']])
})

check('joins: links follow the manifests and workloads that the newest header names', async () => {
  const [one, two, index] = ['one', 'two', 'index'].map((n) => digest(`j-move-${n}`))
  await s.run(pod({ ns: 'j-move', containers: [container(one), container(two, { name: 'two' })] }))
  const list = [finding()]
  ok(
    await s.postVulns(
      vulns({ digest: index, platform_manifests: { 'linux/amd64': one } }, list, { scanned_at: at(1) }),
    ),
  )
  assert.deepEqual(await joined(one), [['operator-scanner', index, 'platform_manifest']])
  assert.deepEqual(
    ok(
      await s.postVulns(
        vulns({ digest: index, platform_manifests: { 'linux/amd64': two } }, list, { scanned_at: at(2) }),
      ),
    ).json,
    { status: 'unchanged' },
  )
  assert.deepEqual(await joined(one), [])
  assert.deepEqual(await joined(two), [['operator-scanner', index, 'platform_manifest']])
})

check('joins: an SBOM follows the exact links of a report that was matched from it', async () => {
  // The matcher reports the index; the SBOM it used is that of a sibling manifest under the same index.
  const [running, index, sibling] = ['run', 'index', 'sibling'].map((n) => digest(`j-inherit-${n}`))
  await s.run(pod({ ns: 'j-inherit', containers: [container(running)] }))
  ok(await s.postSbom(sbom({ digest: sibling, index_digest: index }, [component('sibling')], { source: 'registry' })))
  assert.deepEqual(await sbomJoined(running), [])
  ok(
    await s.postVulns(
      vulns({ digest: index, platform_manifests: { 'linux/amd64': running } }, [finding()], {
        source: 'db-matcher',
        sbom_sources: ['registry'],
      }),
    ),
  )
  assert.deepEqual(await joined(running), [['db-matcher', index, 'platform_manifest']])
  assert.deepEqual(await sbomJoined(running), [['registry', sibling, 'platform_manifest']])
})
