import { randomUUID } from 'node:crypto'
import { type Database, fixed } from '../../db/index.ts'
import type { Rejections } from '../../http/request/rejections.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { RateLimitedLog } from '../../observability/rate-limited-log.ts'
import { Slice } from '../../process/event-loop.ts'
import type { WireNames } from '../../wire-names/index.ts'
import { type Drain, intervalOf, mergeEntries } from './drain.ts'
import { type Delta, DenialSeries, MAX_SERIES } from './series.ts'

const ROUTE = '/seccomp/denials'

const store = fixed<Delta[]>('select * from store_denials($1::text::json)')

/** Rows that one statement sets back, and statements of a call: what is left is for the next. */
const ROWS_AT_ONCE = 5_000
const MAX_STATEMENTS = 100

/** Denials whose workload was not known when they came and is by now. Whoever gets them counts them: a row that another has locked is passed over. */
const claim = fixed<(Delta & { rows: number })[]>(`
  with late as materialized (
    select d.id, d.uncounted
    from seccomp_denial d
    where d.uncounted > 0 and d.workload_kind is not null and d.workload_name is not null
    order by d.id
    limit ${ROWS_AT_ONCE}
    for update skip locked),
  claimed as (
    update seccomp_denial d set uncounted = 0 from late l where d.id = l.id
    returning d.pod_namespace, d.workload_kind, d.workload_name, d.action, l.uncounted)
  select c.pod_namespace as workload_namespace, c.workload_kind, c.workload_name, c.action, sum(c.uncounted)::float8 as denials, count(*)::integer as rows
  from claimed c
  group by c.pod_namespace, c.workload_kind, c.workload_name, c.action`)

export interface DenialInletOptions {
  readonly db: Database
  readonly metrics: Metrics
  readonly wireNames: WireNames
  readonly rejections: Rejections
  readonly lines: RateLimitedLog
}

/** The way of drains into the database, and what is counted of them once they are there. */
export class DenialInlet {
  readonly #db: Database
  readonly #metrics: Metrics
  readonly #rejections: Rejections
  readonly #lines: RateLimitedLog
  /** Counts denials that were answered, and those attributed since. A denial whose answer was lost for good is stored but not counted. */
  readonly series: DenialSeries

  constructor({ db, metrics, wireNames, rejections, lines }: DenialInletOptions) {
    this.#db = db
    this.#metrics = metrics
    this.#rejections = rejections
    this.#lines = lines
    this.series = new DenialSeries(wireNames)
  }

  /**
   * Stores a drain in one transaction, with the time the node was heard of; resolves to how many rows it came to. What is wrong with entries is
   * counted and told of. A drain counts once, also when an answer of the database is lost: attempts share an id.
   */
  async take({ node, capturing, intervalSeconds, denials: entries }: Drain): Promise<number> {
    const { denials, dropped } = await mergeEntries(entries)
    const { seconds, isClamped } = intervalOf(intervalSeconds)
    const document = JSON.stringify({
      node,
      capturing: capturing === true || denials.length > 0,
      interval_seconds: seconds,
      post: randomUUID(),
      denials,
    })
    const deltas = await this.#db.ingest((sql) => store(sql, document))
    this.#rejections.note(ROUTE, dropped, 'seccomp denials were dropped, counted by the field at fault')
    if (isClamped)
      this.#lines.note('drains of seccomp denials with a cadence above 600 seconds, which is taken for 600', {
        drains: 1,
      })
    this.#metrics.denialRows.inc(denials.length)
    await this.#count(deltas)
    return denials.length
  }

  /** Counts denials that were attributed since they came, each in one replica; an answer that is lost is not counted. */
  async countAttributed(): Promise<void> {
    for (let n = 0; n < MAX_STATEMENTS; n++) {
      const claimed = await this.#db.job((sql) => claim(sql))
      await this.#count(claimed)
      if (claimed.reduce((sum, { rows }) => sum + rows, 0) < ROWS_AT_ONCE) return
    }
  }

  async #count(deltas: readonly Delta[]): Promise<void> {
    const slice = new Slice()
    let beyond = 0
    for (const delta of deltas) {
      if (!this.series.add(delta)) beyond += delta.denials
      if (slice.isOver) await slice.next()
    }
    if (beyond > 0)
      this.#lines.note(`seccomp denials beyond the ${MAX_SERIES} series that are counted`, { denials: beyond })
  }
}
