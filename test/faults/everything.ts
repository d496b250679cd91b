/**
 * All faults at once, in random order, against three brokers behind PgBouncer: run by hand,
 * `npx tsx test/faults/everything.ts --minutes 30 --seed 1`. Starts and ends all processes itself (PostgreSQL,
 * PgBouncer, brokers, an evaluator, agents, readers, probes). It checks that no acknowledged row is lost and none is
 * stored twice, that the only 5xx is 503 with Retry-After, that `/livez` answers within a second, that brokers are
 * healthy after each round of faults, that memory is bounded, and that no request fails in the quiet minute at the
 * end. Prints one line for each fault; exits with 1 if a check failed.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Agents, Readers } from './everything/agents.ts'
import { Broker } from './everything/broker.ts'
import { Client } from './everything/client.ts'
import { startEvaluator } from './everything/evaluator.ts'
import { type Scene, storm } from './everything/faults.ts'
import { Ledger } from './everything/ledger.ts'
import { Liveness } from './everything/liveness.ts'
import { Server, startPooler } from './everything/postgres.ts'
import { startLossyProxy } from './everything/proxy.ts'
import { createStealMeter, Dice, Recorder } from './everything/record.ts'

const BROKERS = 3
const READERS = 4
/** Length of a round of faults. After it all faults end, and the brokers must become healthy. */
const ROUND_S = [20, 50] as const
const FAULTS_AT_ONCE = [2, 8] as const
const HEALTHY_WITHIN_MS = 60_000
const MAX_RESIDENT_MIB = 400
const CHECK_EVERY_MS = 15_000
/** Time for requests under way when the last fault ended: the timeout of a statement, and the pause of an agent. */
const SETTLE_MS = 40_000
const STOP_WITHIN_MS = 60_000

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    quiet: { type: 'string', default: '60' },
  },
})
const built = spawnSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' })
if (built.status !== 0) process.exit(1)

const record = new Recorder()
const dice = new Dice(Number(options.seed))
/** Separate random numbers, so that a seed gives the same faults. */
const restarts = new Dice(Number(options.seed) + 1)
const steal = createStealMeter()
const ends: (() => Promise<unknown> | unknown)[] = []
process.on('uncaughtException', (error) => record.print(`(this script: ${error.stack})`))
process.on('unhandledRejection', (error) => record.print(`(this script: ${(error as Error)?.stack ?? error})`))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end().then(() => process.exit(1)))

async function end(): Promise<void> {
  for (const one of ends.splice(0).reverse()) {
    try {
      const text = await one()
      if (typeof text === 'string') record.violation('everything ends', text)
    } catch (error) {
      record.violation('everything ends', String(error))
    }
  }
}

async function untilHealthy(client: Client, limitMs: number): Promise<void> {
  const limit = Date.now() + limitMs
  const missing = new Set(client.brokers)
  const replies = new Map<Broker, string>()
  while (missing.size > 0 && Date.now() < limit) {
    for (const broker of missing) {
      const { status, text } = await client.send('GET', '/health', null, { broker, timeoutMs: 5_000, own: false })
      replies.set(broker, `${status} ${text}`)
      if (status === 200) missing.delete(broker)
    }
    await delay(200)
  }
  for (const broker of missing) {
    record.violation(
      'health comes back',
      `${broker.name} after ${limitMs / 1_000} s: ${replies.get(broker)}; ${broker.log.slice(-2).join(' ')}`,
      Date.now() - limitMs,
    )
  }
}

