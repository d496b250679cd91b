/**
 * Writers of many rows take their locks in one order, whatever the order of their documents. The pool would retry a
 * deadlock, so that it shows only as a delay; therefore statements run here without the pool.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type postgres from 'postgres'
import { waiting } from '../jobs/scene.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { adminSql: sql } = await createTestDatabase()

type Write = (on: postgres.Sql, keys: string[], second: number) => Promise<unknown>
const time = (second: number) => `2026-01-01T00:00:0${second}`

const array = (values: readonly unknown[]) => `{${values.map((value) => `"${value}"`).join()}}`

/** Each path of each owner; each `second` is five minutes later. */
function executables(on: postgres.Sql, owners: readonly string[], paths: readonly string[], second: number) {
  const rows = owners.flatMap((_, owner) => paths.map((path) => ({ owner: owner + 1, path })))
  const each = (value: unknown) => array(rows.map(() => value))
  const same = array(owners.map(() => 'x'))
  const seen = each(`2026-01-01T00:${5 * second}:00`)
  return on`
    select store_executables(
      ${array(owners)}::text::text[], ${same}::text::text[], ${same}::text::text[], ${same}::text::text[], ${same}::text::text[], '{}',
      ${array(rows.map(({ owner }) => owner))}::text::integer[], ${each('exec')}::text::text[],
      ${array(rows.map(({ path }) => path))}::text::text[], ${each(true)}::text::boolean[], ${each('ebpf')}::text::text[],
      ${each('image')}::text::text[], null, ${seen}::text::timestamp[], ${seen}::text::timestamp[])`
}
/** Heartbeats of each container at each second. */
function heartbeats(on: postgres.Sql, ids: readonly string[], seconds: readonly number[]) {
  const beats = ids.flatMap((container_id) =>
    seconds.map((second) => ({
      ...{
        container_id,
        pod_namespace: 'n',
        workload_kind: 'k',
        workload_name: 'w',
        container_name: 'c',
        image_digest: '',
        pod_name: 'p',
      },
      ...{
        node_name: 'n',
        mode: 'full',
        exec_probe: true,
        lib_probe: true,
        start_mode: 'start',
        tracking_since: time(0),
      },
      ...{ probe_attached_at: null, heartbeat_at: time(second), heartbeat_secs: 1, events_dropped: 0, unsent: 0 },
      ...{ incomplete: false, ended: false },
    })),
  )
  return on`select store_heartbeats(${JSON.stringify(beats)}::text::json)`
}
const NODE_NUMBERS = [
  ...[
    'ctxt_per_sec',
    'cpu_some10',
    'cpu_full10',
    'mem_some10',
    'mem_full10',
    'cpu_cores',
    'memory_bytes',
    'bpf_runq_enqueued',
  ],
  ...['bpf_runq_hist', 'bpf_pair', 'unknown_blame_share'],
]

/** A minute of each container; those of one second are the same. */
function minutes(on: postgres.Sql, keys: readonly string[], second: number, resolution: number) {
  const [texts, counts, fractions] = ['k.t', 'k.b', 'k.f']
  const kinds = [
    ...[
      ...Array(5).fill(texts),
      ...Array(3).fill(fractions),
      ...Array(7).fill(counts),
      ...Array(4).fill(fractions),
      ...Array(8).fill(counts),
    ],
    ...[...Array(4).fill(fractions), ...Array(11).fill(counts)],
  ]
  return on.unsafe(
    `select store_minutes($1, $2::text::timestamp, $3::int, ${kinds.join(', ')}, null, '{1}', '{1}', '{pod}', '{r}', '{c}', '{1}', '{1}', '{t}')
     from (select $4::text::text[] as t, array_fill(1::bigint, array[$5::int]) as b, array_fill(1::float8, array[$5::int]) as f) k`,
    [`node-${second}`, time(second), resolution, array(keys), keys.length],
  )
}

