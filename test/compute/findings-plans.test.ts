/**
 * The rows that the statement of findings reads: only those of the window, however long the days before it are, and
 * also when the statistics of a day that has just begun are wrong.
 */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { thresholdsOf } from '../../lib/compute/findings/index.ts'
import { readScope, type Scope } from '../../lib/compute/findings/statement.ts'
import { loadConfig } from '../../lib/config/index.ts'
import type { Sql } from '../../lib/db/index.ts'
import { sessionSettings, settingStatement } from '../../lib/db/session.ts'
import { startApp } from '../support/app.ts'

const CONTAINERS = 300
const GONE = 3_000
const MINUTES = 60
/** Minutes in the window; the younger day has those of four containers only. */
const IN_WINDOW = 5
const { sql } = await startApp()

interface Plan {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Filter?: string
  Plans?: Plan[]
}
const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** The plan for any parameters, as executed under the session settings of reads. */
async function explained(scope: Scope): Promise<Plan[]> {
  let text = ''
  const values: unknown[] = []
  const spy = (strings: readonly string[], ...some: unknown[]) => {
    text = strings.reduce((all, one, i) => `${all}$${i}${one}`)
    values.push(...some)
  }
  readScope(spy as unknown as Sql, scope, thresholdsOf(loadConfig({})))
  return sql.begin(async (held) => {
    await held.unsafe(settingStatement(sessionSettings('read', 0), true))
    await held.unsafe(`prepare findings as ${text}`)
    const given = values.map((value) => (typeof value === 'string' ? `'${value}'` : value)).join(', ')
    const [row] = await held.unsafe(`explain (analyze, timing off, format json) execute findings(${given})`)
    await held.unsafe('deallocate findings')
    return nodesOf((row!['QUERY PLAN'] as { Plan: Plan }[])[0]!.Plan)
  })
}

/** Rows that the scans of a table and its partitions visited. */
const rowsRead = (plan: readonly Plan[], table: string) =>
  plan
    .filter((node) => node['Relation Name']?.startsWith(table))
    .reduce(
      (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    )

before(async () => {
  await sql.unsafe(`
    do $$
    declare
      edge constant timestamp := date_trunc('second', now() at time zone 'utc') - interval '30 seconds';
      part text;
    begin
      foreach part in array array['minute', 'contention'] loop
        execute format('create table compute_%s_old partition of compute_%1$s for values from (%L) to (%L)', part, edge - interval '1 day', edge);
        execute format('create table compute_%s_young partition of compute_%1$s for values from (%L) to (%L)', part, edge, edge + interval '1 day');
      end loop;
    end $$`)
  await sql`
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select 'u-' || n % 7 || '-' || n, 'u', 'ns-' || n % 3, 'p-' || n, 'app', 'node-' || n % 30 from generate_series(1, ${CONTAINERS + GONE}::int) n`
  await sql`
    insert into compute_node
    select 'node-' || n, now(), 1, 0, true, true, true, 0, 0, n % 10, 0, 1, 1, 0, 0, 0, 0, null, null, now() from generate_series(0, 29) n`
  await sql`
    insert into compute_minute
    select n, c.id, t, 60, 1, 1, 1, 1, 1, 500, 1, 600, 0, 0, case c.id % 7 when 0 then 30 else 0 end, 30, 0, 0, 1, 1, 1, 1, 1, n, 1, 1,
           case c.id % 7 when 1 then 30 else 0 end, 30, 0, 0, 0, 0, 0, 0, 0
    from generate_series(0, ${MINUTES - 1}::int) n
    cross join lateral (select date_trunc('second', now() at time zone 'utc') - interval '10 seconds' - n * interval '1 minute' as t) t
    join compute_container c on c.id <= case n when 0 then 4 else ${CONTAINERS}::int end`
  await sql`
    insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, culprit_container_uid, count, wait_ns)
    select m.container_id, m.ts, 'pod', 'ref', c.container_uid, 1, k
    from compute_minute m
    cross join generate_series(1, 3) k
    join compute_container c on c.id = (m.container_id + k) % ${CONTAINERS}::int
    where m.ts > now() at time zone 'utc' - interval '15 minutes'`
})

const scopes: Scope[] = [
  { namespace: null, node: null },
  { namespace: 'ns-1', node: null },
  { namespace: null, node: 'node-8' },
  { namespace: 'ns-2', node: 'node-8' },
]

for (const [what, prepare] of [
  ['without statistics', async () => {}],
  [
    'with statistics of a day that has four rows',
    async () => {
      for (const table of ['compute_container', 'compute_minute', 'compute_contention', 'compute_node'])
        await sql`analyze ${sql(table)}`
    },
  ],
] as const)
  test(`findings read only the window, ${what}`, async () => {
    await prepare()
    for (const scope of scopes) {
      const plan = await explained(scope)
      const of = JSON.stringify(scope)
      assert.deepEqual(
        plan.filter((node) => /Seq Scan|Bitmap/.test(node['Node Type'])),
        [],
        of,
      )
      // The window once, then at most six minutes of each container as a victim, as a culprit and as a neighbor.
      const minutes = rowsRead(plan, 'compute_minute')
      assert.ok(minutes > 0 && minutes <= CONTAINERS * (IN_WINDOW + 3 * IN_WINDOW), `${minutes} minutes, ${of}`)
      const pairs = rowsRead(plan, 'compute_contention')
      assert.ok(pairs > 0 && pairs <= CONTAINERS * IN_WINDOW * 3, `${pairs} pairs, ${of}`)
      // The victims, the containers on their nodes, and each culprit.
      const containers = rowsRead(plan, 'compute_container')
      assert.ok(containers <= 2 * (CONTAINERS + GONE) + CONTAINERS, `${containers} containers, ${of}`)
      for (const node of plan.filter((one) => one['Relation Name']?.startsWith('compute_minute')))
        assert.ok(
          /_ts_idx/.test(node['Index Name']!) || node['Index Cond']!.startsWith('((container_id = '),
          `a whole day is walked through: ${of}`,
        )
      const known = plan.filter((node) => node['Relation Name'] === 'compute_container' && node.Filter)
      assert.ok(
        known.length > 0 && known.every((node) => /hashed SubPlan/.test(node.Filter!)),
        'who is there is looked up in a hash table',
      )
      const byTime = plan.filter(
        (node) => /_ts_idx/.test(node['Index Name'] ?? '') && node['Relation Name']!.startsWith('compute_minute'),
      )
      assert.deepEqual(
        byTime.filter((node) => node['Actual Loops'] > 1),
        [],
        'the window is read once',
      )
    }
  })
