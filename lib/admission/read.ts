import type { Verdict } from '../attestations/index.ts'
import { fixed, type Gate } from '../db/index.ts'
import { clientGone } from '../http/errors.ts'
import { Slice } from '../process/event-loop.ts'
import { Coverage, type Elsewhere, type Result, type Running } from './coverage.ts'
import { type Hold, MAX_CONTAINERS, tooManyContainers, tooManyElsewhere } from './limits.ts'

/** Results that are asked for at a time, and bytes of them after which no other comes along: one may have as many as all the rest. */
const BATCH_DIGESTS = 500
const BATCH_BYTES = 2 * 1024 * 1024

type Row = Running & { readonly containers: number }

const running = (scope: string, windowSecs: string, days: string) => `
  with running as materialized (
    select w.image_digest, w.image_ref
    from workload_container w
    where ${scope} is_running(w, ${windowSecs}::integer)
    limit ${MAX_CONTAINERS + 1})
  select r.image_digest as digest, r.image_ref as reference, i.repository, a.verdict, r.containers
  from (select r.image_digest, r.image_ref, count(*)::integer as containers from running r group by r.image_digest, r.image_ref) r
  left join image i on i.digest = r.image_digest
  left join image_attestation a on a.digest = r.image_digest and a.checked_at >= retention_start(${days}::integer)`

const OF_CLUSTER = fixed<Row[]>(running('', '$1', '$2'))
const OF_NAMESPACE = fixed<Row[]>(running('w.pod_namespace = $1 and', '$2', '$3'))

// The last part of the name alone, which tells most of them apart, whatever the registry is called; and nothing of the inventory, since policies go
// by what pods write.
const ELSEWHERE = fixed<(Elsewhere & { readonly containers: number })[]>(`
  with running as materialized (
    select w.image_digest, w.image_ref, w.pod_namespace
    from workload_container w
    where w.pod_namespace <> $1
      and split_part(regexp_replace(split_part(btrim(w.image_ref), '@', 1), '^.*/', ''), ':', 1) = any (string_to_array($2, '/'))
      and is_running(w, $3::integer)
    limit ${MAX_CONTAINERS + 1})
  select r.image_digest as digest, r.image_ref as reference, r.pod_namespace as namespace, a.verdict, r.containers
  from (select r.image_digest, r.image_ref, r.pod_namespace, count(*)::integer as containers from running r
        group by r.image_digest, r.image_ref, r.pod_namespace) r
  left join image_attestation a on a.digest = r.image_digest and a.checked_at >= retention_start($4::integer)`)

// In the order of the digests, as many as have come before the bytes are spent: what is not sent is asked for again.
const RESULTS = fixed<{ verdict: Verdict | null; signatures: string | null; attestations: string | null }[]>(`
  select r.verdict, r.signatures, r.attestations
  from (select d.n, a.verdict,
               case when a.verdict = 'verified' then a.verified_signatures end as signatures,
               case when a.verdict = 'verified' then a.verified_attestations end as attestations,
               coalesce(sum(octet_length(a.verified_signatures) + octet_length(a.verified_attestations))
                          over (order by d.n rows between unbounded preceding and 1 preceding), 0) as bytes_before
        from unnest(string_to_array($1, ',')) with ordinality d(digest, n)
        left join image_attestation a on a.digest = d.digest and a.checked_at >= retention_start($2::integer)) r
  where r.bytes_before < ${BATCH_BYTES}
  order by r.n`)

export interface Scope {
  /** Null for the cluster. */
  readonly namespace: string | null
  /** Whether the policies bind other namespaces, too. */
  readonly isClusterWide: boolean
  /** For how many seconds a container that was reported runs. */
  readonly windowSecs: number
  /** For how many days a result counts after its check; 0 for ever. */
  readonly retentionDays: number
}

/**
/**
 * Reads what the running containers of a namespace, or of the cluster, are signed by; where the policies will bind other
 * namespaces, too, also what runs there under the same names. Few results are held at a time; `hold` hears of what has been
 * kept of the others. Throws 422 for more containers or signers than policies can be generated of, and 499 when `left` tells
 * that nobody waits for them any more.
 */
export async function readCoverage(
  gate: Gate,
  { namespace, isClusterWide, windowSecs, retentionDays }: Scope,
  hold: Hold = () => {},
  left?: AbortSignal,
): Promise<Coverage> {
  const rows = await gate((sql) =>
    namespace === null
      ? OF_CLUSTER(sql, windowSecs, retentionDays)
      : OF_NAMESPACE(sql, namespace, windowSecs, retentionDays),
  )
  if (sumOf(rows) > MAX_CONTAINERS) throw tooManyContainers()
  const coverage = new Coverage()
  const slice = new Slice()
  for (const row of rows) {
    coverage.add(row)
    if (slice.isOver) await slice.next()
  }
  if (isClusterWide && namespace !== null && rows.length > 0) {
    const segments = coverage.lastSegments().join('/')
    const others = await gate((sql) => ELSEWHERE(sql, namespace, segments, windowSecs, retentionDays))
    if (sumOf(rows) + sumOf(others) > MAX_CONTAINERS) throw tooManyElsewhere()
    await coverage.addElsewhere(others, slice)
  }
  const digests = await coverage.digests(slice)
  for (let at = 0; at < digests.length; ) {
    await hold(coverage.heldBytes)
    if (left?.aborted) throw clientGone()
    const batch = digests.slice(at, at + BATCH_DIGESTS)
    const results = await gate((sql) => RESULTS(sql, batch.join(), retentionDays))
    for (const { verdict, signatures, attestations } of results) {
      const isVerified = signatures !== null && attestations !== null
      const result = verdict && {
        verdict,
        signatures: isVerified ? (JSON.parse(signatures) as Result['signatures']) : [],
        attestations: isVerified ? (JSON.parse(attestations) as Result['attestations']) : [],
      }
      coverage.note(digests[at++]!, result)
      if (slice.isOver) await slice.next()
    }
  }
  return coverage
}

const sumOf = (rows: readonly { readonly containers: number }[]): number =>
  rows.reduce((sum, { containers }) => sum + containers, 0)
