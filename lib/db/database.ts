/**
 * The database as the rest of the service sees it: four gates, so that none of ingest, reads, jobs and probes starves
 * the others.
 */
import type postgres from 'postgres'
import type { Log } from '../observability/log.ts'
import { RateLimitedLog } from '../observability/rate-limited-log.ts'
import type { Connection } from './driver-options.ts'
import { causeOf, DatabaseRefused, type DatabaseUnavailable } from './errors.ts'
import type { GateName } from './gate.ts'
import { Pool, type PoolStats } from './pool.ts'
import type { Sql, Statement } from './statement.ts'

type Rows = readonly postgres.MaybeRow[]

/**
 * Runs one statement. The callback builds the query and must have no other effect: it is called again for each further
 * attempt. Its `isOutcomeUnknown` is true when the server may have carried out an earlier attempt whose answer was
 * lost; `isOutcomeUnknown(error)` of errors.ts says the same of a rejection.
 *
 * Rejects with DatabaseUnavailable (no connection, no room, silence; as DatabaseRefused: a full disk, a missing
 * privilege), with DatabaseBusy (cancelled, deadlock, serialization), or with the driver's error for a fault of the
 * statement itself.
 */
export interface Gate {
  <T extends Rows>(statement: (sql: Sql, isOutcomeUnknown: boolean) => postgres.PendingQuery<T>): Promise<T>
  /** Rows of Buffers, as `.raw()` returns them. */
  <T extends Rows>(
    statement: (sql: Sql, isOutcomeUnknown: boolean) => postgres.PendingRawQuery<T>,
  ): Promise<(Buffer | null)[][]>
  /** First column of the first row as the bytes of the database; null for SQL NULL and for no row. */
  json<T extends Rows>(
    statement: (sql: Sql, isOutcomeUnknown: boolean) => postgres.PendingQuery<T>,
  ): Promise<Buffer | null>
  /**
   * Waits at most `ms`, then cuts the connection and rejects with DatabaseUnavailable. For statements that end sooner
   * by themselves.
   */
  within<T extends Rows>(ms: number, statement: (sql: Sql) => postgres.PendingQuery<T>): Promise<T>
  /**
   * For statements that must not be repeated: makes a single attempt, so the outcome is unknown after a lost
   * connection. Waits at most `ms` for a slot, then rejects with DatabaseUnavailable.
   */
  once<T extends Rows>(ms: number, statement: (sql: Sql) => postgres.PendingQuery<T>): Promise<T>
  readonly stats: PoolStats
}

export interface DatabaseStats {
  generation: number
  /** Connections over all gates: the limit, the open ones, and those of them that are idle. */
  max: number
  open: number
  idle: number
  gates: Record<GateName, PoolStats>
}

export interface Database {
  /** Writes. */
  readonly ingest: Gate
  /** Look-ups and lists. */
  readonly read: Gate
  /** Probes and metrics: statements that end within a moment. */
  readonly probe: Gate
  /** Jobs: statements that may take long. */
  readonly job: Gate
  /** Counts the times that a gate lost all its connections. */
  readonly generation: number
  /** Called whenever `generation` grows: facts learnt over the old connections may not hold on the new ones. */
  onPoolReplaced(listener: (gate: GateName) => void): void
  /** Waits up to `timeoutMs` (default 5 s) for statements in flight, then cuts them. Never rejects. */
  end(timeoutMs?: number): Promise<void>
  stats(): DatabaseStats
}

export interface DatabaseOptions {
  connection: Connection
  /** Connections over all gates; at least four are used. */
  poolMax: number
  /** 0 is no end. */
  statementTimeoutMs: number
  /** False behind a transaction pooler: no prepared statements and none of the session settings that poolers refuse. */
  prepare: boolean
  applicationName: string
  log: Log
  /** Further attempts after a deadlock, a serialization failure or a lost connection: 2. */
  retries?: number
  /** Longest wait at a full gate: 5 s, at that of jobs ten minutes. */
  waitMs?: number | undefined
  /** Most statements waiting at one gate: 1024. */
  maxQueue?: number
  /** Silence after which a pool is given up: `statementTimeoutMs` + 1.5 s, or 60 s without a statement timeout. */
  deadlineMs?: number
}

const RETRIES = 2
const WAIT_MS = 5_000
/** Statements of jobs may take long, and a pass that fails waits for its whole interval: hours for some. */
const JOB_WAIT_MS = 10 * 60_000
const MAX_QUEUE = 1_024
const END_TIMEOUT_MS = 5_000
// An ordinary slow statement ends as 57014 before this; only silence reaches it.
const DEADLINE_MARGIN_MS = 1_500
const DEADLINE_WITHOUT_TIMEOUT_MS = 60_000
/**
 * From this many connections on, jobs get two, so that a long job does not hold up the others. A job that uses both gives
 * each back after a batch.
 */
const JOB_PAIR_FROM = 8

