import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { largestFirst, staleSweep } from '../../jobs/stale-sweep.ts'
import { abortedAfter, inside, startScene } from './scene.ts'

const scene = await startScene(staleSweep)
const { ago, pod, run, count, sql, logged } = scene

beforeEach(async () => {
  await sql`truncate pod, pod_address`
  logged.length = 0
})

/** Stores `n` living pods of one node, last posted `secsAgo` seconds ago. */
async function manyPods(n: number, secsAgo: number, node = 'node-a'): Promise<void> {
  await sql`
    insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
    select format('%s-%s', ${node}::text, i), '10.0.0.1', '{}', ${ago(secsAgo)}::text::timestamp, ${node}::text, false
    from generate_series(1, ${n}::int) i`
}

async function names(isDead: boolean): Promise<string[]> {
  const rows = await sql<{ pod_name: string }[]>`select pod_name from pod where is_dead = ${isDead} order by pod_name`
  return rows.map(({ pod_name }) => pod_name)
}

async function deadPods(): Promise<number> {
  const [row] = await sql<{ n: number }[]>`select count(*)::int as n from pod where is_dead`
  return row!.n
}

const warnings = () => logged.filter(({ level }) => level === 40)

test('a pod that was not posted within the window is marked dead with the time of the sweep; its other fields stay', async () => {
  await pod({ pod_name: 'gone', time_stamp: ago(1000) })
  await pod({ pod_name: 'here', time_stamp: ago(300) })
  const before = await sql`select * from pod order by pod_name`
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 1 })
  const after = await sql`select * from pod order by pod_name`
  const { swept_at } = after[0]!
  assert.notEqual(swept_at, null)
  assert.deepEqual([...after], [{ ...before[0], is_dead: true, swept_at }, before[1]])
  const living = await scene.get('/pod/info?include_dead=false')
  assert.deepEqual(
    living.json.map((record: { pod_name: string }) => record.pod_name),
    ['here'],
  )
})

test('a pod exactly 900 seconds old stays alive, one a microsecond older is marked dead', async () => {
  await sql.begin(async (now) => {
    await now`
      insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
      values ('at', '10.0.0.1', '{}', now() at time zone 'utc' - interval '900 s', 'node-a', false),
             ('past', '10.0.0.1', '{}', now() at time zone 'utc' - interval '900.000001 s', 'node-a', false)`
    assert.equal(await count({ db: inside(now) }), 1)
    assert.equal((await run({ db: inside(now) })).rows, 1)
  })
  assert.deepEqual(await names(true), ['past'])
})

test('the configuration sets the window and the interval; a window of 0 turns the job off', async () => {
  await manyPods(1, 100)
  const { config } = scene.context()
  assert.equal((await run()).rows, 0)
  assert.equal((await run({ config: { ...config, peerStaleAliveSecs: 60 } })).rows, 1)
  assert.equal(staleSweep.everySecs({ ...config, peerStaleAliveSecs: 0 }), null)
  assert.equal(staleSweep.everySecs({ ...config, peerLateResolveIntervalSecs: 5 }), 5)
})

test('a dead pod is neither changed nor counted', async () => {
  await pod({ pod_name: 'dead', time_stamp: ago(5000), is_dead: true })
  const before = await sql`select * from pod`
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 1 })
  assert.deepEqual([...(await sql`select * from pod`)], [...before])
  assert.deepEqual(warnings(), [])
})

test('a pod that is posted after the sweep is alive again, until it is stale again', async () => {
  await pod({ pod_name: 'back', time_stamp: ago(1000) })
  assert.equal((await run()).rows, 1)
  assert.deepEqual(await names(true), ['back'])
  await pod({ pod_name: 'back', time_stamp: ago(0) })
  assert.equal((await run()).rows, 0)
  assert.deepEqual(await names(false), ['back'])
  await pod({ pod_name: 'back', time_stamp: ago(950) })
  assert.equal((await run()).rows, 1)
  assert.deepEqual(await names(true), ['back'])
})

