/** What the database knows of the images that a workload runs (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import type { WorkloadKey } from '../built.ts'
import type { InventoryRow } from '../inventory.ts'
import { MAX_SIGNERS } from '../record/images.ts'
import { runningPairs } from './containers.ts'

/** Vulnerabilities that a finding names. */
export const MAX_NAMED = 5
/** Characters of a signer that are read; fewer bytes are shown. */
const MAX_SIGNER_CHARS = 512

/** A signer that a verified signature names. */
export interface SignerFacts {
  readonly kind: 'keyless' | 'key'
  readonly issuer: string | null
  readonly san: string | null
  readonly keyName: string | null
  readonly keyFingerprint: string | null
}

/** The result of the last check of an image, within its retention time. */
export interface SignatureFacts {
  readonly digest: string
  readonly verdict: string
  readonly reason: string | null
  /** RFC 3339 with `Z`. */
  readonly checkedAt: string
  /** Distinct, in the order of the signatures, cut at `MAX_SIGNERS`; those without an identity are left out. */
  readonly signers: readonly SignerFacts[]
  /** How many there are without the cut. */
  readonly signerCount: number
}

/** Vulnerabilities with the same severity and tier. */
export interface VulnerabilityGroup {
  /** The index in `SEVERITIES` of findings. */
  readonly severity: number
  /** The index in `TIER_POSITIONS`. */
  readonly tier: number
  readonly count: number
  readonly fixable: number
  readonly inUse: number
  /** The first `MAX_NAMED`, by score. */
  readonly ids: readonly string[]
}

export interface ImageFacts {
  /** A digest that was never checked has none. */
  readonly signatures: readonly SignatureFacts[]
  /** The running digests of which a report of vulnerabilities was counted. */
  readonly scanned: readonly string[]
  /** RFC 3339 with `Z`; null where no digest was scanned. */
  readonly oldestScanAt: string | null
  /** The distinct vulnerabilities of the scanned digests, the most urgent group first. */
  readonly vulnerabilities: readonly VulnerabilityGroup[]
}

export const NO_FACTS: ImageFacts = { signatures: [], scanned: [], oldestScanAt: null, vulnerabilities: [] }

