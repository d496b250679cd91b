/** Steps of the job that are functions of the database: each call takes one batch and says where the next begins. */
import type postgres from 'postgres'
import type { Database, Sql } from '../../lib/db/index.ts'
import { HISTORY_DAYS, MAX_ENDED } from '../../lib/decisions/words.ts'
import { inBatches, isStopped, type JobContext, joinPasses, NOTHING, type Pass } from '../job.ts'
import { held, LANES, type LaneStep, laneHeld } from '../locks.ts'

const IMAGES_EXAMINED = 100
const IMAGES_REFRESHED = 100
/** Findings and components that one statement reads, unless those of a single image are more. */
const ITEMS_READ = 40_000
const NAMES_EXAMINED = 1_000
const NEWS_AT_ONCE = 500
/** Each may be in every image, and each of these in many workloads. */
const CVES_COUNTED = 200
const ALIASES_EXAMINED = 500
const WORKLOADS_JUDGED = 500
const PAYLOADS_READ = 500
/** No payload is begun after so many components or findings. */
const PACKAGES_READ = 100_000
const PACKAGES_FORGOTTEN = 2_000
const USES_FORGOTTEN = 10_000
const DECISIONS_ENDED = 500
const DECISIONS_FORGOTTEN = 5_000
/** No statement of ingest takes as long. */
const SETTLED_AFTER_SECS = 120

/** The result of a call. The pass ends when `next` is null. */
interface Result {
  rows: number
  next: string | null
}

type Call = (sql: Sql, first: postgres.Fragment) => postgres.Fragment

/**
 * Calls a function until it has no next batch. `call` is a query with one row, `rows` and `next`. Its function is
 * strict and gets `first` (null without the lock of the job) for its first argument.
 */
function inCalls(
  { db, signal }: JobContext,
  maxBatches: number,
  start: string,
  call: Call,
  lock = (sql: Sql) => held(sql, 'supply-chain-refresh'),
): Promise<Pass> {
  let after = start
  return inBatches(signal, maxBatches, async () => {
    const [batch] = await db.job(
      (sql) => sql<({ is_held: boolean } & Result)[]>`
  with ${lock(sql)}
  select h.is_held, coalesce(c.rows, 0)::int as rows, c.next::text as next
  from held h
  left join lateral (${call(sql, sql`case when h.is_held then ${after}::text end`)}) c on true`,
    )
    const { is_held, rows, next } = batch!
    after = next ?? after
    return { isHeld: is_held, rows, isLast: next === null }
  })
}

/** `inCalls` in lanes, between whose batches other jobs get a connection. Rejects when all have ended. */
async function inLanes(
  context: JobContext,
  step: LaneStep,
  maxBatches: number,
  start: string,
  callOf: (lane: number) => Call,
): Promise<Pass> {
  const lanes = await Promise.allSettled(
    Array.from({ length: LANES }, (_, lane) =>
      inCalls(context, maxBatches, start, callOf(lane), (sql) => laneHeld(sql, 'supply-chain-refresh', step, lane)),
    ),
  )
  return lanes.map(passOf).reduce(joinPasses)
}

function passOf(result: PromiseSettledResult<Pass>): Pass {
  if (result.status === 'rejected') throw result.reason
  return result.value
}

