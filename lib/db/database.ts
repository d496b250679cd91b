/** The database as the rest of the service sees it: four gates, so that none of ingest, reads, jobs and probes can starve the others. */
import type postgres from 'postgres'
import type { Log } from '../observability/log.ts'
import { Complaints } from './complaints.ts'
import type { Connection } from './driver-options.ts'
import type { GateName } from './gate.ts'
import { Pool } from './pool.ts'
import type { PoolStats } from './pool-options.ts'
import type { Sql, Statement } from './statement.ts'

type Rows = readonly postgres.MaybeRow[]

/**
 * Runs one statement. The callback builds the query and may be called again for another attempt, so it must have no
 * other effect. `isInDoubt` tells it that an earlier attempt may have been carried out although its answer was lost;
 * what `isInDoubt(error)` says of a rejection means the same.
 *
 * Rejects with DatabaseUnavailable (no connection, no room, silence; DatabaseRefused: a full disk, a missing privilege),
 * DatabaseBusy (cancelled, deadlock, serialization) or the driver's own error for everything the statement itself got wrong.
 */
export interface Gate {
  <T extends Rows>(statement: (sql: Sql, isInDoubt: boolean) => postgres.PendingQuery<T>): Promise<T>
  /** Rows of Buffers, as `.raw()` gives them. */
  <T extends Rows>(
    statement: (sql: Sql, isInDoubt: boolean) => postgres.PendingRawQuery<T>,
  ): Promise<(Buffer | null)[][]>
  /** First column of the first row as the bytes the database sent; null when that is SQL NULL or there is no row. */
  json<T extends Rows>(statement: (sql: Sql, isInDoubt: boolean) => postgres.PendingQuery<T>): Promise<Buffer | null>
  /** Waits at most `ms`, then cuts the connection and rejects with DatabaseUnavailable: for statements that end by themselves before. */
  within<T extends Rows>(ms: number, statement: (sql: Sql) => postgres.PendingQuery<T>): Promise<T>
  /**
   * For what must not be repeated: there is no second attempt, so that after a lost connection it may or may not have been
   * done. Waits at most `ms` for its turn, then rejects with DatabaseUnavailable.
   */
  once<T extends Rows>(ms: number, statement: (sql: Sql) => postgres.PendingQuery<T>): Promise<T>
  readonly stats: PoolStats
}

export interface DatabaseStats {
  generation: number
  /** Connections over all gates: may exist, have answered and stand, stand without a statement. */
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
  /** Counts how often a gate lost all its connections, to silence or otherwise. */
  readonly generation: number
  /** Called whenever `generation` grows: what was learnt from the old connections may not hold on the new ones. */
  onPoolReplaced(listener: (gate: GateName) => void): void
  /** Lets statements in flight end for up to `timeoutMs` (default 5 s), then cuts them. Never rejects. */
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
  /** Longest wait at a full gate: 5 s. */
  waitMs?: number
  /** Most statements waiting at one gate: 1024. */
  maxQueue?: number
  /** Silence after which a pool is given up: `statementTimeoutMs` + 1.5 s, or 60 s without a statement timeout. */
  deadlineMs?: number
}

const RETRIES = 2
const WAIT_MS = 5_000
const MAX_QUEUE = 1_024
const END_TIMEOUT_MS = 5_000
// An ordinary slow statement ends as 57014 before this; only silence reaches it.
const DEADLINE_MARGIN_MS = 1_500
const DEADLINE_WITHOUT_TIMEOUT_MS = 60_000
/** With this many connections a long job need not keep the others from running. */
const JOB_PAIR_FROM = 8

/** Connections per gate; reads get the odd one. */
export function splitPool(poolMax: number): Record<GateName, number> {
  const probe = 1
  const job = poolMax >= JOB_PAIR_FROM ? 2 : 1
  const rest = Math.max(2, poolMax - probe - job)
  const ingest = Math.floor(rest / 2)
  return { ingest, read: rest - ingest, probe, job }
}

/** Opens no connection yet: each gate connects when it is first used, and again after any loss. */
export function openDatabase(options: DatabaseOptions): Database {
  const { connection, statementTimeoutMs, log } = options
  let generation = 0
  const listeners: ((gate: GateName) => void)[] = []
  const renewed = (gate: GateName) => {
    generation++
    log.debug({ gate, generation }, 'database connections renewed')
    // A probe tells what requests meet, who are with another server now, perhaps.
    if (gate !== 'probe') pools.probe.renew()
    for (const listener of listeners) {
      try {
        listener(gate)
      } catch (error) {
        log.warn({ gate, err: error }, 'a listener to database pools failed')
      }
    }
  }

  const complaints = new Complaints((fields, message) => log.warn(fields, message))
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
      waitMs: options.waitMs ?? WAIT_MS,
      maxQueue: options.maxQueue ?? MAX_QUEUE,
      log,
      onRenewed: () => renewed(gate),
      onUnavailable: (error) => complaints.note(error),
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
      complaints.end()
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
