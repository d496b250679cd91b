/**
 * Fail-overs of the database: three brokers behind PgBouncer, HAProxy and two servers of Patroni, as docs/install.md
 * sets them up. Nothing that was acknowledged may be lost when the primary is killed.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Broker, get, post, startBroker } from '../support/broker.ts'
import { onlyFull } from '../support/depth.ts'
import { program } from '../support/program.ts'
import { becomes, until } from '../support/until.ts'
import { Agents, acknowledgedPerSecond, newFlows } from './failover/agents.ts'
import { Cluster } from './failover/cluster.ts'
import { patroniSettings } from './failover/document.ts'
import { missingPackages } from './failover/programs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BROKERS = 3
const FAIL_OVERS = 10
/** Time for the promotion, and until HAProxy, PgBouncer and the brokers have found the new primary. */
const FOUND_WITHIN_MS = 5_000
/** Posts that each broker acknowledges before and after each fault. */
const ENOUGH = 50
const OLD_FLOWS = 200
const MODES = ['asynchronous', 'synchronous', 'strict'] as const
const { ttl } = patroniSettings()

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

function succeed(command: string, args: string[], env: NodeJS.ProcessEnv = {}): void {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  assert.equal(status, 0, `${command}: ${stdout}${stderr}`)
}

/** Three brokers on a database that was moved to the cluster, as the document says. */
async function startAll(t: TestContext): Promise<{ cluster: Cluster; brokers: Broker[] }> {
  const brokers: Broker[] = []
  t.after(() => Promise.all(brokers.map((broker) => broker.stop())))
  const cluster = await Cluster.start(t)
  const old = await startBroker({ databaseUrl: cluster.oldUrl })
  assert.equal((await post(`${old.url}/pod/traffic/batch`, newFlows(OLD_FLOWS))).json, OLD_FLOWS)
  await old.stop()
  const migrate = [process.execPath, ...program('sql/migrate.ts')].map((word) => `'${word}'`).join(' ')
  succeed('bash', ['-e', '-c', cluster.commands(migrate)])

  const start = () => startBroker({ env: cluster.environment, databaseUrl: cluster.environment.DATABASE_URL! })
  brokers.push(...(await Promise.all(Array.from({ length: BROKERS }, start))))
  const stored = await cluster.asSuperuser((sql) => sql`select from traffic`)
  assert.equal(stored.length, OLD_FLOWS)
  return { cluster, brokers }
}

/** Only 200 and 503 were answered. The database has everything that was acknowledged, once. */
async function assertNothingLost(t: TestContext, agents: Agents, cluster: Cluster): Promise<void> {
  const { missing, repeated, olderPods } = await cluster.asSuperuser((sql) => agents.compare(sql))
  const answers = [...agents.answers].map(([answer, count]) => `${count} x ${answer}`).join(', ')
  t.diagnostic(`${agents.acknowledged.length} flows acknowledged, ${missing.length} missing; answers: ${answers}`)
  const found = { missing, repeated, olderPods, wrong: agents.wrong }
  assert.deepEqual(found, { missing: [], repeated: [], olderPods: [], wrong: [] })
  assert.deepEqual(
    [...agents.answers.keys()].filter((answer) => answer !== 200 && answer !== 503),
    [],
  )
}

/** Background jobs count each stored flow in one edge, over all fail-overs. */
async function assertCountedOnce(cluster: Cluster): Promise<void> {
  await cluster.asSuperuser((sql) =>
    becomes(async () => {
      const [row] = await sql<{ uncounted: number }[]>`
        select (select count(*)::int from traffic) - (select count(*)::int from flow_edge_pending)
               - (select coalesce(sum(flows), 0)::int from flow_edge) as uncounted`
      return row!.uncounted
    }, 0),
  )
}

/** Each broker acknowledges so many posts from now on. */
async function acknowledge(agents: Agents): Promise<void> {
  const enough = agents.fewest + ENOUGH
  await until('all brokers acknowledge posts', () => agents.fewest >= enough)
}

/**
 * Kills the primary, and starts it again once posts are acknowledged. With `isBehind` the standby gets nothing in the
 * last moments: commits wait for it when the primary dies.
 */
async function failOver(t: TestContext, name: string, agents: Agents, cluster: Cluster, isBehind: boolean) {
  await acknowledge(agents)
  const { primary, standby } = await cluster.roles()
  const [acknowledged, refused] = [agents.acknowledged.length, agents.refused]
  const senders = isBehind ? await cluster.stopSending() : []
  if (isBehind) await until('commits wait for the standby', async () => (await cluster.waiting()) > 0)
  agents.reset()
  await primary.kill(senders)
  await until('the standby is the primary', async () => (await cluster.primary()) === standby)
  await acknowledge(agents)
  const gapMs = agents.longestGapMs
  const killedAt = performance.now()
  primary.start()
  await cluster.untilStandby('synchronous')
  t.diagnostic(
    [
      `${name}, ${primary.name} to ${standby.name}${isBehind ? ', commits waiting' : ''}`,
      `${seconds(gapMs)} without an acknowledged post, slowest answer ${seconds(agents.slowestMs)}`,
      `${agents.acknowledged.length - acknowledged} flows acknowledged, ${agents.refused - refused} requests refused`,
      `back as standby after ${seconds(performance.now() - killedAt)}`,
    ].join('; '),
  )
  assert.ok(gapMs <= ttl * 1_000 + FOUND_WITHIN_MS, `${seconds(gapMs)} without an acknowledged post`)
}