const writers: Record<string, Write> = {
  upsert_pods: (on, keys, second) => {
    const pod = (pod_name: string) => ({
      ...{ pod_name, pod_ip: pod_name, pod_ips: [pod_name], time_stamp: time(second), node_name: 'n', is_dead: false },
    })
    return on`select upsert_pods(${JSON.stringify(keys.map(pod))}::text::json)`
  },
  upsert_services: (on, keys, second) =>
    on`select upsert_services(${JSON.stringify(keys.map((svc_ip) => ({ svc_ip, time_stamp: time(second) })))}::text::json)`,
  add_syscalls: (on, keys, second) => {
    const record = (pod_name: string) => ({
      pod_name,
      pod_namespace: '',
      syscalls: ['read'],
      arch: 'x',
      time_stamp: time(second),
    })
    return on`select add_syscalls(${JSON.stringify(keys.map(record))}::text::json, null)`
  },
  // Each writer has its own pods, in another order than the workloads that they share.
  'the unions of add_syscalls': async (on, keys, second) => {
    const pods = keys.map((name, i) => ({ pod_name: `${keys[0]}-${second}-${9 - i}`, name }))
    const posted = pods.map(({ pod_name, name }) => ({
      ...{ pod_name, pod_ip: '', pod_namespace: 'n', time_stamp: time(0), node_name: 'n', is_dead: false, pod_ips: [] },
      ...{ workload_kind: 'Deployment', workload_name: name },
    }))
    await on`select upsert_pods(${JSON.stringify(posted)}::text::json)`
    const record = ({ pod_name }: { pod_name: string }) => ({
      ...{ pod_name, pod_namespace: '', syscalls: [`s${second}`], arch: 'x', time_stamp: time(second) },
    })
    return on`select add_syscalls(${JSON.stringify(pods.map(record))}::text::json, null)`
  },
  store_denials: (on, keys, second) => {
    const denials = keys.map((pod_uid) => ({
      pod_uid,
      pod_name: 'p',
      pod_namespace: 'n',
      syscall: 's',
      action: 'a',
      count: 1,
    }))
    const document = {
      node: `${keys[0]}-${second}`,
      capturing: true,
      interval_seconds: null,
      post: randomUUID(),
      denials,
    }
    return on`select * from store_denials(${JSON.stringify(document)}::text::json)`
  },
  // All rows have one owner, so the order of paths decides.
  store_executables: (on, keys, second) => executables(on, ['o'], keys, second),
  'store_executables, of many owners': (on, keys, second) => executables(on, keys, ['p'], second),
  store_heartbeats: (on, keys, second) => heartbeats(on, keys, [second]),
  'store_heartbeats, several of each': (on, keys, second) => heartbeats(on, keys, [second - 1, second, second + 1]),
  store_capabilities: (on, keys, second) => {
    const checks = keys.map((capability) => ({
      ...{ pod_namespace: 'n', workload_kind: 'k', workload_name: 'w', container_name: 'c', image_digest: '' },
      ...{ capability, granted: true, probed: false, count: 1, first_seen: time(0), last_seen: time(second) },
    }))
    return on`select store_capabilities(${JSON.stringify(checks)}::text::json, ${randomUUID()})`
  },
  store_minutes: (on, keys, second) => minutes(on, keys, second, 60),
  'store_minutes, of the same time': (on, keys, second) => minutes(on, keys, Math.min(second, 1), 60),
  'store_minutes, of five minutes': (on, keys, second) => minutes(on, keys, Math.min(second, 1), 300),
  // All samples are of one node, whose row is locked last.
  store_samples: (on, keys, second) => {
    const node = {
      node: 'n',
      ts: time(second),
      interval_ms: 1,
      compute_enabled: true,
      compute_supported: true,
      contention_loaded: true,
    }
    const zeros = NODE_NUMBERS.map((key) => [key, 0])
    return on`
      select store_samples(${JSON.stringify({ ...node, ...Object.fromEntries(zeros) })}::text::json, k.t, k.t, k.t, k.t, k.t, k.b, k.f,
        k.b, k.b, k.b, k.b, k.b, k.b, k.b, k.f, k.f, k.b, k.b, k.b, k.b, k.f, k.f, k.b, k.b, k.b, k.b, k.b, k.b, k.b, k.b, k.b, k.b, k.b, k.t, k.b, k.b)
      from (select ${`{${keys}}`}::text::text[] as t, array_fill(1::bigint, array[${keys.length}::int]) as b, array_fill(1::float8, array[${keys.length}::int]) as f) k`
  },
}

/**
 * While a third session holds the row in the middle, the first writer reaches it from one side and the second from the
 * other. A writer that keeps the order waits behind the first; one that does not holds what the first needs next.
 */
async function assertNoCircle(write: Write, keys: [string, string, string]): Promise<void> {
  const writes: Promise<unknown>[] = []
  await sql.begin(async (other) => {
    await write(other as unknown as postgres.Sql, [keys[1]], 1)
    for (const [n, order] of [keys, keys.toReversed()].entries()) {
      writes.push(write(sql, order, 2 + n))
      writes[n]!.catch(() => {})
      await until('the writer waits', async () => (await waiting(sql)) === n + 1)
    }
  })
  const faults = (await Promise.allSettled(writes)).flatMap((one) =>
    one.status === 'rejected' ? [one.reason.code] : [],
  )
  assert.deepEqual(faults, [])
}

for (const [name, write] of Object.entries(writers)) {
  test(`${name}: new rows`, () => assertNoCircle(write, [`${name}-1`, `${name}-2`, `${name}-3`]))

  test(`${name}: stored rows`, async () => {
    const keys: [string, string, string] = [`${name}-4`, `${name}-5`, `${name}-6`]
    await write(sql, keys, 0)
    await assertNoCircle(write, keys)
  })
}
