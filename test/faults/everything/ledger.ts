/** Posted and acknowledged data of agents, compared with the database on a direct connection. */
import type postgres from 'postgres'
import type { Recorder } from './record.ts'

export interface Flows {
  from: number
  count: number
  /** First letter of their uuids. */
  series: Series
  /** Rows that the answers count as stored. */
  claimed: number
  /** Time of the answer. */
  at: number
  /** The same flows under other uuids, posted at the same time. */
  twin?: Flows
}

/** `f`: flows; `d`: the same flows under other uuids at the same time; `e`: the same after they were acknowledged. */
export type Series = 'f' | 'd' | 'e'

export const uuidOf = (series: Series, n: number) =>
  `${series}0000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`

/** Versions of an object: each replaces the previous one and is posted until it is acknowledged. */
export interface Versions {
  acknowledged: number
  /** Versions with an attempt that had no answer or was refused: a broker may still store it later. */
  unsure: Set<number>
  requestId: string
}

const ROWS_PER_QUESTION = 20_000

export class Ledger {
  readonly #record: Recorder
  #next = 1
  acknowledgedFlows = 0
  /** Acknowledged since the last check. */
  #unchecked: Flows[] = []
  readonly #all: Flows[] = []
  readonly pods = new Map<string, Versions>()
  readonly services = new Map<string, Versions>()
  readonly syscalls = new Map<string, Set<string>>()

  constructor(record: Recorder) {
    this.#record = record
  }

  take(count: number): number {
    const from = this.#next
    this.#next += count
    return from
  }

  get postedFlows(): number {
    return this.#next - 1
  }

  acknowledge(flows: Flows): void {
    this.#unchecked.push(flows)
    this.#all.push(flows)
    this.acknowledgedFlows += flows.count
  }

  /** Random acknowledged flows, recent or old. */
  someAcknowledged(): Flows | undefined {
    const last = this.#all.length
    const index =
      Math.random() < 0.5 ? Math.max(0, last - 20) + Math.random() * Math.min(20, last) : Math.random() * last
    return this.#all[Math.floor(index)]
  }

  static version(of: Map<string, Versions>, key: string): Versions {
    const versions = of.get(key) ?? { acknowledged: 0, unsure: new Set(), requestId: '' }
    of.set(key, versions)
    return versions
  }

  /** Checks the flows acknowledged since the last check, and the last acknowledged version of each object. */
  async check(sql: postgres.Sql): Promise<number> {
    const flows = await this.#checkFlows(sql)
    await this.#checkVersions(sql, 'pod', this.pods)
    await this.#checkVersions(sql, 'service', this.services)
    await this.#checkSyscalls(sql)
    return flows
  }

