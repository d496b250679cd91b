import type { Database, Sql } from '../../lib/db/index.ts'
import { type Batch, inBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Images that one statement compares with what the summary knows of them, and those of them whose findings it reads again. */
const LOOKED_AT = 500
const REREAD = 10
const MAX_BATCHES = 2_000

/** The first images after a digest that have payloads, or had. */
const looked = (sql: Sql, after: string) => sql`
  looked as materialized (
    select d.image_digest
    from ((select distinct l.image_digest from image_link l
           where (select is_held from held) and l.image_digest > ${after} order by l.image_digest limit ${LOOKED_AT})
          union
          (select s.image_digest from summary_image s
           where (select is_held from held) and s.image_digest > ${after} order by s.image_digest limit ${LOOKED_AT})) d
    order by d.image_digest
    limit ${LOOKED_AT})`

/**
 * What they are now: the payloads of each with their joins and their content, and its workloads and whether these run. An image without
 * either counts for nothing.
 */
const found = (sql: Sql, windowSecs: number) => sql`
  payloads as materialized (
    select i.image_digest, p.payloads
    from looked i
    left join lateral (
      select string_agg(concat_ws(' ', e.source, e.digest, e.join_rank, r.content_hash), e'\n' order by e.source) as payloads
      from linked_reports(i.image_digest, 'vulnerabilities') e
      join image_report r on r.digest = e.digest and r.source = e.source and r.kind = 'vulnerabilities'
      where exists (select from workload_container w where w.image_digest = i.image_digest)) p on true),
  workloads as materialized (
    select w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id,
           bool_or(is_running(w, ${windowSecs})) as is_running
    from payloads p join workload_container w on w.image_digest = p.image_digest
    where p.payloads is not null
    group by w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id),
  moved as materialized (
    select coalesce(w.image_digest, s.image_digest) as image_digest
    from workloads w
    full join (select s.* from looked i join summary_workload s on s.image_digest = i.image_digest) s
      on s.image_digest = w.image_digest and s.pod_namespace = w.pod_namespace and s.workload_kind = w.workload_kind
     and s.workload_name = w.workload_name and s.cluster_id = w.cluster_id
    where s.is_running is distinct from w.is_running
    group by 1),
  stale as materialized (
    select i.image_digest, i.is_reread, i.is_moved, i.payloads, count(*) filter (where i.is_reread) over (order by i.image_digest) as nth
    from (select p.image_digest, p.payloads, p.payloads is distinct from s.payloads as is_reread, m.image_digest is not null as is_moved
          from payloads p
          left join summary_image s on s.image_digest = p.image_digest
          left join moved m on m.image_digest = p.image_digest) i
    where i.is_reread or i.is_moved)`

/**
 * Finds the images whose payloads or workloads are other than the summary was made of, notes what they are now, and which vulnerabilities are
 * to be counted again for it. All images are compared, since time alone ends a container; but only of those with other payloads are
 * findings read.
 */
export async function findChangedImages({ config, db, signal }: JobContext): Promise<Pass> {
  let after = ''
  return inBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; last: string | null }[]>`
  with ${held(sql, 'supply-chain-refresh')},
  ${looked(sql, after)},
  ${found(sql, config.imageRunningWindowSecs)},
  todo as materialized (
    select * from stale s where s.nth <= ${REREAD}),
  cves as materialized (
    select t.image_digest, f.vuln_id, min(f.severity) as severity, max(f.score) as max_score,
           bool_or(f.fixed_versions <> '{}') as is_fixable,
           (array_agg(distinct f.package_name order by f.package_name))[:5] as packages,
           array_agg(distinct f.source order by f.source) as sources, max(e.join_rank) as join_rank
    from todo t
    cross join lateral linked_reports(t.image_digest, 'vulnerabilities') e
    join image_finding f on f.digest = e.digest and f.source = e.source
    where t.is_reread and t.payloads is not null
    group by t.image_digest, f.vuln_id),
  known as materialized (
    select c.vuln_id, c.image_digest from todo t join image_cve c on c.image_digest = t.image_digest),
  gone as (
    delete from image_cve c
    using known k
    join todo t on t.image_digest = k.image_digest and t.is_reread
    left join cves n on n.image_digest = k.image_digest and n.vuln_id = k.vuln_id
    where n.vuln_id is null and c.vuln_id = k.vuln_id and c.image_digest = k.image_digest
    returning c.vuln_id),
  written as (
    insert into image_cve as c (vuln_id, image_digest, severity, max_score, is_fixable, packages, sources, join_rank)
    select n.vuln_id, n.image_digest, n.severity, n.max_score, n.is_fixable, n.packages, n.sources, n.join_rank
    from cves n
    order by n.vuln_id, n.image_digest
    on conflict (vuln_id, image_digest) do update set
      severity = excluded.severity, max_score = excluded.max_score, is_fixable = excluded.is_fixable,
      packages = excluded.packages, sources = excluded.sources, join_rank = excluded.join_rank
    where (c.severity, c.max_score, c.is_fixable, c.packages, c.sources, c.join_rank)
          is distinct from (excluded.severity, excluded.max_score, excluded.is_fixable, excluded.packages, excluded.sources, excluded.join_rank)
    returning c.vuln_id),
  news as (
    insert into summary_news (vuln_id)
    select g.vuln_id from gone g
    union select w.vuln_id from written w
    union select k.vuln_id from known k join todo t on t.image_digest = k.image_digest and t.is_moved
    on conflict do nothing
    returning 1),
  left_behind as (
    delete from summary_workload s
    using todo t
    where s.image_digest = t.image_digest and t.is_moved
      and not exists (
        select from workloads w
        where w.image_digest = s.image_digest and w.pod_namespace = s.pod_namespace and w.workload_kind = s.workload_kind
          and w.workload_name = s.workload_name and w.cluster_id = s.cluster_id)),
  moved_in as (
    insert into summary_workload as s (image_digest, pod_namespace, workload_kind, workload_name, cluster_id, is_running)
    select w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id, w.is_running
    from workloads w join todo t on t.image_digest = w.image_digest and t.is_moved
    on conflict (image_digest, pod_namespace, workload_kind, workload_name, cluster_id) do update set is_running = excluded.is_running
    where s.is_running <> excluded.is_running),
  forgotten as (
    delete from summary_image s using todo t where s.image_digest = t.image_digest and t.is_reread and t.payloads is null),
  noted as (
    insert into summary_image (image_digest, payloads)
    select t.image_digest, t.payloads from todo t where t.is_reread and t.payloads is not null
    on conflict (image_digest) do update set payloads = excluded.payloads)
  select h.is_held,
         (select count(*)::int from todo) as rows,
         case when exists (select from stale s where s.nth > ${REREAD})
              then (select max(t.image_digest) from todo t)
              when (select count(*) from looked) = ${LOOKED_AT}
              then (select max(i.image_digest) from looked i) end as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    if (last !== null) after = last
    return { isHeld: is_held, rows, isLast: last === null }
  })
}

/** How many images the summary knows otherwise than they are. */
export async function countChangedImages(db: Database, windowSecs: number): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  with looked as materialized (
    select l.image_digest from image_link l union select s.image_digest from summary_image s),
  ${found(sql, windowSecs)}
  select count(*)::int as rows from stale`,
  )
  return row!.rows
}