/** Connections per gate; reads get the odd one. */
export function splitPool(poolMax: number): Record<GateName, number> {
  const probe = 1
  const job = poolMax >= JOB_PAIR_FROM ? 2 : 1
  const rest = Math.max(2, poolMax - probe - job)
  const ingest = Math.floor(rest / 2)
  return { ingest, read: rest - ingest, probe, job }
}

/** Opens no connection: each gate connects when it is first used, and again after each loss. */
export function openDatabase(options: DatabaseOptions): Database {
  const { connection, statementTimeoutMs, log } = options
  let generation = 0
  const listeners: ((gate: GateName) => void)[] = []
  const renewed = (gate: GateName) => {
    generation++
    log.debug({ gate, generation }, 'database connections renewed')
    // Probes must test the server that requests now reach, which may be another one.
    if (gate !== 'probe') pools.probe.renew()
    for (const listener of listeners) {
      try {
        listener(gate)
      } catch (error) {
        log.warn({ gate, err: error }, 'a listener to database pools failed')
      }
    }
  }

  const warnings = new RateLimitedLog(log)
  const slots = splitPool(options.poolMax)
  const open = (gate: GateName) =>
    new Pool({
      gate,
      connection,
      slots: slots[gate],
      settings: {
        statementTimeoutMs,
        prepare: options.prepare,
        applicationName: options.applicationName,
        onnotice: ({ severity, code, message }) => log.debug({ gate, severity, code, message }, 'database notice'),
      },
      deadlineMs:
        options.deadlineMs ??
        (statementTimeoutMs > 0 ? statementTimeoutMs + DEADLINE_MARGIN_MS : DEADLINE_WITHOUT_TIMEOUT_MS),
      retries: options.retries ?? RETRIES,
      waitMs: options.waitMs ?? (gate === 'job' ? JOB_WAIT_MS : WAIT_MS),
      maxQueue: options.maxQueue ?? MAX_QUEUE,
      log,
      onRenewed: () => renewed(gate),
      onUnavailable: (error) => noteUnavailable(warnings, error),
    })

  const pools = { ingest: open('ingest'), read: open('read'), probe: open('probe'), job: open('job') }
  const all = Object.values(pools)
  return {
    ingest: asGate(pools.ingest),
    read: asGate(pools.read),
    probe: asGate(pools.probe),
    job: asGate(pools.job),
    get generation() {
      return generation
    },
    onPoolReplaced: (listener) => {
      listeners.push(listener)
    },
    end: async (timeoutMs = END_TIMEOUT_MS) => {
      await Promise.all(all.map((pool) => pool.end(timeoutMs)))
      warnings.end()
    },
    stats: () => {
      const gates = {
        ingest: pools.ingest.stats,
        read: pools.read.stats,
        probe: pools.probe.stats,
        job: pools.job.stats,
      }
      const sum = (pick: (stats: PoolStats) => number) =>
        Object.values(gates).reduce((total, stats) => total + pick(stats), 0)
      return { generation, max: sum((s) => s.slots), open: sum((s) => s.open), idle: sum((s) => s.idle), gates }
    },
  }
}

function asGate(pool: Pool): Gate {
  const run = (statement: Statement) => pool.run(statement, false)
  return Object.defineProperty(
    Object.assign(run, {
      json: (statement: Statement) => pool.run<Buffer | null>(statement, true),
      within: (ms: number, statement: Statement) => pool.within(ms, statement),
      once: (ms: number, statement: Statement) => pool.once(ms, statement),
    }),
    'stats',
    { get: () => pool.stats, enumerable: true },
  ) as unknown as Gate
}

/** Logs, at most once a minute for each code, that statements fail for want of a working database. */
export function noteUnavailable(warnings: RateLimitedLog, error: DatabaseUnavailable): void {
  const { code } = error
  const { cause, remedy } = causeOf(code)
  const subject = error instanceof DatabaseRefused ? 'database refuses' : 'database unavailable'
  warnings.note(`${subject}: ${cause} (${code}); ${remedy}`, { statements: 1 }, { code })
}

/** The server's share of the caller's time. The rest is for the way there and back. */
const SERVER_SHARE = 0.8

type LimitedCall = (ms: number, statement: (sql: Sql) => postgres.PendingQuery<postgres.Row[]>) => Promise<unknown>

/**
 * The rows of a constant statement that the server itself cancels in time, so that a locked table neither holds the
 * connection nor keeps the server busy after the connection was cut. Two statements in one simple message are one
 * transaction, so the limit holds behind a transaction pooler too. `call` is `within` or `once` of a gate.
 */
export async function queryWithTimeout<Row>(call: LimitedCall, ms: number, text: string): Promise<readonly Row[]> {
  const limitMs = Math.max(1, Math.round(ms * SERVER_SHARE))
  const results = await call(ms, (sql) => sql.unsafe(`set local statement_timeout = ${limitMs}; ${text}`))
  return (results as [unknown, Row[]])[1]
}
