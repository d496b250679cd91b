/**
 * A rolling update of a Deployment (`maxSurge: 1`, `maxUnavailable: 0`): two brokers behind a Service are replaced one
 * after the other, while agents post to the Service and readers use the edge proxy.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startBalancer } from '../edge/balancer.ts'
import { spawnEdge } from '../edge/support.ts'
import { TOKENS } from '../support/app.ts'
import { type Broker, flow, type Reply, request, startBroker } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { undisturbed } from '../support/undisturbed.ts'
import { until } from '../support/until.ts'

/** Half of the clients keep their connection. */
const AGENTS = 4
const READERS = 4
const BATCH_FLOWS = 5
/** Requests of each client after each step. */
const ENOUGH = depth(20, 60)
/** Pause between the requests of a client. */
const PAUSE_MS = depth(50, 0)
/** The grace period of a pod. */
const GRACE_MS = 30_000
/** Pause of readers whose connection is idle when its broker closes it. */
const SELDOM_MS = 700
const EXPORT = '/api/seccomp/profiles/shop/Deployment/web/export'
const INGEST = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` }

let nextFlow = 1

/** Sends one request after the other until it is stopped. Failed requests are not repeated. */
class Client {
  readonly name: string
  readonly failures: string[] = []
  /** Uuids of acknowledged flows. */
  readonly stored: string[] = []
  count = 0
  readonly done: Promise<void>
  #isStopped = false

  constructor(t: TestContext, name: string, once: (client: Client) => Promise<string | null>, pauseMs: number) {
    this.name = name
    this.done = this.#run(once, pauseMs)
    t.after(() => this.stop())
  }

  async #run(once: (client: Client) => Promise<string | null>, pauseMs: number): Promise<void> {
    while (!this.#isStopped) {
      const failure = await once(this).catch((error: NodeJS.ErrnoException) => error.code ?? String(error))
      this.count++
      if (failure !== null) this.failures.push(`${this.name}: ${failure}`)
      if (pauseMs > 0) await delay(pauseMs)
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.done
  }
}

const failed = ({ status, text }: Reply, ...expected: number[]) =>
  expected.includes(status) ? null : `${status} ${text.slice(0, 200)}`
const connectionOf = (keeps: boolean) => (keeps ? { agent: new http.Agent({ keepAlive: true, maxSockets: 1 }) } : {})

function agentOf(t: TestContext, url: string, isBatch: boolean, keeps: boolean): Client {
  const connection = connectionOf(keeps)
  return new Client(
    t,
    `agent${isBatch ? ' of batches' : ''}${keeps ? '' : ' anew'}`,
    async (client) => {
      const flows = Array.from({ length: isBatch ? BATCH_FLOWS : 1 }, () => flow(nextFlow++))
      const body = JSON.stringify(isBatch ? flows : flows[0])
      const reply = await request(`${url}/pod/traffic${isBatch ? '/batch' : ''}`, {
        method: 'POST',
        body,
        headers: INGEST,
        ...connection,
      })
      const isStored =
        reply.status === 200 && (isBatch ? reply.json === flows.length : reply.json?.uuid === flows[0]!.uuid)
      if (reply.status === 200) client.stored.push(...flows.map(({ uuid }) => uuid))
      return isStored ? null : `${reply.status} ${reply.text.slice(0, 200)}`
    },
    PAUSE_MS,
  )
}

function readerOf(t: TestContext, url: string, keeps: boolean, pauseMs: number): Client {
  const connection = connectionOf(keeps)
  return new Client(
    t,
    `reader${keeps ? '' : ' anew'}${pauseMs === SELDOM_MS ? ' seldom' : ''}`,
    async ({ count }) => {
      if (count % 4 === 0)
        return failed(await request(`${url}/api/pod/traffic?limit=${depth(200, 2000)}`, connection), 200)
      if (count % 4 === 1) return failed(await request(`${url}/api/pod/info`, { method: 'HEAD', ...connection }), 200)
      if (count % 4 === 2) return failed(await request(`${url}/api/pod/name/nobody`, connection), 404)
      // The workload does not exist: the broker must answer 404.
      return failed(await request(url + EXPORT, { method: 'POST', body: '{}', ...connection }), 404)
    },
    pauseMs,
  )
}

async function replaceBrokers(t: TestContext): Promise<void> {
  const database = await createTestDatabase()
  const start = () => startBroker({ databaseUrl: database.url, env: { ...TOKENS, NODE_ENV: 'production' } })
  const balancer = await startBalancer()
  const listed = async (broker: Broker) => {
    const endpoint = balancer.add(broker)
    await until('the Service has it', () => endpoint.isListed)
    return endpoint
  }
  const old = await Promise.all([start(), start()])
  await Promise.all(old.map(listed))
  const edge = await spawnEdge({
    NODE_ENV: 'production',
    BROKER_URL: balancer.url,
    BROKER_TOKEN_READ: TOKENS.BROKER_TOKEN_READ,
  })

  const clients = [
    ...Array.from({ length: AGENTS }, (_, i) => agentOf(t, balancer.url, i < AGENTS / 2, i % 2 === 0)),
    ...Array.from({ length: READERS }, (_, i) =>
      readerOf(t, edge.url, i % 2 === 0, i < READERS / 2 ? PAUSE_MS : SELDOM_MS),
    ),
  ]
  const busy = async () => {
    const before = clients.map(({ count }) => count)
    const enough = (client: Client) => (client.name.includes('seldom') ? depth(1, 3) : ENOUGH)
    await until('all have been busy', () => clients.every((client, i) => client.count >= before[i]! + enough(client)))
  }
  await busy()

  const current: Broker[] = []
  for (const one of old) {
    const replacement = await start()
    const endpoint = await listed(replacement)
    current.push(replacement)
    await busy()
    const signalledAt = performance.now()
    one.kill('SIGTERM')
    assert.deepEqual(await one.exited, { code: 0, signal: null })
    t.diagnostic(`a broker took ${Math.round(performance.now() - signalledAt)} ms to leave`)
    assert.ok(performance.now() - signalledAt < GRACE_MS, 'it would have been killed')
    balancer.remove(one)
    await busy()
    assert.ok(endpoint.connections > 0, 'the new one was not asked')
  }

  for (const client of clients) await client.stop()
  t.diagnostic(clients.map(({ name, count }) => `${count} ${name}`).join(', '))
  assert.deepEqual(
    clients.flatMap(({ failures }) => failures),
    [],
  )
  assert.equal(balancer.refused, 0)
  const metrics = (await request(`${edge.admin}/metrics`)).text
  t.diagnostic(`sent once more by the edge: ${/^edge_upstream_retries_total (\d+)$/m.exec(metrics)?.[1]}`)
  assert.ok(!/^edge_upstream_errors_total\{/m.test(metrics), metrics.match(/^edge_upstream_errors_total.*/gm)?.join())
  const stored = clients.flatMap((client) => client.stored)
  const rows = await database.adminSql<{ uuid: string }[]>`select uuid from traffic`
  const known = new Set(rows.map(({ uuid }) => uuid))
  assert.deepEqual(
    stored.filter((uuid) => !known.has(uuid)),
    [],
  )
  assert.equal(rows.length, stored.length, 'a flow was stored that nobody was told of')
  for (const broker of current) assert.deepEqual(await broker.stop(), { code: 0, signal: null })
}

test(
  'brokers are replaced under load: no request fails, no acknowledged flow is lost',
  { timeout: 900_000, skip: onlyFull },
  (t) => undisturbed(() => replaceBrokers(t)),
)

async function replaceEdge(t: TestContext): Promise<void> {
  const database = await createTestDatabase()
  const broker = await startBroker({ databaseUrl: database.url, env: TOKENS })
  const start = () =>
    spawnEdge({ NODE_ENV: 'production', BROKER_URL: broker.url, BROKER_TOKEN_READ: TOKENS.BROKER_TOKEN_READ })
  const balancer = await startBalancer()
  const first = await start()
  const one = balancer.add(first)
  await until('the Service has it', () => one.isListed)
  const clients = [readerOf(t, balancer.url, true, PAUSE_MS), readerOf(t, balancer.url, false, PAUSE_MS)]
  const busy = async () => {
    const before = clients.map(({ count }) => count)
    await until('all have been busy', () => clients.every(({ count }, i) => count >= before[i]! + ENOUGH))
  }
  await busy()
  const second = await start()
  const other = balancer.add(second)
  await until('the Service has it', () => other.isListed)
  first.kill('SIGTERM')
  assert.deepEqual(await first.exited, { code: 0, signal: null })
  balancer.remove(first)
  await busy()
  for (const client of clients) await client.stop()
  assert.deepEqual(
    clients.flatMap(({ failures }) => failures),
    [],
  )
}

test('the edge proxy is replaced under load: no request fails', { timeout: 900_000, skip: onlyFull }, (t) =>
  undisturbed(() => replaceEdge(t)),
)