  async #checkFlows(sql: postgres.Sql): Promise<number> {
    let checked = 0
    while (this.#unchecked.length > 0) {
      let size = 0
      const some: Flows[] = []
      for (const one of this.#unchecked) {
        if (size > ROWS_PER_QUESTION) break
        some.push(one)
        size += one.count
      }
      // The row may have the uuid of the twin instead.
      const uuids = some.flatMap(({ from, count }) =>
        numbers(from, count).flatMap((n) => [uuidOf('f', n), uuidOf('d', n)]),
      )
      const found = await sql<
        { uuid: string }[]
      >`select uuid from traffic where uuid = any (${`{${uuids.join(',')}}`}::text[])`
      const stored = new Set(found.map(({ uuid }) => uuid))
      for (const one of some) this.#judge(one, stored)
      this.#unchecked = this.#unchecked.filter((one) => !some.includes(one))
      checked += size
    }
    return checked
  }

  #judge(flows: Flows, stored: ReadonlySet<string>): void {
    const all = numbers(flows.from, flows.count)
    const missing = all.filter((n) => !stored.has(uuidOf('f', n)) && !stored.has(uuidOf('d', n)))
    if (missing.length > 0) {
      const example = uuidOf(flows.series, missing[0]!)
      this.#record.violation(
        'no acknowledged flow is lost',
        `${missing.length} of ${flows.count}, the first ${example}, acknowledged ${new Date(flows.at).toISOString()}`,
        flows.at - 60_000,
      )
    }
    const twice = all.filter((n) => stored.has(uuidOf('f', n)) && stored.has(uuidOf('d', n)))
    if (twice.length > 0)
      this.#record.violation(
        'no flow is stored twice',
        `flow ${uuidOf('f', twice[0]!)} and its twin`,
        flows.at - 60_000,
      )
    const own = all.filter((n) => stored.has(uuidOf(flows.series, n))).length
    if (flows.claimed > own) {
      this.#record.violation(
        'no more is said to be stored than is',
        `${flows.claimed} said, ${own} there, from ${uuidOf(flows.series, flows.from)}`,
        flows.at - 60_000,
      )
    }
  }

  async #checkVersions(sql: postgres.Sql, table: 'pod' | 'service', of: Map<string, Versions>): Promise<void> {
    const before = new Map(
      [...of].filter(([, one]) => one.acknowledged > 0).map(([key, one]) => [key, one.acknowledged]),
    )
    const keys = `{${[...before.keys()].join(',')}}`
    const rows =
      table === 'pod'
        ? await sql`select pod_name as key, pod_identity as version from pod where pod_name = any (${keys}::text[])`
        : await sql`select svc_ip as key, svc_name as version from service where svc_ip = any (${keys}::text[])`
    const stored = new Map(rows.map((row) => [String(row.key), Number(/\d+$/.exec(String(row.version))?.[0])]))
    for (const [key, acknowledged] of before) {
      const version = stored.get(key)
      const { unsure, requestId } = of.get(key)!
      if (version !== undefined && (version >= acknowledged || unsure.has(version))) continue
      this.#record.violation(
        `no acknowledged ${table} is lost`,
        `${key} is at ${version ?? 'nothing'}, acknowledged at ${acknowledged} (request ${requestId})`,
        Date.now() - 60_000,
      )
    }
  }

  async #checkSyscalls(sql: postgres.Sql): Promise<void> {
    const before = [...this.syscalls].map(([pod, names]) => [pod, [...names]] as const)
    const rows = await sql<{ pod_name: string; syscalls: string }[]>`select pod_name, syscalls from pod_syscalls`
    const stored = new Map(rows.map((row) => [row.pod_name, new Set(row.syscalls.split(','))]))
    for (const [pod, names] of before) {
      const missing = names.filter((one) => !stored.get(pod)?.has(one))
      if (missing.length > 0)
        this.#record.violation('no acknowledged syscall is lost', `${pod}: ${missing.join(',')}`, Date.now() - 60_000)
    }
  }

  /** Checks everything once more at the end; returns the count of stored flows and that of the answers. */
  async checkWhole(sql: postgres.Sql): Promise<{ rows: number; claimed: number }> {
    this.#unchecked = [...this.#all]
    await this.check(sql)
    const repeated = await sql<{ rule: string; n: number }[]>`
      select 'six members' as rule, count(*)::int as n from (
        select 1 from traffic group by pod_ip, pod_port, traffic_type, traffic_in_out_ip, traffic_in_out_port, decision
        having count(*) > 1 and count(pod_ip) > 0) one
      union all
      select 'UDP without the port of the pod', count(*)::int from (
        select 1 from traffic where ip_protocol = 'UDP' group by pod_ip, traffic_type, traffic_in_out_ip, traffic_in_out_port, decision having count(*) > 1) one
      union all
      select 'UDP without the port of the peer', count(*)::int from (
        select 1 from traffic where ip_protocol = 'UDP' group by pod_ip, pod_port, traffic_type, traffic_in_out_ip, decision having count(*) > 1) one
      union all
      select 'uuid', count(*)::int from (select 1 from traffic group by uuid having count(*) > 1) one
      union all
      select 'a repeat of an acknowledged flow', count(*)::int from traffic where uuid like 'e0000000-%'`
    for (const { rule, n } of repeated) if (n > 0) this.#record.violation('no flow is stored twice', `${n} by ${rule}`)
    const [row] = await sql<
      { n: number }[]
    >`select count(*)::int as n from traffic where uuid like 'f0000000-%' or uuid like 'd0000000-%'`
    const claimed = this.#all.reduce((sum, one) => sum + one.claimed, 0)
    if (claimed > row!.n)
      this.#record.violation('no more is said to be stored than is', `${claimed} said in all, ${row!.n} there`)
    if (row!.n > this.postedFlows)
      this.#record.violation('no flow is stored twice', `${row!.n} rows of ${this.postedFlows} flows`)
    return { rows: row!.n, claimed }
  }
}

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, k) => from + k)
