import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import type postgres from 'postgres'
import type { Job, JobContext, Pass } from '../../jobs/job.ts'
import { held, type JobName, type LaneStep, laneHeld } from '../../jobs/locks.ts'
import type { Config } from '../../lib/config/index.ts'
import { type Database, openDatabase } from '../../lib/db/index.ts'
import { startApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const NEVER = new AbortController().signal
const CONNECTIONS = 4
const GATE = 77

/** Restores the default retention of these settings. */
const KEPT = {
  AUDIT_VERDICTS_RETENTION_DAYS: undefined,
  SECCOMP_DENIALS_RETENTION_DAYS: undefined,
  RUNTIME_INVENTORY_RETENTION_DAYS: undefined,
  IMAGE_ATTESTATION_RETENTION_DAYS: undefined,
}

/** A database with one job, and functions to store and read rows. Times are in seconds before the start of the file. */
export async function startScene(job: Job, configured: Partial<Config> = {}) {
  const app = await startApp(KEPT)
  const { sql, deps, url } = app
  const [clock] = await sql<{ ms: number }[]>`select extract(epoch from now())::float8 * 1000 as ms`
  const ago = (secs: number) => new Date(clock!.ms - secs * 1000).toISOString().slice(0, -1)
  const context = (changes: Partial<JobContext> = {}): JobContext => ({
    config: { ...deps.config, ...configured },
    db: app.db,
    log: deps.log,
    signal: NEVER,
    ...changes,
  })

  return {
    ...app,
    ago,
    context,
    run: (changes?: Partial<JobContext>) => job.run(context(changes)),
    count: (changes?: Partial<JobContext>) => job.count(context(changes)),

    /** Stores a pod as a post would. */
    async pod(fields: Record<string, unknown> = {}) {
      const pod_name = `pod-${randomUUID()}`
      const pod_ip = `10.1.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}`
      const pod = {
        pod_name,
        pod_ip,
        pod_namespace: 'shop',
        time_stamp: ago(0),
        node_name: 'node-a',
        is_dead: false,
        workload_kind: 'Deployment',
        workload_name: 'web',
        started_at: ago(3600),
        pod_uid: `uid-${pod_name}`,
        ...fields,
      }
      await sql`select upsert_pods(${JSON.stringify([{ pod_ips: [pod.pod_ip], ...pod }])}::text::json)`
      return pod as typeof pod & Record<string, unknown>
    },

    async service(svc_ip: string) {
      const service = { svc_ip, svc_name: 'web', svc_namespace: 'shop', time_stamp: ago(0), svc_uid: 'uid-svc' }
      await sql`select upsert_services(${JSON.stringify([service])}::text::json)`
    },

    /** Another process on the same database. */
    otherProcess(t: TestContext): Database {
      const other = openDatabase({
        connection: url,
        poolMax: CONNECTIONS,
        statementTimeoutMs: 30_000,
        prepare: true,
        applicationName: 'broker-test-other',
        log: deps.log,
      })
      t.after(() => other.end(1_000))
      return other
    },

    /**
     * Runs a pass, and `work` while the pass waits within its deletion from `table`: `before` the first row is deleted, when the
     * rows are found but not locked, or `after` a row is deleted, which stays locked until the statement ends.
     */
    async whileDeleting(table: string, when: 'before' | 'after', work: () => Promise<unknown>): Promise<Pass> {
      const each = when === 'before' ? 'statement' : 'row'
      await sql.unsafe(`
        create function wait_for_test() returns trigger language plpgsql
        as $$ begin perform pg_advisory_xact_lock(${GATE}); return ${when === 'before' ? 'null' : 'old'}; end $$`)
      await sql.unsafe(
        `create trigger wait_for_test ${when} delete on ${table} for each ${each} execute function wait_for_test()`,
      )
      try {
        let pass: Promise<Pass> | undefined
        await sql.begin(async (other) => {
          await other`select pg_advisory_xact_lock(${GATE}::int)`
          pass = job.run(context())
          await until('the pass waits', () => isWaiting(sql))
          await work()
        })
        return await pass!
      } finally {
        await sql`drop function wait_for_test cascade`
      }
    },

    /** Holds the lock of a job, or one of its lanes, while `work` runs. */
    async whileLocked(
      name: JobName,
      work: () => Promise<void>,
      lane: { step: LaneStep; lane: number } | null = null,
    ): Promise<void> {
      await sql.begin(async (other) => {
        await (lane === null
          ? other`with ${held(other, name)} table held`
          : other`with ${laneHeld(other, name, lane.step, lane.lane)} table held`)
        await work()
      })
    },
  }
}

/** A database whose statements all run inside the transaction, so that `now()` does not change. */
export function inside(transaction: postgres.TransactionSql): Database {
  return {
    job: (statement: (sql: postgres.TransactionSql) => unknown) => statement(transaction),
  } as unknown as Database
}

/** The database, and a signal that is aborted once `batches` statements have been answered. */
export function abortedAfter(batches: number, db: Database): Pick<JobContext, 'db' | 'signal'> {
  const abort = new AbortController()
  let answered = 0
  const job = async (statement: Parameters<Database['job']>[0]) => {
    const rows = await db.job(statement)
    if (++answered === batches) abort.abort()
    return rows
  }
  return { db: { job } as unknown as Database, signal: abort.signal }
}

/** The number of sessions of this database that wait for a lock. */
export async function waiting(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return row!.n
}

export const isWaiting = async (sql: postgres.Sql): Promise<boolean> => (await waiting(sql)) > 0
