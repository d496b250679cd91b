/**
 * A database that is being seeded. Posts go through the whole app without a socket, so it contains what a broker would
 * store.
 */

import { pino } from 'pino'
import type postgres from 'postgres'
import { routes } from '../../../../handlers/router.ts'
import type { Job } from '../../../../jobs/job.ts'
import { createApp } from '../../../../lib/app/app.ts'
import { buildDeps } from '../../../../lib/app/build.ts'
import { type Config, loadConfig } from '../../../../lib/config/index.ts'
import type { Connection } from '../../../../lib/db/driver-options.ts'
import { type Database, openDatabase } from '../../../../lib/db/index.ts'
import { openPool } from '../../../../lib/db/open-pool.ts'
import type { Log } from '../../../../lib/observability/log.ts'

const AT_ONCE = 128
/** Large bodies wait for memory, and are refused if they wait for long, as on a busy machine. */
const LARGE_AT_ONCE = 7
const LARGE_CHARS = 65_536
const END_MS = 2_000
const SECOND_MS = 1_000

/** Supply-chain routes need a token of their own; with it set, agents need one, too. */
const [SCANNER, AGENT] = ['scanner-of-the-seed', 'agent-of-the-seed']
const ofScanners = /^\/(images|vulnerabilities|vex)\b/

/** Long time limits, because the machine is busy while it seeds. */
const SETTINGS = {
  ...{ NODE_ENV: 'test', LOG_LEVEL: 'error', BROKER_READ_ACQUIRE_WAIT_MS: '60000', POD_TRAFFIC_RETENTION_DAYS: '30' },
  ...{ BROKER_TOKEN_SUPPLYCHAIN: SCANNER, BROKER_TOKEN_INGEST: AGENT },
}

export interface Site {
  readonly sql: postgres.Sql
  readonly db: Database
  readonly config: Config
  readonly log: Log
  /** Sends a body; throws if it is not accepted. */
  send(method: string, path: string, body: unknown): Promise<void>
  post(path: string, body: unknown): Promise<void>
  /** Posts many bodies, several at a time. */
  postAll(path: string, bodies: readonly unknown[]): Promise<void>
  runJob(job: Job): Promise<void>
  /** Times before the start of the seed: `ago` in naive UTC, as agents send them, `zonedAgo` in RFC 3339. */
  ago(secs: number): string
  zonedAgo(secs: number): string
  end(): Promise<void>
}

export async function openSite(connection: Connection): Promise<Site> {
  const log = pino({ level: 'error' }, process.stderr)
  const config = loadConfig(SETTINGS)
  const db = openDatabase({
    ...{ connection, poolMax: 8, statementTimeoutMs: 120_000, waitMs: 120_000, prepare: true },
    ...{ applicationName: 'console-seed', log },
  })
  const app = createApp(buildDeps({ config, db, log }), routes)
  const sql = openPool(connection, { max: 2, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  const now = Date.now()
  const zonedAgo = (secs: number) => new Date(now - secs * SECOND_MS).toISOString()

  async function send(method: string, path: string, body: unknown): Promise<void> {
    const token = ofScanners.test(path) ? SCANNER : AGENT
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const answer = await app.request(path, { method, headers, body: JSON.stringify(body) })
    const text = await answer.text()
    // Some routes accept a body but drop its invalid entries.
    if (answer.status >= 300 || /"dropped":[1-9]/.test(text))
      throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  }

  async function postAll(path: string, bodies: readonly unknown[]): Promise<void> {
    let next = 0
    const work = async () => {
      while (next < bodies.length) await send('POST', path, bodies[next++])
    }
    const isLarge = JSON.stringify(bodies[0] ?? null).length > LARGE_CHARS
    await Promise.all(Array.from({ length: isLarge ? LARGE_AT_ONCE : AT_ONCE }, work))
  }

  return {
    ...{ sql, db, config, log, send, postAll, zonedAgo },
    post: (path, body) => send('POST', path, body),
    ago: (secs) => zonedAgo(secs).slice(0, -1),
    async runJob(job) {
      const { outcome } = await job.run({ config, db, log, signal: new AbortController().signal })
      if (outcome !== 'done') throw new Error(`job ${job.name}: ${outcome}`)
    },
    async end() {
      await sql.end({ timeout: 1 })
      await db.end(END_MS)
    },
  }
}