async function run(): Promise<void> {
  record.print(
    `seed ${options.seed}, ${options.minutes} min, Node ${process.version}, load ${loadavg()[0]!.toFixed(1)}`,
  )
  const folder = mkdtempSync(join(tmpdir(), 'broker-everything-'))
  chmodSync(folder, 0o755)
  ends.push(() => rmSync(folder, { recursive: true, force: true }))

  const server = await Server.start(folder, record)
  ends.push(async () => {
    const late = await server.process.end('SIGINT')
    await delay(500)
    const left = server.leftovers()
    for (const pid of left) process.kill(pid, 'SIGKILL')
    return late ?? (left.length > 0 ? `processes of PostgreSQL were left: ${left.join(', ')}` : null)
  })
  const back = await startLossyProxy(server.port)
  ends.push(() => back.close())
  const pooler = await startPooler(folder, back.port, record)
  ends.push(() => pooler.process.end('SIGINT'))
  const front = await startLossyProxy(pooler.port)
  ends.push(() => front.close())
  const evaluator = await startEvaluator()
  ends.push(() => evaluator.close())

  const env = {
    DATABASE_URL: `postgres://broker@127.0.0.1:${front.port}/broker`,
    DB_PREPARE: 'false',
    EVALUATOR_URL: evaluator.url,
    PEER_LATE_RESOLVE_INTERVAL_SECS: '5',
  }
  const brokers: Broker[] = []
  for (let number = 1; number <= BROKERS; number++) {
    const broker = await Broker.create(number, env, restarts, record)
    brokers.push(broker)
    ends.push(() => broker.process.end('SIGTERM'))
    broker.process.start()
    // The first broker makes the schema.
    while (!broker.process.isReady) await delay(50)
  }
  const client = new Client(brokers, record)
  ends.push(() => client.end())
  await untilHealthy(client, HEALTHY_WITHIN_MS)
  const liveness = await Liveness.start(record, brokers)
  ends.push(() => liveness.end())

  const ledger = new Ledger(record)
  const agents = new Agents(client, ledger)
  agents.start()
  const readers = new Readers(client, READERS)
  const incarnations = new Map<string, number>()
  const watch = setInterval(() => {
    for (const broker of brokers) {
      const peak = broker.sampleMemory()
      const key = `${broker.name}, process ${broker.process.pid}`
      if (peak > MAX_RESIDENT_MIB && !incarnations.has(key)) {
        incarnations.set(key, peak)
        record.violation(
          `resident memory within ${MAX_RESIDENT_MIB} MiB`,
          `${key}: ${peak.toFixed(0)} MiB`,
          Date.now() - 5_000,
        )
      }
    }
  }, 500)
  ends.push(() => clearInterval(watch))
  let checking = true
  const checks = (async () => {
    while (checking) {
      await delay(CHECK_EVERY_MS)
      const checked = await server.direct((sql) => ledger.check(sql)).catch((error) => `not now: ${error.message}`)
      record.print(
        `${checked} flows checked; ${ledger.acknowledgedFlows} acknowledged; stolen ${steal()}, load ${loadavg()[0]!.toFixed(1)}`,
      )
    }
  })()

  const scene: Scene = { record, dice, server, pooler: pooler.process, brokers, front, back, client }
  const until = Date.now() + Number(options.minutes) * 60_000
  let rounds = 0
  while (Date.now() < until) {
    await storm(scene, Math.min(until, Date.now() + dice.between(...ROUND_S) * 1_000), dice.int(...FAULTS_AT_ONCE))
    rounds++
    const since = Date.now()
    await untilHealthy(client, HEALTHY_WITHIN_MS)
    record.print(`round ${rounds} is over; health was back after ${((Date.now() - since) / 1_000).toFixed(1)} s`)
  }

  record.print('the storm is over; waiting for what was on its way')
  await delay(SETTLE_MS)
  record.quiet = true
  record.print(`quiet for ${options.quiet} s: everything is to be answered 200`)
  await delay(Number(options.quiet) * 1_000)
  await readers.stop()
  const stopped = await Promise.race([agents.stop().then(() => true), delay(STOP_WITHIN_MS, false, { ref: false })])
  if (!stopped)
    record.violation('every agent gets its answer', `some had none ${STOP_WITHIN_MS / 1_000} s after the end`)
  record.quiet = false
  checking = false
  await checks

  await readBack(client, ledger)
  const { rows, claimed } = await server.direct((sql) => ledger.checkWhole(sql), 'broker', 300_000)

  record.print('')
  record.print(`${record.faults.length} faults in ${rounds} rounds; answers lost on purpose: ${front.lost + back.lost}`)
  record.print(
    `${ledger.acknowledgedFlows} flows acknowledged, ${claimed} of them said to be stored anew, ${rows} rows; ${agents.answered} posts answered 200; ${evaluator.asked} asked of the evaluator`,
  )
  record.print(
    `answers: ${[...record.statuses]
      .sort()
      .map(([status, count]) => `${status} x ${count}`)
      .join(', ')}`,
  )
  for (const line of liveness.summary()) record.print(line)
  record.print(
    `/livez asked while down or stopped: ${liveness.disturbed}; over the limit while the machine was (not counted): ${liveness.noisy}`,
  )
  for (const broker of brokers) {
    const said = [...broker.said].map(([text, count]) => `${count} x ${text}`).join('; ')
    record.print(`${broker.name}: ${broker.peakMib.toFixed(0)} MiB at its peak; logged ${said || 'no warning'}`)
  }
}

/** Checks that every broker returns the versions acknowledged last. */
async function readBack(client: Client, ledger: Ledger): Promise<void> {
  for (const broker of client.brokers) {
    // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the path.
    const read = async (path: string, expected: (answer: any) => boolean) => {
      const { status, text, requestId } = await client.send('GET', path, null, { broker })
      if (status !== 200 || !expected(JSON.parse(text))) {
        record.violation(
          'what was acknowledged last is read',
          `${broker.name}: GET ${path}: ${status} ${text.slice(0, 300)}, request ${requestId}`,
        )
      }
    }
    for (const [name, { acknowledged }] of ledger.pods) {
      if (acknowledged > 0) await read(`/pod/name/${name}`, (pod) => pod.pod_identity === `v${acknowledged}`)
    }
    for (const [address, { acknowledged }] of ledger.services) {
      if (acknowledged > 0)
        await read(`/svc/ip/${address}`, (service) => service.svc_name === `service-${acknowledged}`)
    }
    for (const [name, names] of ledger.syscalls) {
      await read(`/pod/syscalls/${name}`, (records) => {
        const stored = new Set(records[0].syscalls.split(','))
        return [...names].every((one) => stored.has(one))
      })
    }
  }
}

try {
  await run()
} catch (error) {
  record.violation('the run comes to its end', (error as Error).stack ?? String(error))
}
await end()
for (const [rule, count] of record.violations) record.print(`VIOLATED ${count} x ${rule}`)
record.print(record.violations.size === 0 ? 'everything held' : 'NOT everything held')
process.exit(record.violations.size === 0 ? 0 : 1)