/** Without a synchronous standby the primary acknowledges what only it has. */
async function loseFlows(t: TestContext, brokers: readonly Broker[], cluster: Cluster): Promise<void> {
  await cluster.setMode('asynchronous')
  await cluster.untilStandby('asynchronous')
  const agents = new Agents(t, brokers)
  await acknowledge(agents)
  const { primary, standby } = await cluster.roles()
  const senders = await cluster.stopSending()
  agents.reset()
  await acknowledge(agents)
  await primary.kill(senders)
  await until('the standby is the primary', async () => (await cluster.primary()) === standby)
  await acknowledge(agents)
  primary.start()
  await cluster.untilStandby('asynchronous')
  await agents.stop()
  const { missing } = await cluster.asSuperuser((sql) => agents.compare(sql))
  t.diagnostic(`asynchronous: ${missing.length} of ${agents.acknowledged.length} acknowledged flows are missing`)
  assert.ok(missing.length > 0)
}

/** Without strict mode the primary goes on alone. */
async function loseStandby(t: TestContext, brokers: readonly Broker[], cluster: Cluster): Promise<void> {
  await cluster.setMode('synchronous')
  await cluster.untilStandby('synchronous')
  const agents = new Agents(t, brokers)
  await acknowledge(agents)
  agents.reset()
  const { standby } = await cluster.roles()
  await standby.kill()
  await until('no commit waits for the standby', async () => (await cluster.awaited()) === '')
  await acknowledge(agents)
  t.diagnostic(`synchronous, the standby is lost: ${seconds(agents.longestGapMs)} without an acknowledged post`)
  standby.start()
  await cluster.untilStandby('synchronous')
  await agents.stop()
  await assertNothingLost(t, agents, cluster)
}

/** In strict mode nothing is acknowledged that only one server has. */
async function loseStandbyStrictly(t: TestContext, brokers: readonly Broker[], cluster: Cluster): Promise<void> {
  await cluster.setMode('strict')
  await cluster.untilStandby('strict')
  const { standby } = await cluster.roles()
  await standby.kill()
  await until('commits wait for any standby', async () => (await cluster.awaited()) === '*')
  const agents = new Agents(t, brokers)
  await until('each broker refuses a post', () => agents.refused >= BROKERS)
  const [acknowledged, slowestMs, waiting] = [agents.fewest, agents.slowestMs, await cluster.waiting()]
  t.diagnostic(`strict, the standby is lost: posts are refused after ${seconds(slowestMs)}; ${waiting} sessions wait`)
  for (const { url } of brokers) assert.equal((await get(`${url}/pod/traffic?limit=1`)).status, 200)
  assert.equal(acknowledged, 0)
  assert.deepEqual([...agents.answers.keys()], [503])
  standby.start()
  await cluster.untilStandby('strict')
  await acknowledge(agents)
  await agents.stop()
  await assertNothingLost(t, agents, cluster)
}

test('fail-overs with Patroni', { timeout: 1_800_000, skip: onlyFull || missingPackages() }, async (t) => {
  const { cluster, brokers } = await startAll(t)

  await t.test(`the primary is killed ${FAIL_OVERS} times: no acknowledged flow is lost`, async (t) => {
    const agents = new Agents(t, brokers)
    for (let number = 1; number <= FAIL_OVERS; number++)
      await failOver(t, `fail-over ${number}`, agents, cluster, number % 2 === 0)
    await agents.stop()
    await assertNothingLost(t, agents, cluster)
    const errors = brokers.flatMap(({ log }) => log.filter(({ level }) => level === 'error' || level === 'fatal'))
    assert.deepEqual(errors, [])
    await assertCountedOnce(cluster)
  })

  await t.test('an asynchronous standby that is behind loses acknowledged flows', (t) => loseFlows(t, brokers, cluster))

  await t.test('a lost standby: the primary goes on alone', (t) => loseStandby(t, brokers, cluster))

  await t.test('a lost standby in strict mode: posts are refused until it is back', (t) =>
    loseStandbyStrictly(t, brokers, cluster),
  )

  await t.test('posts are acknowledged in all modes', async (t) => {
    const rates = new Map(MODES.map((mode) => [mode, { one: 0, twelve: 0 }]))
    for (const mode of [...MODES, ...MODES]) {
      await cluster.setMode(mode)
      await cluster.untilStandby(mode)
      const best = rates.get(mode)!
      best.one = Math.max(best.one, await acknowledgedPerSecond(brokers, 1))
      best.twelve = Math.max(best.twelve, await acknowledgedPerSecond(brokers, 12))
    }
    for (const [mode, { one, twelve }] of rates)
      t.diagnostic(`${mode}: ${one} posts of five flows per second one by one, ${twelve} with twelve at once`)
  })
})
