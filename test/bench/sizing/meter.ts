/** Processor time and write-ahead log of a piece of work: of brokers, and of PostgreSQL with all its processes. */
import { readdirSync, readFileSync } from 'node:fs'
import type postgres from 'postgres'

/** Linux counts processor time in hundredths of a second. */
const TICKS_PER_SEC = 100

export interface Used {
  readonly seconds: number
  readonly brokerCpuSecs: number
  readonly postgresCpuSecs: number
  readonly walBytes: number
}

interface Stat {
  readonly parent: number
  readonly ownSecs: number
  /** Of children that ended. */
  readonly endedSecs: number
}

/** Null for a process that is gone. */
function statOf(pid: string | number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program, in parentheses, may contain blanks.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const secs = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) / TICKS_PER_SEC
    return { parent: Number(fields[1]), ownSecs: secs(11), endedSecs: secs(13) }
  } catch {
    return null
  }
}

/** Of a PostgreSQL server: its first process, those that it started, and those that have ended. */
function serverCpuSecs(pid: number): number {
  let secs = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = statOf(name)
    if (stat !== null && (Number(name) === pid || stat.parent === pid)) secs += stat.ownSecs + stat.endedSecs
  }
  return secs
}

export class Meter {
  readonly #sql: postgres.Sql
  readonly #serverPid: number

  constructor(sql: postgres.Sql, serverPid: number) {
    this.#sql = sql
    this.#serverPid = serverPid
  }

  /** What the work uses; `brokerPids` are the brokers that it goes to. */
  async measure(brokerPids: readonly number[], work: () => Promise<unknown>): Promise<Used> {
    const before = await this.#read(brokerPids)
    await work()
    const after = await this.#read(brokerPids)
    return {
      seconds: after.seconds - before.seconds,
      brokerCpuSecs: after.brokerCpuSecs - before.brokerCpuSecs,
      postgresCpuSecs: after.postgresCpuSecs - before.postgresCpuSecs,
      walBytes: after.walBytes - before.walBytes,
    }
  }

  async #read(brokerPids: readonly number[]): Promise<Used> {
    const [wal] = await this.#sql<{ bytes: number }[]>`
      select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`
    return {
      seconds: performance.now() / 1_000,
      brokerCpuSecs: brokerPids.reduce((sum, pid) => sum + (statOf(pid)?.ownSecs ?? 0), 0),
      postgresCpuSecs: serverCpuSecs(this.#serverPid),
      walBytes: wal!.bytes,
    }
  }
}
