import { randomUUID } from 'node:crypto'
import { type Database, fixed } from '../../db/index.ts'
import { Slice } from '../../event-loop/slices.ts'
import type { Rejections } from '../../http/request/rejections.ts'
import type { Metrics } from '../../metrics/index.ts'
import type { RateLimitedLog } from '../../observability/rate-limited-log.ts'
import type { WireNames } from '../../wire-names/index.ts'
import { type Drain, intervalOf, mergeEntries } from './drain.ts'
import { type Delta, DenialSeries, MAX_SERIES } from './series.ts'

const ROUTE = '/seccomp/denials'

const store = fixed<Delta[]>('select * from store_denials($1::text::json)')

/** Most rows of one statement, and most statements of one call; the next call takes the rest. */
const ROWS_AT_ONCE = 5_000
const MAX_STATEMENTS = 100

/**
 * Claims denials whose workload was unknown when they arrived and is known now. `skip locked` makes each row count in
 * only one replica: the one that claims it. The update takes a list of ids: as a join, whose rows the planner cannot
 * estimate, it could compare each row of the table with each of the list.
 */
const claim = fixed<(Delta & { rows: number })[]>(`
  with late as materialized (
    select d.id, d.uncounted, d.pod_namespace, d.workload_kind, d.workload_name, d.action
    from seccomp_denial d
    where d.uncounted > 0 and d.workload_kind is not null and d.workload_name is not null
    order by d.id
    limit ${ROWS_AT_ONCE}
    for update skip locked),
  claimed as (
    update seccomp_denial d set uncounted = 0 where d.id = any (array(select l.id from late l)))
  select l.pod_namespace as workload_namespace, l.workload_kind, l.workload_name, l.action,
         sum(l.uncounted)::float8 as denials, count(*)::integer as rows
  from late l
  group by l.pod_namespace, l.workload_kind, l.workload_name, l.action`)

interface DenialInletOptions {
  readonly db: Database
  readonly metrics: Metrics
  readonly wireNames: WireNames
  readonly rejections: Rejections
  readonly lines: RateLimitedLog
}

/** Stores drains in the database and counts the stored denials. */
export class DenialInlet {
  readonly #options: DenialInletOptions
  /**
   * Counts denials whose storing was confirmed, and those attributed since. A denial is stored but not counted if the
   * answer of the database is lost in all attempts.
   */
  readonly series: DenialSeries

  constructor(options: DenialInletOptions) {
    this.#options = options
    this.series = new DenialSeries(options.wireNames)
  }

  /**
   * Stores a drain and the time of the node's report in one transaction; resolves to the number of rows. Faulty entries
   * are counted and logged. If an answer of the database is lost, the drain still counts once: all attempts share an
   * id.
   */
  async take({ node, capturing, intervalSeconds, denials: entries }: Drain): Promise<number> {
    const { db, metrics, rejections, lines } = this.#options
    const { denials, dropped } = await mergeEntries(entries)
    const { seconds, isClamped } = intervalOf(intervalSeconds)
    const document = JSON.stringify({
      node,
      capturing: capturing === true || denials.length > 0,
      interval_seconds: seconds,
      post: randomUUID(),
      denials,
    })
    const deltas = await db.ingest((sql) => store(sql, document))
    rejections.note(ROUTE, dropped, 'seccomp denials were dropped, counted by the field at fault')
    if (isClamped)
      lines.note('drains of seccomp denials with a cadence above 600 seconds, which is taken for 600', {
        drains: 1,
      })
    metrics.denialRows.inc(denials.length)
    await this.#count(deltas)
    return denials.length
  }

  /**
   * Counts denials that were attributed after they arrived, each in one replica. If an answer of the database is lost,
   * its denials are not counted.
   */
  async countAttributed(): Promise<void> {
    for (let n = 0; n < MAX_STATEMENTS; n++) {
      const claimed = await this.#options.db.job((sql) => claim(sql))
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
      this.#options.lines.note(`seccomp denials beyond the ${MAX_SERIES} series that are counted`, { denials: beyond })
  }
}
