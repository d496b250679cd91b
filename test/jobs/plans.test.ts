/**
 * The plan of every statement of the retention jobs, taken in the session that then runs it: on large tables with current
 * statistics, and on large tables with statistics from when they were almost empty.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { attestationRetention } from '../../jobs/attestation-retention.ts'
import { auditRetention } from '../../jobs/audit-retention.ts'
import { deadPodRetention } from '../../jobs/dead-pod-retention.ts'
import type { Job } from '../../jobs/job.ts'
import { runtimeRetention } from '../../jobs/runtime-retention.ts'
import { seccompDenialRetention } from '../../jobs/seccomp-denial-retention.ts'
import { trafficRetention } from '../../jobs/traffic-retention.ts'
import type { Database, Sql } from '../../lib/db/index.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { abortedAfter, startScene } from './scene.ts'

/** Rows of most tables. */
const ROWS = depth(10_000, 100_000)
/** Tables of which a whole index would be read if they had fewer rows. */
const JOINED = ['pod', 'image', 'workload_container', 'seccomp_denial']
const JOINED_ROWS = 100_000
/** The planner goes by the number of pages: the smaller tables have as many as the large ones. */
const FILL = depth(', fillfactor = 10', '')
const MAX_ROWS_PER_POD = depth(15, 150)
const DAY = 86_400
const LARGE = [
  'traffic',
  'audit_verdict',
  'pod',
  'image_attestation',
  'image',
  'workload_container',
  'seccomp_denial',
  'seccomp_denial_node',
  'runtime_executable',
  'runtime_capability',
  'runtime_coverage',
]

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  Plans?: Plan[]
}

const scene = await startScene(trafficRetention, {
  auditRetentionBatchSize: 100,
  trafficRetentionBatchSize: 100,
  trafficMaxRowsPerPod: MAX_ROWS_PER_POD,
  seccompDenialsBatchSize: 100,
  imageInventoryBatchSize: 100,
})
const { sql, ago } = scene

/** The database; the session that runs a statement first explains it. */
function explaining(plans: Plan[]): Database {
  const job = async (statement: (sql: Sql) => unknown) => {
    const [row] = await scene.db.job((db) => db`explain (format json) ${statement(db) as ReturnType<typeof db>}`)
    plans.push((row!['QUERY PLAN'] as { Plan: Plan }[])[0]!.Plan)
    return scene.db.job(statement as never)
  }
  return { job } as unknown as Database
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** The large tables that a plan scans sequentially, or whose rows it sorts. */
function faults(plan: Plan): string[] {
  return nodesOf(plan).flatMap((node) => {
    const type = node['Node Type']
    const relation = node['Relation Name']
    if (type.includes('Seq Scan') && LARGE.includes(relation!)) return [`${type} of ${relation}`]
    const below = type === 'Sort' ? node.Plans![0]! : undefined
    return LARGE.includes(below?.['Relation Name'] ?? '') ? [`Sort of ${below!['Relation Name']}`] : []
  })
}

async function fill(rows: number, joined: number): Promise<void> {
  await sql`
    insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, reason, observed_at, verdict)
    select '', '', 'p', 'Ingress', n, 'TCP', '', ${ago(60 * DAY)}::text::timestamp + n * interval '1 s', 'Allow'
    from generate_series(1, ${rows}::int) n`
  await sql`
    insert into pod (pod_name, pod_ip, pod_ips, pod_namespace, time_stamp, node_name, is_dead)
    select 'pod-' || n, '', '{}', 'shop', ${ago(60 * DAY)}::text::timestamp, 'node', n % 2 = 0
    from generate_series(1, ${joined / 2}::int) n on conflict do nothing`
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, traffic_in_out_ip, time_stamp, peer_kind, peer_name)
    select ${rows}::text || '-' || n, 'pod-' || n % 500, 'shop', n::text, ${ago(60 * DAY)}::text::timestamp + n * interval '1 s',
           case n % 3 when 0 then 'pod' when 1 then 'service' end, 'peer-' || n % 7
    from generate_series(1, ${rows}::int) n`
  const digest = sql`'sha256:' || lpad(to_hex(n), 64, '0')`
  const now = sql`${ago(0)}::text::timestamp`
  await sql`
    insert into image_attestation
    select ${digest}, 'r', 'unsigned', null, null, null, null, '[]', '[]', '[]', '[]', '[]', '[]', '',
           case when n <= ${Math.floor(rows / 5)}::int then ${ago(60 * DAY)}::text::timestamp + n * interval '1 s' else ${now} end, ${now}
    from generate_series(1, ${rows}::int) n on conflict do nothing`
  await sql`
    insert into image select ${digest}, 'r', '{}', 'repo', ${now}, ${now} from generate_series(1, ${joined}::int) n where n % 2 = 0
    on conflict do nothing`
  await sql`
    insert into workload_container
    select 'primary', 'shop', 'Deployment', 'web', 'c-' || n, ${digest}, 'regular', 'r', '{}', '{}', null, null, null, null, ${now}, ${now}
    from generate_series(1, ${joined}::int) n where n % 3 = 0 on conflict do nothing`
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
    select ${joined}::text || '-' || n, 'pod-' || n, 'ns-' || n % 3, w.name, w.name, 's', 'a', 1, t, t
    from (select n, case when n % 5 = 0 then ${ago(60 * DAY)}::text::timestamp + n * interval '1 s' else ${now} end as t
          from generate_series(1, ${joined}::int) n) n,
         lateral (select case when n % 100 > 0 then 'web' end) w(name)`
  await sql`
    insert into seccomp_denial_node select ${joined}::text || '-' || n, true, 10, '{}', ${ago(60 * DAY)}::text::timestamp from generate_series(1, ${Math.ceil(rows / 4)}::int) n`
  await sql`
    insert into runtime_executable (
      cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash, path_complete, source,
      origin, first_seen, last_seen)
    select 'primary', 'shop', 'Deployment', 'web', 'c-' || n % 50, ${rows}::text, 'exec', '/bin/' || n, decode(lpad(to_hex(n), 64, '0'), 'hex'),
           true, 'ebpf', 'image', t, t
    from (select n, case when n <= 250 then ${ago(60 * DAY)}::text::timestamp + n * interval '1 s' else ${now} end as t
          from generate_series(1, ${rows}::int) n) n`
  await sql`
    insert into runtime_capability (
      cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted, probed, count,
      first_seen, last_seen, last_reported, last_post)
    select 'primary', 'shop', 'Deployment', 'web', 'c-' || n % 50, ${rows}::text, 'CAP_' || n, true, false, 1, t, t, t, gen_random_uuid()
    from (select n, case when n <= 250 then ${ago(60 * DAY)}::text::timestamp + n * interval '1 s' else ${now} end as t
          from generate_series(1, ${rows}::int) n) n`
  await sql`
    insert into runtime_coverage (
      cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, pod_name, node_name, mode,
      exec_probe, lib_probe, start_mode, tracking_since, covered_since, last_heartbeat, heartbeat_secs, gaps, events_dropped, unsent,
      incomplete, ended)
    select 'primary', ${rows}::text || lpad(n::text, 9, '0'), 'shop', 'Deployment', 'web', 'web', '', 'pod-' || n, 'node', 'full', true, true,
           'start', t, t, t, 300, 0, 0, 0, false, false
    from (select n, case when n % 500 = 0 then ${ago(60 * DAY)}::text::timestamp else ${now} end as t
          from generate_series(1, ${rows}::int) n) n`
}

