/**
 * Fail-overs of the database: three brokers behind PgBouncer, HAProxy and two servers of Patroni, as docs/install.md
 * sets them up. Nothing that was acknowledged may be lost when the primary is killed.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Broker, get, startBroker } from '../support/broker.ts'
import { onlyFull } from '../support/depth.ts'
import { program } from '../support/program.ts'
import { until } from '../support/until.ts'
import { Agents, acknowledgedPerSecond } from './failover/agents.ts'
import { Cluster, patroniSettings } from './failover/cluster.ts'
import { missingPackages } from './failover/programs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BROKERS = 3
const FAIL_OVERS = Number(process.env.FO ?? 10)
/** Time for the promotion, and until HAProxy, PgBouncer and the brokers have found the new primary. */
const FOUND_WITHIN_MS = 5_000
/** Posts that each broker acknowledges before and after each fail-over. */
const ENOUGH = 50
const REJOIN_MS = 120_000
const { ttl } = patroniSettings()

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

async function startAll(t: TestContext): Promise<{ cluster: Cluster; brokers: Broker[] }> {
  const cluster = await Cluster.start(t)
  const env = { NODE_ENV: 'production', DB_PREPARE: 'false' }
  const migrated = spawnSync(process.execPath, program('sql/migrate.ts'), {
    cwd: ROOT,
    env: { ...process.env, ...env, DATABASE_URL: cluster.directUrl },
    encoding: 'utf8',
  })
  assert.equal(migrated.status, 0, migrated.stdout + migrated.stderr)
  const start = () => startBroker({ databaseUrl: cluster.url, env: { ...env, MIGRATE_ON_START: 'false' } })
  const brokers = await Promise.all(Array.from({ length: BROKERS }, start))
  for (const broker of brokers) t.after(() => broker.stop())
  return { cluster, brokers }
}

/** Only 200 and 503 were answered, and the database has everything that was acknowledged. */
async function assertNothingLost(t: TestContext, agents: Agents, cluster: Cluster): Promise<void> {
  const { missing, repeated, olderPods } = await cluster.asSuperuser((sql) => agents.compare(sql))
  const answers = [...agents.answers].map(([answer, count]) => `${count} x ${answer}`).join(', ')
  t.diagnostic(`${agents.acknowledged.length} flows acknowledged, ${missing.length} missing; answers: ${answers}`)
  assert.deepEqual(
    { missing, repeated, olderPods, wrong: agents.wrong },
    {
      missing: [],
      repeated: [],
      olderPods: [],
      wrong: [],
    },
  )
  assert.deepEqual(
    [...agents.answers.keys()].filter((answer) => answer !== 200 && answer !== 503),
    [],
  )
}

async function failOver(t: TestContext, number: number, agents: Agents, cluster: Cluster): Promise<void> {
  const [acknowledged, refused] = [agents.acknowledged.length, agents.refused]
  agents.reset()
  await until('all brokers acknowledge', () => agents.fewest >= ENOUGH)
  const { primary, standby } = await cluster.roles()
  agents.reset()
  await primary.kill()
  await until('the standby is the primary', async () => (await cluster.primary()) === standby)
  const { fewest } = agents
  await until('all brokers acknowledge again', () => agents.fewest >= fewest + ENOUGH)
  const gapMs = agents.longestGapMs
  const rejoinsAt = performance.now()
  primary.start()
  await cluster.untilStandby('synchronous', REJOIN_MS)
  t.diagnostic(
    [
      `fail-over ${number} from ${primary.name} to ${standby.name}: ${seconds(gapMs)} without an acknowledged post`,
      `slowest answer ${seconds(agents.slowestMs)}, back as standby after ${seconds(performance.now() - rejoinsAt)}`,
      `${agents.acknowledged.length - acknowledged} flows acknowledged, ${agents.refused - refused} posts refused`,
    ].join('; '),
  )
  assert.ok(gapMs <= ttl * 1_000 + FOUND_WITHIN_MS, `${seconds(gapMs)} without an acknowledged post`)
}

/** Without strict mode the primary goes on alone. */
async function loseStandby(t: TestContext, brokers: readonly Broker[], cluster: Cluster): Promise<void> {
  await cluster.setMode('synchronous')
  await cluster.untilStandby('synchronous')
  const agents = new Agents(t, brokers)
  await until('all brokers acknowledge', () => agents.fewest >= ENOUGH)
  agents.reset()
  const { standby } = await cluster.roles()
  await standby.kill()
  await until('no commit waits for the standby', async () => (await cluster.awaited()) === '')
  const { fewest } = agents
  await until('all brokers acknowledge alone', () => agents.fewest >= fewest + ENOUGH)
  t.diagnostic(`synchronous, the standby is lost: ${seconds(agents.longestGapMs)} without an acknowledged post`)
  standby.start()
  await cluster.untilStandby('synchronous', REJOIN_MS)
  await agents.stop()
  await assertNothingLost(t, agents, cluster)
}

/** With strict mode no commit is acknowledged that only one server has. */
async function loseStandbyStrictly(t: TestContext, brokers: readonly Broker[], cluster: Cluster): Promise<void> {
  await cluster.setMode('strict')
  await cluster.untilStandby('strict')
  const { standby } = await cluster.roles()
  await standby.kill()
  await until('commits wait for any standby', async () => (await cluster.awaited()) === '*')
  const agents = new Agents(t, brokers)
  const t0 = Date.now()
  while (Date.now() - t0 < Number(process.env.STRICT ?? 0)) {
    const r = await get(`${brokers[0]!.url}/pod/info`)
    const w = await cluster.waiting().catch(String)
    t.diagnostic(`${Date.now() - t0} ${JSON.stringify([...agents.answers])} waiting ${w} read ${r.status}`)
    await new Promise((r) => setTimeout(r, 5000))
  }
  await until('every agent is answered', () => agents.refused >= 9)
  t.diagnostic(
    `strict, the standby is lost: a post is refused after ${seconds(agents.slowestMs)}; ${await cluster.waiting()} waiting`,
  )
  assert.deepEqual([...agents.answers.keys()], [503])
  standby.start()
  await cluster.untilStandby('strict', REJOIN_MS)
  await until('all brokers acknowledge again', () => agents.fewest >= ENOUGH)
  await agents.stop()
  await assertNothingLost(t, agents, cluster)
}

test('fail-overs with Patroni', { timeout: 1_800_000, skip: onlyFull || missingPackages() }, async (t) => {
  const { cluster, brokers } = await startAll(t)

  await t.test(`the primary is killed ${FAIL_OVERS} times: no acknowledged flow is lost`, async (t) => {
    const agents = new Agents(t, brokers)
    for (let number = 1; number <= FAIL_OVERS; number++) await failOver(t, number, agents, cluster)
    await agents.stop()
    await assertNothingLost(t, agents, cluster)
  })
  await t.test('a lost standby is done without, but not in strict mode', async (t) => {
    await loseStandby(t, brokers, cluster)
    await loseStandbyStrictly(t, brokers, cluster)
  })

  await t.test('posts are acknowledged in each mode', async (t) => {
    for (const mode of ['asynchronous', 'synchronous', 'strict'] as const) {
      await cluster.setMode(mode)
      await cluster.untilStandby(mode)
      t.diagnostic(`${mode}: ${await acknowledgedPerSecond(brokers)} posts of five flows acknowledged per second`)
    }
  })
})
