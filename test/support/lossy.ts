/** The app with a proxy before its database, and an evaluator that records requests. */
import { after } from 'node:test'
import { pino } from 'pino'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { type DatabaseOptions, openDatabase } from '../../lib/db/index.ts'
import { PATIENCE_MS } from './app.ts'
import { holdClock } from './clock.ts'
import { createTestDatabase } from './database.ts'
import { type Fate, startProxy } from './proxy.ts'
import { startStub } from './stub.ts'
import { until } from './until.ts'

export interface Answered {
  status: number
  text: string
}

/**
 * `options` are for the database, `env` for the app. Everything ends with the test file, and `performance.now` stands
 * still, so that a lost call is always retried, however long the first attempt took.
 */
export async function startLossyApp(options: Partial<DatabaseOptions> = {}, env: NodeJS.ProcessEnv = {}) {
  holdClock()
  const home = await createTestDatabase()
  const proxy = await startProxy(home.connection)
  const evaluator = await startStub(() => ({ json: { results: [] } }))
  const log = pino({ level: 'silent' })
  const db = openDatabase({
    connection: proxy.connection,
    poolMax: 8,
    statementTimeoutMs: 30_000,
    waitMs: PATIENCE_MS,
    prepare: true,
    applicationName: 'lossy',
    log,
    ...options,
  })
  const config = loadConfig({
    NODE_ENV: 'test',
    EVALUATOR_URL: evaluator.url,
    AUDIT_QUEUE_CAPACITY: '50000',
    AUDIT_EVAL_TIMEOUT_MS: String(PATIENCE_MS),
    ...env,
  })
  const deps = buildDeps({ config, db, log })
  const app = createApp(deps, routes)
  after(async () => {
    await db.end(1_000)
    await proxy.close()
    await home.drop()
  })

  /** Statements, to find the one with a given text. */
  let watched = ''
  let fates: Fate[] = []
  proxy.judge((sql) => (sql.includes(watched) ? (fates.shift() ?? 'answered') : 'answered'))

  return {
    app,
    db,
    deps,
    proxy,
    sql: home.adminSql,
    /** Sets the fates of the next statements whose text contains `words`, one each. */
    lose(words: string, ...next: Fate[]): void {
      watched = words
      fates = next
    },
    /** Fates that no statement has met yet. */
    get toCome(): number {
      return fates.length
    },
    async post(path: string, body: unknown, token?: string): Promise<Answered> {
      const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
      const answer = await app.request(path, { method: 'POST', headers, body: JSON.stringify(body) })
      return { status: answer.status, text: await answer.text() }
    },
    /** Number of flows sent to the evaluator so far, by outcome. */
    async counted(): Promise<{ inserted: number; duplicate: number }> {
      const { values } = await deps.metrics.flows.get()
      const of = (outcome: string) => values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0
      return { inserted: of('inserted'), duplicate: of('duplicate') }
    },
    /** How often the evaluator was asked about each flow, by pod, after all flows were sent. */
    async heard(): Promise<Map<string, number>> {
      const { audit } = deps
      await until(
        'the evaluator has heard all',
        () => audit!.waiting === 0 && audit!.availablePermits === config.auditInflightPermits,
      )
      const times = new Map<string, number>()
      for (const { path, body } of evaluator.heard) {
        if (path !== '/evaluate') continue
        const { srcPodName, dstPodName } = JSON.parse(body)
        const pod = srcPodName ?? dstPodName
        times.set(pod, (times.get(pod) ?? 0) + 1)
      }
      return times
    },
  }
}

export type LossyApp = Awaited<ReturnType<typeof startLossyApp>>