// A report counts once the summary has its vulnerabilities: before that, none in `image_cve` does not mean that there
// are none. States of use and tiers are those of `count_cves`, for the containers of one workload. Nothing is unused
// where the use of the image is not current. Rows of `package_use` are looked up, since an image may have many users.
const READ = fixed<[ImageFacts]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as workload_kind, $3::text as workload_name, $4::text::json as pairs,
           retention_start($5::integer) as retention_start),
  pairs as materialized (
    select p.container, p.digest from asked a cross join json_to_recordset(a.pairs) p(container text, digest text)),
  digests as materialized (select distinct p.digest collate "C" as digest from pairs p),
  signatures as materialized (
    select t.digest, t.verdict, t.reason, wire_time(t.checked_at) || 'Z' as "checkedAt",
           coalesce(s.signers, '[]') as signers, s.signer_count as "signerCount"
    from asked a
    cross join digests d
    join image_attestation t on t.digest = d.digest and t.checked_at >= a.retention_start
    cross join lateral (
      select count(*) as signer_count,
             json_agg(json_build_object('kind', u.kind, 'issuer', u.issuer, 'san', u.san, 'keyName', u.key_name,
                                        'keyFingerprint', u.key_fingerprint)
                      order by u.nth) filter (where u.place <= ${MAX_SIGNERS}) as signers
      from (
        select g.*, row_number() over (order by g.nth) as place
        from (
          select e.kind, e.issuer, e.san, e.key_name, e.key_fingerprint, min(e.nth) as nth
          from (
            select 'keyless' as kind, left(x.s ->> 'issuer', ${MAX_SIGNER_CHARS}) as issuer,
                   left(x.s ->> 'san', ${MAX_SIGNER_CHARS}) as san, null as key_name, null as key_fingerprint, x.nth
            from json_array_elements(t.verified_signatures::json) with ordinality x(s, nth)
            where t.verdict = 'verified' and x.s ->> 'signerKind' is distinct from 'key'
              and x.s ->> 'issuer' ~ '\\S' and x.s ->> 'san' ~ '\\S'
            union all
            select 'key', null, null, left(x.s ->> 'keyName', ${MAX_SIGNER_CHARS}),
                   left(x.s ->> 'keyFingerprint', ${MAX_SIGNER_CHARS}), x.nth
            from json_array_elements(t.verified_signatures::json) with ordinality x(s, nth)
            where t.verdict = 'verified' and x.s ->> 'signerKind' = 'key' and x.s ->> 'keyFingerprint' ~ '\\S') e
          group by e.kind, e.issuer, e.san, e.key_name, e.key_fingerprint) g) u) s),
  reports as materialized (
    select d.digest, r.scanned_at
    from digests d
    cross join lateral (
      select min(i.scanned_at) as scanned_at
      from answering_reports(d.digest, 'vulnerabilities') e
      join image_report i on i.digest = e.digest and i.source = e.source and i.kind = 'vulnerabilities'
      where e.join_rank < 4) r
    cross join lateral (
      select from summary_image s
      where s.image_digest = d.digest and s.payloads ~ '(^|\\n)vulnerabilities '
      offset 0) s
    where r.scanned_at is not null),
  containers as materialized (
    select p.container, p.digest, u.image_digest is not null and u.reason is null as is_watched, u.exposure
    from asked a
    cross join pairs p
    left join lateral (
      select u.image_digest, u.reason, u.exposure
      from container_use u
      where u.image_digest = p.digest and u.pod_namespace = a.namespace and u.workload_kind = a.workload_kind
        and u.workload_name = a.workload_name and u.container_name = p.container and u.cluster_id = 'primary'
      offset 0) u on true),
  current_use as materialized (
    select r.digest
    from reports r
    where exists (select from containers c where c.digest = r.digest and c.is_watched) and is_use_current(r.digest)),
  hits as materialized (
    select c.*
    from reports r
    cross join lateral (select c.* from image_cve c where c.image_digest = r.digest offset 0) c),
  packages as materialized (
    select distinct h.image_digest, p.name collate "C" as name from hits h cross join unnest(h.used_packages) p(name)),
  used as materialized (
    select h.vuln_id, h.image_digest, k.container
    from (
      select p.image_digest, p.name, c.container
      from asked a
      cross join packages p
      join containers c on c.digest = p.image_digest
      cross join lateral (
        select from package_use k
        where k.image_digest = p.image_digest and k.package_name = p.name and k.pod_namespace = a.namespace
          and k.workload_kind = a.workload_kind and k.workload_name = a.workload_name
          and k.container_name = c.container and k.cluster_id = 'primary'
        offset 0) k) k
    join (select h.vuln_id, h.image_digest, p.name from hits h cross join unnest(h.used_packages) p(name)) h
      on h.image_digest = k.image_digest and h.name = k.name
    group by h.vuln_id, h.image_digest, k.container),
  judged as materialized (
    select h.vuln_id, h.image_digest, h.severity, h.is_fixable, h.max_score, bool_or(u.vuln_id is not null) as is_used,
           bool_or(w.is_live) as is_live,
           coalesce(bool_or(coalesce(c.exposure = 'exposed', r.unknown_is_exposed)) filter (where w.is_live), false)
             as is_exposed
    from tier_rule r
    cross join hits h
    join containers c on c.digest = h.image_digest
    left join used u on u.vuln_id = h.vuln_id and u.image_digest = h.image_digest and u.container = c.container
    left join current_use n on n.digest = h.image_digest
    cross join lateral (
      select u.vuln_id is not null or not c.is_watched or not h.is_provable or n.digest is null as is_live) w
    where r.is_only
    group by h.vuln_id, h.image_digest, h.severity, h.is_fixable, h.max_score),
  cves as materialized (
    select j.vuln_id, min(j.severity) as severity, bool_or(j.is_fixable) as is_fixable, max(j.max_score) as max_score,
           bool_or(j.is_used) as is_used,
           min(tier_of(j.is_live, j.severity, j.is_fixable, f.kev or f.epss >= r.epss, j.is_exposed)) as tier
    from tier_rule r
    cross join judged j
    left join lateral (select f.kev, f.epss from cve_fact f where f.vuln_id = j.vuln_id offset 0) f on true
    where r.is_only
    group by j.vuln_id),
  groups as materialized (
    select c.severity, c.tier, count(*) as count, count(*) filter (where c.is_fixable) as fixable,
           count(*) filter (where c.is_used) as "inUse",
           (array_agg(c.vuln_id order by c.max_score desc nulls last, c.vuln_id))[:${MAX_NAMED}] as ids
    from cves c
    group by c.severity, c.tier)
  select (select coalesce(json_agg(s order by s.digest), '[]') from signatures s) as signatures,
         (select coalesce(json_agg(r.digest order by r.digest), '[]') from reports r) as scanned,
         (select wire_time(min(r.scanned_at)) || 'Z' from reports r) as "oldestScanAt",
         (select coalesce(json_agg(g order by g.tier, g.severity), '[]') from groups g) as vulnerabilities`)

/**
 * Reads the signatures and vulnerabilities of the images that a workload runs. `rows` is its inventory,
 * `retentionDays` how long results of signature checks are kept (0: for ever). Nothing is asked where nothing runs.
 */
export async function readImageFacts(
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  rows: readonly InventoryRow[],
  { retentionDays }: { readonly retentionDays: number },
): Promise<ImageFacts> {
  const pairs = runningPairs(rows).map(({ container, digest }) => ({ container, digest }))
  if (pairs.length === 0) return NO_FACTS
  const [facts] = await gate((sql) => READ(sql, namespace, kind, name, JSON.stringify(pairs), retentionDays))
  return facts!
}