/** Stores the rule of tiers. Where it changed, all vulnerabilities are to be counted again. */
export async function noteTierRule({ config, db }: JobContext): Promise<Pass> {
  const [changed] = await db.job(
    (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'supply-chain-refresh')},
  changed as (
    update tier_rule r
    set epss = ${Math.min(config.tierEpss, 1)}::float8, unknown_is_exposed = ${config.isUnknownExposed}
    where (select is_held from held)
      and (r.epss, r.unknown_is_exposed) is distinct from (${Math.min(config.tierEpss, 1)}::float8,
                                                           ${config.isUnknownExposed}::boolean)
    returning 1),
  news as (
    insert into summary_news (vuln_id)
    select s.vuln_id from cve_summary s where exists (select from changed) and s.scope_namespace = ''
    on conflict do nothing)
  select h.is_held, (select count(*)::int from changed) as rows from held h`,
  )
  const { is_held, rows } = changed!
  return is_held ? { outcome: 'done', rows, batches: 1 } : { outcome: 'skipped', rows: 0, batches: 0 }
}

/**
 * Reads the packages of payloads that are new or changed, for search (docs/contract.md#search). Until then each search
 * looks at them itself, so this is the first step of a pass.
 */
export async function readPackages(context: JobContext): Promise<Pass> {
  const once = (call: (sql: Sql, first: postgres.Fragment) => postgres.Fragment) => inCalls(context, 1, 'next', call)
  let pass = NOTHING
  for (let next: string | null = 'next'; next !== null && !isStopped(pass); ) {
    const read = await once(
      (sql, first) => sql`
      select r.payloads as rows, null::text as next
      from read_packages(${first}, ${PAYLOADS_READ}, ${PACKAGES_READ}) r`,
    )
    const marked =
      read.rows === 0
        ? NOTHING
        : await once((sql, first) => sql`select mark_packages(${first}) as rows, null::text as next`)
    pass = {
      outcome: read.outcome,
      rows: pass.rows + marked.rows,
      batches: pass.batches + read.batches + marked.batches,
    }
    // Rows that others write are left for the next pass.
    if (marked.rows === 0) next = null
  }
  if (pass.rows > 0 && !isStopped(pass))
    await once((sql, first) => sql`select flush_packages(${first}) * 0 as rows, null::text as next`)
  return pass
}

/** Deletes packages that no payload has any more; some of them in each pass. */
export const forgetPackages = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    1,
    String(PACKAGES_FORGOTTEN),
    (sql, first) => sql`
    select f.rows, null::text as next from forget_packages((${first})::bigint) f(rows)`,
  )

/** Judges the containers of all workloads: whether they are watched, and their exposure. */
export const judgeContainers = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    10_000,
    '["","",""]',
    (sql, first) => sql`
    select j.rows, j.last as next
    from judge_containers(${first}, ${WORKLOADS_JUDGED}, ${context.config.inUseWindowHours}) j`,
  )

/** Deletes the use of packages by containers and images that are gone. */
export const forgetUse = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    10_000,
    String(USES_FORGOTTEN),
    (sql, first) => sql`
    select f.rows, case when f.rows >= ${USES_FORGOTTEN} then ${USES_FORGOTTEN}::int end as next
    from forget_use((${first})::bigint) f(rows)`,
  )

/**
 * Finds images whose payloads, files or workloads changed since the summary was made, links files that ran to packages,
 * updates what the summary knows of the images and lists the vulnerabilities to count again. All images are compared,
 * because a container may end by time alone, but findings are read only of those with other payloads or files.
 */
export const findChangedImages = (context: JobContext): Promise<Pass> =>
  inLanes(
    context,
    'first',
    2_000,
    '',
    (lane) => (sql, first) =>
      sql`
    select r.images as rows, r.last as next
    from refresh_images(${first}, ${IMAGES_EXAMINED}, ${IMAGES_REFRESHED}, ${ITEMS_READ},
                        ${context.config.imageRunningWindowSecs}, ${LANES}, ${lane}) r`,
  )

/** Returns how many images differ from the summary. */
export async function countChangedImages(db: Database, windowSecs: number): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from images_to_refresh('', null, ${windowSecs}, 1, 0) i where i.is_reread or i.is_moved`,
  )
  return row!.rows
}

/**
 * Renames findings by the aliases known now: a finding posted under an alias is stored under the vulnerability that it
 * stands for, and under its own id again when nobody names the alias any more or several claim it. Ingest applies the
 * aliases known at that moment; this covers aliases recorded or deleted afterwards.
 */
export const nameFindings = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    10_000,
    '',
    (sql, first) => sql`
    select n.payloads as rows, n.last as next from rename_next_findings(${first}, ${NAMES_EXAMINED}) n`,
  )

/**
 * Recomputes the facts of vulnerabilities that ingest has recorded news about: the highest value over every stored
 * finding, so that a value may also become lower. Ingest goes on adding news without waiting; rows added since the
 * statement began stay for the next one. A request to refresh stays for a while: a payload that is not committed yet
 * may hold the very value, and have recorded nothing because it was known.
 */
export const refreshFacts = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    5_000,
    '0',
    (sql, first) => sql`
    select f.rows, f.last as next from refresh_facts((${first})::bigint, ${NEWS_AT_ONCE}, ${SETTLED_AFTER_SECS}) f`,
  )

/** Counts changed vulnerabilities again and writes the counts that differ. */
export const countChanged = (context: JobContext): Promise<Pass> =>
  inLanes(
    context,
    'second',
    10_000,
    String(CVES_COUNTED),
    (lane) => (sql, first) =>
      sql`
    select c.rows, case when c.cves >= ${CVES_COUNTED} then ${CVES_COUNTED}::int end as next
    from count_cves((${first})::bigint, ${LANES}, ${lane}) c`,
  )

/**
 * Deletes aliases that no finding names any more; each is examined once in two days. With a pass every five minutes the
 * limit covers some millions of aliases in two days, more than databases of vulnerabilities have.
 */
export const expireAliases = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    20,
    String(ALIASES_EXAMINED),
    (sql, first) => sql`
    select a.deleted as rows, case when a.aliases >= ${ALIASES_EXAMINED} then ${ALIASES_EXAMINED}::int end as next
    from expire_aliases((${first})::bigint) a`,
  )

/**
 * Ends decisions whose last day is over. They have not held since; this notes it, and counts their vulnerabilities
 * again.
 */
export const endDecisions = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    1_000,
    String(DECISIONS_ENDED),
    (sql, first) => sql`
    select e.rows, case when e.rows >= ${DECISIONS_ENDED} then ${DECISIONS_ENDED}::int end as next
    from end_expired_decisions((${first})::bigint) e(rows)`,
  )

/** Deletes the history of decisions beyond its days and its number, and documents as old that say nothing any more. */
export const forgetDecisions = (context: JobContext): Promise<Pass> =>
  inCalls(
    context,
    1_000,
    String(DECISIONS_FORGOTTEN),
    (sql, first) => sql`
    select f.rows, case when f.rows >= ${DECISIONS_FORGOTTEN} then ${DECISIONS_FORGOTTEN}::int end as next
    from forget_decisions((${first})::bigint, ${HISTORY_DAYS}, ${MAX_ENDED}) f(rows)`,
  )
