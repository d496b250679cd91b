/** What the database holds for drift: exports, versions, files that ran and coverage. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DriftFacts, MAX_ALL_FILES, readDriftFacts } from '../../lib/profile/drift/facts.ts'
import { executable, take } from '../runtime/executables.ts'
import { HOUR, heartbeat, inSecs } from '../runtime/heartbeats.ts'
import { startApp } from '../support/app.ts'
import { digestOf, newNamespace } from '../support/images.ts'
import { rowOf } from './inventory.ts'

const app = await startApp()
const { sql } = app

const keyOf = (namespace: string) => ({ namespace, kind: 'Deployment', name: 'web' })
const read = (namespace: string, rows = [rowOf('app', 'a')], retentionDays = 0): Promise<DriftFacts> =>
  readDriftFacts(app.db.read, keyOf(namespace), rows, { retentionDays })

const podSecurity = (level: string) => ({ level, pod: null, containers: {} })
async function exports(namespace: string, at: string, fields: object = {}): Promise<void> {
  const record = {
    ...{ cluster_id: 'primary', pod_namespace: namespace, workload_kind: 'Deployment', workload_name: 'web' },
    ...{ revision: 3, content_hash: 'fnv1a64:00', mode: 'enforce', artifacts: ['sbom', 'vex'], exported_at: at },
    ...{ images: { containers: { app: ['x'] } }, pod_security: podSecurity('baseline') },
    ...fields,
  }
  await sql`
    insert into workload_profile_export (cluster_id, pod_namespace, workload_kind, workload_name, revision, content_hash, mode,
                                         artifacts, images, pod_security, exported_at)
    select cluster_id, pod_namespace, workload_kind, workload_name, revision, content_hash, mode, artifacts, images,
           pod_security, exported_at
    from json_populate_record(null::workload_profile_export, ${JSON.stringify(record)}::text::json)`
}
const stores = (namespace: string, revision: number, hash: string, cluster = 'primary') => sql`
  insert into workload_profile_version
  select ${cluster}, ${namespace}, 'Deployment', 'web', ${revision}, ${`content-${revision}`},
         ${JSON.stringify({ podSecurity: hash, images: 'i' })}::text::json, '{}',
         ${JSON.stringify({ podSecurity: podSecurity(`level-${revision}`), images: {} })}::text::json, '2026-01-01T00:00:00.5'`

test('an unknown workload has nothing to be compared with', async () => {
  assert.deepEqual(await read('nowhere'), { export: null, versions: [], isWatched: false, coverage: [], unshipped: [] })
})

test('the newest export, of the later one of the same time', async () => {
  const namespace = newNamespace()
  await exports(namespace, '2026-01-02T00:00:00', { revision: 1 })
  await exports(namespace, '2026-01-03T00:00:00', { revision: 2 })
  await exports(namespace, '2026-01-03T00:00:00', { revision: null })
  await exports(namespace, '2026-01-01T00:00:00', { revision: 4 })
  await exports(namespace, '2026-01-04T00:00:00', { workload_name: 'other' })
  await exports(namespace, '2026-01-04T00:00:00', { cluster_id: 'other' })
  await stores(namespace, 1, 'a')
  const { export: exported, versions } = await read(namespace)
  assert.deepEqual(exported, {
    ...{ revision: null, contentHash: 'fnv1a64:00', mode: 'enforce', artifacts: ['sbom', 'vex'] },
    ...{ exportedAt: '2026-01-03T00:00:00Z', images: { containers: { app: ['x'] } } },
    podSecurity: podSecurity('baseline'),
  })
  assert.deepEqual(versions, [], 'the export is the baseline')
})

test('of ten versions the newest, and the newest with another hash of pod security', async () => {
  const [namespace, alike] = [newNamespace(), newNamespace()]
  for (let revision = 1; revision <= 12; revision++) await stores(namespace, revision, revision <= 8 ? 'old' : 'new')
  await stores(namespace, 13, 'elsewhere', 'other')
  const { versions } = await read(namespace)
  assert.deepEqual(versions, [
    {
      ...{ revision: 12, createdAt: '2026-01-01T00:00:00.500Z', podSecurityHash: 'new' },
      podSecurity: podSecurity('level-12'),
    },
    {
      ...{ revision: 8, createdAt: '2026-01-01T00:00:00.500Z', podSecurityHash: 'old' },
      podSecurity: podSecurity('level-8'),
    },
  ])
  for (let revision = 1; revision <= 11; revision++) await stores(alike, revision, revision === 1 ? 'old' : 'new')
  assert.deepEqual(
    (await read(alike)).versions.map(({ revision }) => revision),
    [11],
    'the other is the eleventh',
  )
})

test('unshipped files of running containers on their digests, the newest first', async () => {
  const namespace = newNamespace()
  const seen = (path: string, origin: string, last_seen: string, fields: object = {}) =>
    executable({ pod_namespace: namespace, image_digest: digestOf('a'), path, origin, last_seen, ...fields })
  await take(app, [
    seen('/old', 'writableLayer', '2026-01-01T00:00:00'),
    seen('/new', 'deleted', '2026-01-03T00:00:00.5', { kind: 'lib', path_complete: false }),
    seen('memfd:x', 'memfd', '2026-01-02T00:00:00', { image_digest: digestOf('b') }),
    ...['unknown', 'image', 'otherFs'].map((origin) => seen(`/${origin}`, origin, '2026-01-04T00:00:00')),
    seen('/gone', 'memfd', '2026-01-04T00:00:00', { image_digest: digestOf('gone') }),
    seen('/else', 'memfd', '2026-01-04T00:00:00', { workload_name: 'other' }),
    seen('/side', 'memfd', '2026-01-04T00:00:00', { container_name: 'side' }),
  ])
  const rows = [rowOf('app', 'a'), rowOf('app', 'b'), rowOf('app', 'gone', { isRunning: false })]
  const { unshipped } = await read(namespace, rows)
  assert.deepEqual(unshipped, [
    {
      container: 'app',
      files: [
        {
          ...{ path: '/new', kind: 'lib', origin: 'deleted', digest: digestOf('a'), pathComplete: false },
          ...{ firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-03T00:00:00.500Z' },
        },
        {
          ...{ path: 'memfd:x', kind: 'exec', origin: 'memfd', digest: digestOf('b'), pathComplete: true },
          ...{ firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-02T00:00:00Z' },
        },
        {
          ...{ path: '/old', kind: 'exec', origin: 'writableLayer', digest: digestOf('a'), pathComplete: true },
          ...{ firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-01T00:00:00Z' },
        },
      ],
      total: 3,
      origins: ['deleted', 'writableLayer', 'memfd'],
    },
  ])
  assert.deepEqual((await read(namespace, rows, 1)).unshipped, [], 'files that retention is about to delete')
  assert.deepEqual((await read(namespace, [rowOf('app', 'a', { isRunning: false })])).unshipped, [])
})

test('twenty files of a container are listed and all counted; of many containers each has fewer', async () => {
  const namespace = newNamespace()
  const names = Array.from({ length: 40 }, (_, n) => `c${n}`)
  const own = { pod_namespace: namespace, image_digest: digestOf('a'), origin: 'memfd' }
  await take(app, [
    ...Array.from({ length: 21 }, () => executable({ ...own, container_name: 'c0' })),
    ...names.slice(1).map((container_name) => executable({ ...own, container_name })),
  ])
  const [one] = (await read(namespace, [rowOf('c0', 'a')])).unshipped
  assert.deepEqual([one!.files.length, one!.total], [20, 21])
  const { unshipped } = await read(
    namespace,
    names.map((name) => rowOf(name, 'a')),
  )
  assert.deepEqual(unshipped.map(({ container }) => container).sort(), [...names].sort(), 'no container is left out')
  assert.equal(unshipped.find(({ container }) => container === 'c0')!.files.length, MAX_ALL_FILES / 40)
})

test('coverage of a day, and whether an agent ever watched', async () => {
  const [namespace, late] = [newNamespace(), newNamespace()]
  const beat = (of: string, fields: object) =>
    app.post('/runtime/coverage', [heartbeat({ pod_namespace: of, image_digest: digestOf('a'), ...fields })])
  await beat(namespace, { tracking_since: inSecs(-48 * HOUR) })
  await beat(namespace, { container_name: 'side', lib_probe: false })
  const { isWatched, coverage } = await read(namespace)
  assert.equal(isWatched, true)
  assert.deepEqual(coverage, [
    { container: 'app', digest: digestOf('a'), reason: null },
    { container: 'side', digest: digestOf('a'), reason: 'libraries_not_tracked' },
  ])
  assert.deepEqual((await read(namespace, [])).coverage, [], 'nothing runs')
  await beat(late, {})
  await sql`update runtime_coverage set last_heartbeat = last_heartbeat - interval '25 hours' where pod_namespace = ${late}`
  const silent = await read(late)
  assert.deepEqual([silent.isWatched, silent.coverage], [true, []])
})