test('a pod that another transaction is writing is skipped, and the others are marked', async () => {
  await manyPods(3, 1000)
  await sql.begin(async (post) => {
    await post`update pod set time_stamp = now() at time zone 'utc' where pod_name = 'node-a-2'`
    assert.equal((await run()).rows, 2)
  })
  assert.deepEqual(await names(false), ['node-a-2'])
})

test('the warning has the number of pods and of nodes, and the pods of each node, largest first', async () => {
  await manyPods(2, 1000, 'node-b')
  await manyPods(1, 1000, 'node-a')
  await manyPods(3, 1000, 'node-c')
  await manyPods(4, 10, 'node-d')
  await run()
  const [{ time: _, ...line }, ...more] = warnings() as [Record<string, unknown>, ...unknown[]]
  assert.deepEqual(more, [])
  const { msg, pods, nodes, podsByNode, windowSecs } = line
  assert.deepEqual(
    { msg, pods, nodes, podsByNode, windowSecs },
    {
      msg: 'pods that were not posted again are marked dead',
      pods: 6,
      nodes: 3,
      podsByNode: 'node-c=3, node-b=2, node-a=1',
      windowSecs: 900,
    },
  )
})

test('the warning names 20 nodes and how many more there are; equal counts go by name', () => {
  const nodes = (n: number) => new Map(Array.from({ length: n }, (_, i) => [`n${String(n - i).padStart(2, '0')}`, 1]))
  assert.equal(largestFirst(nodes(1)), 'n01=1')
  const twenty = Array.from({ length: 20 }, (_, i) => `n${String(i + 1).padStart(2, '0')}=1`).join(', ')
  assert.equal(largestFirst(nodes(20)), twenty)
  assert.equal(largestFirst(nodes(21)), `${twenty}, +1 more`)
  assert.equal(largestFirst(new Map([...nodes(30), ['big', 5]])).startsWith('big=5, n01=1'), true)
  assert.match(largestFirst(new Map([...nodes(30), ['big', 5]])), /, n19=1, \+11 more$/)
})

test('the warning counts the pods of a node over all batches', async () => {
  await manyPods(1500, 1000, 'node-a')
  await manyPods(1200, 1000, 'node-b')
  assert.deepEqual(await run(), { outcome: 'done', rows: 2700, batches: 3 })
  assert.equal(await deadPods(), 2700)
  assert.equal(warnings().length, 1)
  assert.equal(warnings()[0]!.podsByNode, 'node-a=1500, node-b=1200')
})

test('two processes at once mark every pod once', async (t) => {
  await manyPods(6000, 1000)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 6000)
  assert.equal(
    warnings().reduce((sum, { pods }) => sum + Number(pods), 0),
    6000,
  )
  assert.equal(await deadPods(), 6000)
})

test('with the lock held elsewhere a pass reports skipped, changes nothing and does not warn', async () => {
  await manyPods(2, 1000)
  await scene.whileLocked('stale-sweep', async () =>
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 }),
  )
  assert.equal(await deadPods(), 0)
  assert.deepEqual(warnings(), [])
})

test('a pass aborted between two batches warns of the pods it marked, and the next pass marks the rest', async () => {
  await manyPods(1500, 1000)
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 1000, batches: 1 })
  assert.equal(await deadPods(), 1000)
  assert.equal(warnings()[0]!.pods, 1000)
  assert.deepEqual(await run(), { outcome: 'done', rows: 500, batches: 1 })
})

test('a pass that fails after its first batch warns of the pods it marked', async () => {
  await manyPods(1500, 1000)
  let asked = 0
  const job = (statement: Parameters<typeof scene.db.job>[0]) => {
    if (asked++ === 1) throw new Error('gone')
    return scene.db.job(statement)
  }
  await assert.rejects(run({ db: { job } as unknown as typeof scene.db }), /gone/)
  assert.equal(warnings()[0]!.pods, 1000)
})

test('counting returns the number of pods that a pass would mark, and marks none', async () => {
  await manyPods(3, 1000)
  await manyPods(2, 10, 'node-b')
  await scene.whileLocked('stale-sweep', async () => assert.equal(await count(), 3))
  assert.equal(await deadPods(), 0)
})