const jobs: [job: Job, batches: number][] = [
  [auditRetention, 3],
  [deadPodRetention, 3],
  [trafficRetention, 3],
  // The first five, or with few rows the first one, delete by age, the others by the inventory.
  [attestationRetention, depth(3, 8)],
  // The first eleven attribute, the others delete by age.
  [seccompDenialRetention, 14],
  // The first three read files, some of them seen lately, the next three capabilities, the others containers.
  [runtimeRetention, depth(7, 10)],
]

for (const [belief, isKnown] of [
  ['with current statistics', true],
  ['with statistics from when they held two rows', false],
] as const) {
  describe(`tables ${belief}`, { skip: isKnown && onlyFull }, () => {
    before(async () => {
      await sql`truncate audit_verdict, pod, pod_address, traffic, traffic_retention_cursor, image_attestation, image, workload_container,
                         seccomp_denial, seccomp_denial_node, runtime_executable, runtime_capability, runtime_coverage`
      for (const table of LARGE) {
        const fill = JOINED.includes(table) ? '' : FILL
        await sql.unsafe(`alter table ${table} set (autovacuum_enabled = false${fill})`)
      }
      await fill(2, 2)
      await sql.unsafe('analyze')
      await fill(ROWS, JOINED_ROWS)
      if (isKnown) await sql.unsafe('analyze')
    })

    for (const [job, batches] of jobs) {
      // Pods are read 5 000 at a time. If statistics say that there are fewer, the planner prefers a sequential scan.
      if (job === deadPodRetention && !isKnown) continue
      test(`a batch of ${job.name} needs no sequential scan and no sort`, async () => {
        const plans: Plan[] = []
        const pass = await job.run(scene.context(abortedAfter(batches, explaining(plans))))
        assert.equal(pass.batches, batches)
        assert.equal(plans.length, batches)
        for (const plan of plans) assert.deepEqual(faults(plan), [], JSON.stringify(plan))
      })
    }

    test('the cap per pod finds and deletes flows without a sequential scan', async () => {
      const plans: Plan[] = []
      const { config } = scene.context()
      const context = scene.context(abortedAfter(6, explaining(plans)))
      const pass = await trafficRetention.run({
        ...context,
        config: { ...config, trafficRetentionDays: 0, trafficMaxRowsPerPod: MAX_ROWS_PER_POD },
      })
      assert.ok(pass.rows > 0)
      // The first two read the cursor and find the pods; the second reads as many index entries as there are rows.
      for (const plan of plans.slice(2)) {
        assert.deepEqual(
          faults(plan).filter((fault) => !fault.startsWith('Sort')),
          [],
          JSON.stringify(plan),
        )
      }
    })
  })
}

test('the check detects sequential scans and sorts', async () => {
  const explain = async (text: string) =>
    (await sql.unsafe(`explain (format json) ${text}`))[0]!['QUERY PLAN'] as { Plan: Plan }[]
  assert.deepEqual(faults((await explain('select * from traffic'))[0]!.Plan), ['Seq Scan of traffic'])
  const sort = (await explain('select * from traffic order by peer_name'))[0]!.Plan
  assert.ok(faults(sort).length > 0)
})
