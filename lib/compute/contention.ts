/** Reads which containers made other containers wait (docs/contract.md#compute). */
import { z } from 'zod'
import { type Database, fixed } from '../db/index.ts'
import { zonedTime } from '../http/request/fields.ts'
import { asArray } from '../http/response/pages.ts'
import { joinedColumns, joinedPage, plainReader } from '../records/index.ts'

export const MAX_PAIRS = 10_000
export const MAX_PAIRS_OF_VICTIM = 50
/** Without a node, a namespace is searched in the whole cluster, so the time is limited. */
export const MAX_MINUTES_WITHOUT_NODE = 60
/**
 * Up to this many minutes all pairs are read by time and then sorted by wait. A victim has about ten pairs a minute, so
 * for longer times the longest waits are looked up instead.
 */
export const MAX_MINUTES_BY_TIME = 360

const id = z.int()

/** The wait of a container for another one in a minute. */
export const Pair = z
  .strictObject({
    id: id.min(0),
    ts: zonedTime,
    node: z.string(),
    victim_container_uid: z.string(),
    victim_pod_uid: z.string(),
    victim_namespace: z.string(),
    culprit_cgroup_id: z.number().nullable(),
    culprit_kind: z.string(),
    culprit_ref: z.string(),
    culprit_container_uid: z.string().nullable(),
    count: id.min(0),
    wait_ns: id.min(0),
  })
  .meta({ id: 'ComputePair' })

const OF_VICTIM =
  'c.node, c.container_uid as victim_container_uid, c.pod_uid as victim_pod_uid, c.namespace as victim_namespace'
const OF_PAIR = ['culprit_cgroup_id', 'culprit_kind', 'culprit_ref', 'culprit_container_uid', 'count', 'wait_ns']
const pairColumns = (pair: string) =>
  [`${pair}.id`, `date_trunc('second', ${pair}.ts) as ts`, OF_VICTIM, ...OF_PAIR.map((key) => `${pair}.${key}`)].join(
    ', ',
  )

const ASKED = `
  with asked as materialized (
    select a.node, a.namespace, a.pod_uid,
           greatest(now() at time zone 'utc' - make_interval(mins => a.minutes), retention_start(a.days)) as since
    from (
      select $1::text as node, $2::text as namespace, $3::text as pod_uid, $4::integer as minutes,
             $5::integer as days) a)`

/**
 * The order in the inner select forces the index by time, whatever the planner estimates for a new day. The lateral
 * joins force nested loops, so victims come in order and reading stops at the limit.
 */
const byTime = (victims: string, filter = 'true') => `
  ${ASKED}
  select *
  from (
    select ${pairColumns('p')}
    from asked a
    cross join lateral (select c.* from compute_container c where ${victims} order by c.container_uid offset 0) c
    cross join lateral (
      select w.*
      from (
        select * from (
          select p.* from compute_contention p where p.victim_id = c.id and p.ts >= a.since order by p.ts offset 0) p
        union all
        select * from (
          select k.* from compute_contention_kept k
          where k.victim_id = c.id and k.ts >= a.since
          order by k.ts
          offset 0) k) w
      order by w.wait_ns desc, w.id desc
      limit $6::integer) p
    where ${filter}
    limit ${MAX_PAIRS}) p
  order by p.victim_container_uid, p.wait_ns desc, p.id desc`

const BY_WEIGHT = `
  ${ASKED}
  select ${pairColumns('(p.pair)')}
  from asked a
  cross join lateral compute_heaviest(a.node, a.namespace, a.since, $6::integer, ${MAX_PAIRS})
    with ordinality p(container_id, pair, n)
  cross join lateral (select c.* from compute_container c where c.id = p.container_id offset 0) c
  order by p.n`

const reader = (rows: string) => ({
  joined: fixed(`select ${joinedColumns(Pair, 't')} from (${rows}) t`),
  plain: plainReader(Pair, rows),
})

const OF_NODE = reader(byTime('c.node = a.node'))
const OF_NAMESPACE = reader(byTime('c.namespace = a.namespace'))
const OF_BOTH = reader(byTime('c.node = a.node', 'c.namespace = a.namespace'))
const OF_POD = reader(
  byTime(
    'c.pod_uid = a.pod_uid',
    '(a.node is null or c.node = a.node) and (a.namespace is null or c.namespace = a.namespace)',
  ),
)
const HEAVIEST = reader(BY_WEIGHT)

interface ContentionQuestion {
  /** Null for any; one of the three is set. */
  readonly node: string | null
  readonly namespace: string | null
  readonly podUid: string | null
  readonly minutes: number
  /** Pairs of a victim. */
  readonly perVictim: number
  /** Days that waits are kept; 0 sets no limit. */
  readonly retentionDays: number
}

/**
 * Returns the pairs of a node, namespace or pod as a JSON object: by victim, the longest wait first
 * (docs/contract.md#compute).
 */
export async function readContention(db: Database, question: ContentionQuestion): Promise<Buffer> {
  const { node, namespace, podUid, minutes, perVictim, retentionDays } = question
  const within = Math.min(minutes, mostMinutes(question))
  const { joined, plain } = readerOf(question, within)
  const values = [node, namespace, podUid, within, retentionDays, perVictim] as const
  const [row] = await db.read((sql) => joined(sql, ...values).raw())
  const pairs = joinedPage(Pair, row!) ?? (await plain(db.read, ...values))
  return Buffer.concat([Buffer.from('{"pairs":'), asArray(pairs), Buffer.from('}')])
}

function mostMinutes({ node, podUid }: ContentionQuestion): number {
  if (podUid !== null) return MAX_MINUTES_BY_TIME
  return node === null ? MAX_MINUTES_WITHOUT_NODE : Number.POSITIVE_INFINITY
}

function readerOf({ node, namespace, podUid }: ContentionQuestion, minutes: number) {
  if (podUid !== null) return OF_POD
  if (minutes > MAX_MINUTES_BY_TIME) return HEAVIEST
  return node === null ? OF_NAMESPACE : namespace === null ? OF_NODE : OF_BOTH
}
