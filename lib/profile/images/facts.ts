/** Reads the signatures and vulnerabilities of the images that a workload runs (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import type { WorkloadKey } from '../built.ts'
import type { InventoryRow } from '../inventory.ts'
import { MAX_SIGNERS } from '../record/images.ts'
import { runningPairs } from './containers.ts'

/** Vulnerabilities of a group, and of a finding, that are named; `vulnerabilities_of_workload` has the same number. */
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
// are none.
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
            where t.verdict = 'verified' and coalesce(x.s ->> 'signerKind', '') <> 'key'
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
  groups as materialized (
    select v.severity, v.tier, v.count, v.fixable, v.in_use as "inUse", v.ids
    from asked a
    cross join (
      select array_agg(p.container) as containers, array_agg(p.digest) as digests,
             array_agg(u.is_current) as are_current
      from (select r.digest, is_use_current(r.digest) as is_current from reports r) u
      join pairs p on p.digest = u.digest) s
    cross join lateral vulnerabilities_of_workload(
      a.namespace, a.workload_kind, a.workload_name, s.containers, s.digests, s.are_current) v
    where s.digests is not null)
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
