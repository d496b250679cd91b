/** Compares the coverage that the database computes from random histories with a model of the spec. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseHeartbeats } from '../../lib/runtime/coverage/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { judge } from './coverage-model.ts'
import { type Drawn, scene } from './coverage-scenes.ts'
import { digest, heartbeat } from './heartbeats.ts'

const HISTORIES = depth(1_000, 10_000)
/** Scenes that share their statements. */
const AT_ONCE = 1_000
const REASONS = [
  ...[
    'no_runtime_data',
    'probes_missing',
    'libraries_not_tracked',
    'events_dropped',
    'events_pending',
    'incomplete_paths',
  ],
  ...['capture_gap', null],
]
const HOUR = 3_600
const { adminSql: sql } = await createTestDatabase()
type Sql = Parameters<Parameters<typeof sql.begin>[1]>[0]

/** The stored form: no image is an empty text, and the scene number is part of the namespace. */
const imageOf = (image: string) => image && digest(image)
const namespaceOf = (n: number) => `ns${n}`
const podOf = (n: number, name: string) => `${name}-${n}`
const nameOf = (n: number, { owner, name }: Drawn) => (owner === 'workload' ? name : podOf(n, name))

async function post(tx: Sql, entries: unknown[]): Promise<void> {
  const { heartbeats, dropped } = await parseHeartbeats(entries)
  assert.deepEqual(dropped, {})
  await tx`select store_heartbeats(${JSON.stringify(heartbeats)}::text::json)`
}

async function arrange(tx: Sql, scenes: readonly Drawn[], at: (ago: number) => string): Promise<void> {
  const pods = scenes.flatMap((one, n) => [
    ...one.pods.map(({ name, isDead, running }) => ({
      ...{ pod_name: podOf(n, name), pod_namespace: namespaceOf(n), is_dead: isDead, running_containers: running },
      workload_kind: one.owner === 'none' ? null : 'Deployment',
      workload_name: one.owner === 'workload' ? one.name : one.owner === 'half' ? ' ' : null,
    })),
    // Unwatched pods of other namespaces and containers, which must not matter.
    ...(n % 4 ? [] : ['Deployment', null]).map((workload_kind, k) => ({
      ...{
        pod_name: `other-${n}-${k}`,
        pod_namespace: namespaceOf(n),
        is_dead: false,
        running_containers: ['app', 'side'],
      },
      ...{ workload_kind, workload_name: workload_kind && 'other' },
    })),
  ])
  const whole = pods.map((pod) => ({ ...pod, pod_ip: '', pod_ips: [], node_name: 'n', time_stamp: at(0) }))
  await tx`select upsert_pods(${JSON.stringify(whole)}::text::json)`
  await tx`
    insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path,
                                    path_hash, path_complete, source, origin, first_seen, last_seen)
    select 'primary', i.namespace, i.kind, i.name, i.container, i.image, 'exec', 'tail', 'x', false, 'ebpf', 'image', now(), now()
    from json_to_recordset(${JSON.stringify(
      scenes.flatMap((one, n) =>
        one.suffixes.map(({ container, image }) => ({
          ...{ namespace: namespaceOf(n), kind: one.kind, name: nameOf(n, one), container, image: imageOf(image) },
        })),
      ),
    )}::text::json) as i(namespace text, kind text, name text, container text, image text)`
  const instances = scenes.flatMap((one, n) =>
    one.instances.map((instance) => ({
      posts: instance.posts,
      fields: heartbeat({
        ...{
          pod_namespace: namespaceOf(n),
          pod_name: podOf(n, instance.pod),
          workload_kind: one.kind,
          workload_name: nameOf(n, one),
        },
        ...{
          container_name: instance.container,
          image_digest: imageOf(instance.image),
          start_mode: instance.startMode,
        },
      }),
    })),
  )
  for (let wave = 0; instances.some(({ posts }) => wave < posts.length); wave++)
    await post(
      tx,
      instances.flatMap(({ posts, fields }) =>
        (posts[wave] ?? []).map((beat) => ({
          ...fields,
          ...{
            mode: beat.mode,
            exec_probe: beat.execProbe,
            lib_probe: beat.libProbe,
            events_dropped: beat.lost,
            unsent: beat.unsent,
          },
          ...{
            incomplete: beat.incomplete,
            ended: beat.ended,
            heartbeat_at: at(beat.ago),
            heartbeat_secs: beat.everySecs,
          },
          probe_attached_at: beat.attachedAgo === null ? null : at(beat.attachedAgo),
          tracking_since: at(beat.trackedAgo),
          ...(!beat.knowsImage && { image_digest: '' }),
          ...(!beat.knowsWorkload && { workload_kind: null, workload_name: null }),
        })),
      ),
    )
}

interface Said {
  reason: string | null
  covered: boolean
  observed: number | null
}

/** The clock of a transaction stands still. */
const said = (scenes: readonly Drawn[]) =>
  sql.begin(async (tx) => {
    const [{ now }] = await tx<
      [{ now: string }]
    >`select to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US') as now`
    const [second, fraction] = now.split('.') as [string, string]
    const base = Date.parse(`${second}Z`)
    const at = (ago: number) => `${new Date(base - ago * 1_000).toISOString().slice(0, 19)}.${fraction}`
    await tx`truncate runtime_coverage, runtime_executable, pod, pod_address`
    await arrange(tx, scenes, at)
    const asked = scenes.map((one, n) => ({
      ...{
        namespace: namespaceOf(n),
        kind: one.kind,
        name: nameOf(n, one),
        container: one.container,
        image: imageOf(one.image),
      },
      hours: one.hours,
    }))
    return tx<Said[]>`
      select c.reason, c.covered, extract(epoch from now() at time zone 'utc' - c.observed_since)::float8 as observed
      from rows from (json_to_recordset(${JSON.stringify(asked)}::text::json)
             as (namespace text, kind text, name text, container text, image text, hours integer)) with ordinality q(namespace, kind, name, container, image, hours, n)
      cross join lateral kg_runtime_coverage('primary', q.namespace, q.kind, q.name, q.container, q.image, q.hours) c
      order by q.n`
  })

test(`${HISTORIES} random histories have the coverage of the model`, { timeout: 240_000 }, async () => {
  const seed = Number(process.env.COVERAGE_SEED ?? Date.now() % 2 ** 31)
  const scenes = fc.sample(scene, { numRuns: HISTORIES, seed })
  const seen = new Map<string | null, number>()
  for (let from = 0; from < scenes.length; from += AT_ONCE) {
    const some = scenes.slice(from, from + AT_ONCE)
    const answers = await said(some)
    assert.equal(answers.length, some.length)
    for (const [n, one] of some.entries()) {
      const { reason, observedAgo } = judge(one, one.container, one.image, Math.max(one.hours, 0) * HOUR)
      const { covered, observed, ...answer } = answers[n]!
      assert.deepEqual(
        { ...answer, observed },
        { reason, observed: observedAgo },
        `seed ${seed}: the database, and then the model, of ${JSON.stringify(one, null, 1)}`,
      )
      assert.equal(covered, reason === null)
      seen.set(reason, (seen.get(reason) ?? 0) + 1)
    }
  }
  const tally = JSON.stringify([...seen])
  for (const reason of REASONS)
    assert.ok((seen.get(reason) ?? 0) >= HISTORIES / 500, `${reason} is seldom seen: ${tally}`)
})
