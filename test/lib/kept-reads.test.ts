/**
 * Rows older than their retention are in no answer, even before the job has deleted them; a retention of 0 days keeps
 * everything.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { history, keep, minute, pairs } from '../compute/minutes.ts'
import { culprit } from '../compute/posts.ts'
import { checks } from '../runtime/capabilities.ts'
import { heartbeat } from '../runtime/heartbeats.ts'
import { newImage, newNamespace as newRuntimeNamespace, storeExecutables } from '../runtime/rows.ts'
import { denial, take } from '../seccomp/drains.ts'
import { startApp } from '../support/app.ts'
import { signature, storeAttestation } from '../support/attestations.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { profilePath, storeDenials, storeWatchers, storeWorkloads } from '../support/seccomp.ts'

const DAYS = ['AUDIT_VERDICTS', 'SECCOMP_DENIALS', 'RUNTIME_INVENTORY', 'IMAGE_ATTESTATION', 'COMPUTE_HISTORY']
const settings = (days: string) => Object.fromEntries(DAYS.map((name) => [`${name}_RETENTION_DAYS`, days]))
const aDay = await startApp({ ...settings('1'), SECCOMP_PROFILES_CACHE_TTL_SECS: '0' })
const forever = await startApp({ ...settings('0'), SECCOMP_PROFILES_CACHE_TTL_SECS: '0' })
type App = typeof aDay

/** Ages in hours: one older than a day, one younger. */
const [OLD, YOUNG] = [40, 23]
const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString().slice(0, -1)
const read = async (app: App, path: string) => {
  const answer = await app.get(path)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const EACH: [what: string, app: App, isKept: boolean][] = [
  ['one day', aDay, false],
  ['ever', forever, true],
]

for (const [what, app, isKept] of EACH) {
  const kept = <T>(old: T, young: T) => (isKept ? [young, old] : [young])

  test(`verdicts, kept for ${what}`, async () => {
    const verdict = (policy_name: string, hours: number) => app.sql`
      insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, reason, observed_at, verdict)
      values ('u', 'shop', ${policy_name}, 'Egress', 1, 'TCP', '', ${ago(hours)}::text::timestamp, 'Allow')`
    await verdict('old', OLD)
    await verdict('young', YOUNG)
    const names = async (query = '') =>
      (await read(app, `/audit/verdicts?${query}`)).map((row: { policy_name: string }) => row.policy_name)
    assert.deepEqual(await names(), kept('old', 'young'))
    assert.deepEqual(await names('policy=old&namespace=shop'), kept('old', 'old').slice(1))
  })

  test(`denials, kept for ${what}`, async () => {
    const namespace = `denied-${isKept}`
    const at = (hours: number) => ({ firstSeen: `${ago(100)}Z`, lastSeen: `${ago(hours)}Z`, podNamespace: namespace })
    await app.post('/pod/spec', {
      ...{
        pod_name: `pod-${isKept}`,
        pod_namespace: namespace,
        pod_ip: '10.0.0.1',
        node_name: 'n',
        time_stamp: ago(0),
        is_dead: false,
      },
      ...{ workload_kind: 'Deployment', workload_name: 'web' },
    })
    const one = { podName: `pod-${isKept}`, podUid: 'u' }
    await take(app, [
      denial({ ...one, ...at(OLD), syscall: 'old' }),
      denial({ ...one, ...at(YOUNG), syscall: 'young' }),
    ])
    for (const filter of [
      '',
      `namespace=${namespace}`,
      `namespace=${namespace}&kind=Deployment`,
      'workload=web',
      `namespace=${namespace}&kind=Deployment&workload=web`,
      'since=2026-01-01T00:00:00Z',
    ]) {
      const rows = await read(app, `/seccomp/denials?${filter}`)
      assert.deepEqual(
        rows.map(({ syscall }: { syscall: string }) => syscall),
        kept('old', 'young'),
        filter,
      )
    }
    assert.deepEqual(await read(app, `/seccomp/denials?since=${ago(1)}Z`), [])
  })

  test(`denials in profiles, kept for ${what}`, async () => {
    const [web, blind] = ['rolled', 'blind'].map((namespace) => ({ namespace, kind: 'Deployment', name: 'web' }))
    await storeWorkloads(
      app.sql,
      [web!, blind!].map((key) => ({ ...key, names: ['read'] })),
    )
    await storeWatchers(app.sql, [{ name: 'on' }])
    const one = { pod: 'p', namespace: 'rolled', kind: 'Deployment', workload: 'web' }
    const unknown = { pod: 'u', namespace: 'blind', syscall: 'ptrace', kind: null, workload: null }
    await storeDenials(app.sql, [
      { ...one, syscall: 'old', count: 5, lastSeen: ago(OLD) },
      { ...one, syscall: 'young', count: 2, lastSeen: ago(YOUNG) },
      { ...unknown, lastSeen: ago(OLD) },
    ])
    const denials = async (key: typeof web) => {
      const { denials } = await read(app, profilePath(key!))
      const list: { namespace: string; denials: unknown }[] = await read(app, '/seccomp/profiles')
      assert.deepEqual(list.find(({ namespace }) => namespace === key!.namespace)!.denials, denials)
      return denials
    }
    const { total, syscalls } = await denials(web)
    assert.deepEqual([total, syscalls], isKept ? [7, ['old', 'young']] : [2, ['young']])
    // A denial of an unknown workload makes the counts of its namespace unknown for as long as it is kept.
    assert.deepEqual((await denials(blind)) === null, isKept)
    await storeDenials(app.sql, [{ ...unknown, pod: 'v', lastSeen: ago(YOUNG) }])
    assert.equal(await denials(blind), null)
  })

  test(`executables, kept for ${what}`, async () => {
    const [namespace, image] = [newRuntimeNamespace(), newImage()]
    await storeExecutables(
      app.sql,
      (
        [
          ['/bin/young', YOUNG],
          ['/bin/old', OLD],
        ] as const
      ).map(([path, hours]) => ({ namespace, image, path, first: ago(100), last: ago(hours) })),
    )
    const { heartbeat_at: _, ...beat } = heartbeat({ pod_namespace: namespace, image_digest: image })
    await app.post('/runtime/coverage', [{ ...beat, heartbeat_at: ago(0) }])
    const paths = (entries: { path: string }[]) =>
      entries
        .map(({ path }) => path)
        .sort()
        .reverse()
    for (const query of ['', 'kind=exec&origin=image', 'container=app', 'limit=1'].map(
      (text) => new URLSearchParams(text),
    )) {
      const { containers, truncated } = await read(app, `/workloads/${namespace}/Deployment/web/runtime?${query}`)
      const expected = kept('/bin/old', '/bin/young')
      if (query.has('limit')) assert.deepEqual([containers[0].entries.length, truncated], [1, isKept])
      else assert.deepEqual(paths(containers[0].entries), expected, String(query))
    }
    assert.deepEqual(paths((await read(app, `/images/${image}/runtime`)).entries), kept('/bin/old', '/bin/young'))
    const page = await read(app, `/images/${image}/runtime?after=exec:/bin/o`)
    assert.deepEqual(paths(page.entries), kept('/bin/old', '/bin/young'))
  })

  test(`results of image checks, kept for ${what}`, async () => {
    const namespace = newNamespace()
    const [old, young] = [newDigest(), newDigest()]
    const repository = `registry.test/${namespace}/app`
    const containers = [old, young].map((digest, n) =>
      container(`c${n}`, digest, { repository, image: `${repository}:${n}` }),
    )
    assert.equal((await app.post('/pod/spec', replica(namespace, containers))).status, 200)
    for (const [digest, hours] of [
      [old, OLD],
      [young, YOUNG],
    ] as const)
      await storeAttestation(app, digest, { repository, checked_at: ago(hours), signatures: [signature()] })
    assert.equal((await app.get(`/images/${young}/attestation`)).status, 200)
    assert.equal((await app.get(`/images/${old}/attestation`)).status, isKept ? 200 : 404)
    const digests = (items: { digest: string }[]) => items.map(({ digest }) => digest).sort()
    for (const filter of [
      '',
      'verdict=verified',
      `repository=${repository}`,
      `repository=${repository}&verdict=verified`,
    ]) {
      const { items, nextAfter } = await read(app, `/attestations?${filter}`)
      assert.deepEqual([digests(items), nextAfter], [kept(old, young).sort(), null], filter)
    }
    for (const path of ['/attestations/running', `/attestations/running?namespace=${namespace}`]) {
      const { items } = await read(app, path)
      const verdicts = Object.fromEntries(
        items.map((item: { digest: string; verdict: string | null }) => [item.digest, item.verdict]),
      )
      assert.deepEqual(verdicts, { [young]: 'verified', [old]: isKept ? 'verified' : null })
    }
    for (const scope of ['', `&namespace=${namespace}`])
      assert.equal((await app.get(`/attestations/policy?mode=enforce${scope}`)).status, isKept ? 200 : 409)
  })

  test(`capabilities, kept for ${what}`, async () => {
    const namespace = newNamespace()
    assert.equal((await app.post('/pod/spec', replica(namespace, [container('app', newDigest())]))).status, 200)
    const names = ['OLD', 'YOUNG']
    const entries = names.map((capability) => checks({ pod_namespace: namespace, capability }))
    assert.equal((await app.post('/runtime/capabilities', entries)).status, 200)
    const report = (capability: string, hours: number) => app.sql`
      update runtime_capability set last_reported = ${ago(hours)}::text::timestamp
      where pod_namespace = ${namespace} and capability = ${capability}`
    // They are kept for the window of the evidence and a day, which is longer than the inventory.
    await report('OLD', 8 * 24 + 1)
    await report('YOUNG', 8 * 24 - 1)
    const { containers } = await read(app, `/workloads/${namespace}/Deployment/web/capabilities`)
    assert.deepEqual(
      containers[0].used.map(({ capability }: { capability: string }) => capability),
      isKept ? names : ['YOUNG'],
    )
  })
}

test('minutes and waits, kept for one day', async () => {
  const c = minute({ blame: [culprit(7_000)] })
  for (const hours of [OLD, YOUNG]) {
    await keep(aDay, [c])
    await aDay.sql`update compute_minute set ts = ts - make_interval(hours => ${hours}) where ts > now() at time zone 'utc' - interval '1 hour'`
    await aDay.sql`update compute_contention set ts = ts - make_interval(hours => ${hours}) where ts > now() at time zone 'utc' - interval '1 hour'`
  }
  const isYoung = (rows: { ts: string }[]) => {
    assert.equal(rows.length, 1)
    assert.ok(Date.now() - Date.parse(rows[0]!.ts) < 24 * 3_600_000)
  }
  isYoung((await history(aDay, c, 10_080)) as { ts: string }[])
  isYoung((await pairs(aDay, { node: 'node-a', minutes: 10_080 })) as { ts: string }[])
  // Folded minutes are kept as long.
  await keep(aDay, [c], { ts: `${ago(OLD).slice(0, 13)}:00:00Z`, resolution_secs: 300 })
  await keep(aDay, [c], { ts: `${ago(YOUNG).slice(0, 13)}:00:00Z`, resolution_secs: 300 })
  const rows = await history(aDay, c, 10_080)
  assert.deepEqual(rows.map(({ resolution_secs }) => resolution_secs).sort(), [300, 60])
})
