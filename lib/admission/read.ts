import type { SignatureVerdict } from '../attestations/index.ts'
import { fixed, type Gate } from '../db/index.ts'
import { clientGone } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import { Coverage, type Elsewhere, type Running, type SignatureResult } from './coverage.ts'
import { MAX_CONTAINERS, type ReserveMemory, tooManyContainers, tooManyElsewhere } from './limits.ts'

/**
 * Results requested at a time, and the bytes after which a batch ends: a single result may be as large as all the
 * others.
 */
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
  from (select r.image_digest, r.image_ref, count(*)::integer as containers
        from running r group by r.image_digest, r.image_ref) r
  left join image i on i.digest = r.image_digest
  left join image_attestation a on a.digest = r.image_digest and a.checked_at >= retention_start(${days}::integer)`

const OF_CLUSTER = fixed<Row[]>(running('', '$1', '$2'))
const OF_WORKLOAD = fixed<Row[]>(
  running('w.pod_namespace = $1 and w.workload_kind = $2 and w.workload_name = $3 and', '$4', '$5'),
)
const OF_NAMESPACE = fixed<Row[]>(running('w.pod_namespace = $1 and', '$2', '$3'))

// Compares the last segment of the name only: it tells most images apart whatever the registry is called. The inventory
// takes no part, since policies match the text of pod specs.
const elsewhere = (scope: string, segments: string, windowSecs: string, days: string) => `
  with running as materialized (
    select w.image_digest, w.image_ref, w.pod_namespace
    from workload_container w
    where ${scope}
      and split_part(regexp_replace(split_part(btrim(w.image_ref), '@', 1), '^.*/', ''), ':', 1)
          = any (string_to_array(${segments}, '/'))
      and is_running(w, ${windowSecs}::integer)
    limit ${MAX_CONTAINERS + 1})
  select r.image_digest as digest, r.image_ref as reference, r.pod_namespace as namespace, a.verdict, r.containers
  from (select r.image_digest, r.image_ref, r.pod_namespace, count(*)::integer as containers from running r
        group by r.image_digest, r.image_ref, r.pod_namespace) r
  left join image_attestation a on a.digest = r.image_digest and a.checked_at >= retention_start(${days}::integer)`

type Other = Elsewhere & { readonly containers: number }

const OTHER_NAMESPACES = fixed<Other[]>(elsewhere('w.pod_namespace <> $1', '$2', '$3', '$4'))
const OTHER_WORKLOADS = fixed<Other[]>(
  elsewhere('w.pod_namespace = $1 and (w.workload_kind, w.workload_name) <> ($2, $3)', '$4', '$5', '$6'),
)

// In digest order, until the bytes of a batch are used up; the rest is requested again.
const RESULTS = fixed<{ verdict: SignatureVerdict | null; signatures: string | null; attestations: string | null }[]>(`
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
  /** Only this workload of the namespace; absent for all of them. */
  readonly workload?: { readonly kind: string; readonly name: string }
  /** Whether the policies bind other namespaces too. */
  readonly isClusterWide: boolean
  /** Seconds for which a reported container counts as running. */
  readonly windowSecs: number
  /** Days that a result counts after its check; 0 for ever. */
  readonly retentionDays: number
}

/**
 * Reads the signers of the running images of a workload, a namespace or the cluster, and of images with the same names
 * in other workloads or namespaces if the policies bind these too. Results are read in batches; `reserve` is given the
 * bytes kept of them. Throws 422 for more containers or signers than one answer covers, and 499 when `disconnected` fires.
 */
export async function readCoverage(
  gate: Gate,
  scope: Scope,
  reserve: ReserveMemory = () => {},
  disconnected?: AbortSignal,
): Promise<Coverage> {
  const { retentionDays } = scope
  const rows = await readRunning(gate, scope)
  if (sumOf(rows) > MAX_CONTAINERS) throw tooManyContainers()
  const coverage = new Coverage()
  const slice = new Slice()
  for (const row of rows) {
    coverage.add(row)
    if (slice.isOver) await slice.next()
  }
  const others = rows.length === 0 ? [] : await readOthers(gate, scope, coverage.lastSegments().join('/'))
  if (others.length > 0) {
    if (sumOf(rows) + sumOf(others) > MAX_CONTAINERS) throw tooManyElsewhere()
    await coverage.addElsewhere(others, slice)
  }
  const digests = await coverage.digests(slice)
  for (let at = 0; at < digests.length; ) {
    await reserve(coverage.estimatedBytes)
    if (disconnected?.aborted) throw clientGone()
    const batch = digests.slice(at, at + BATCH_DIGESTS)
    const results = await gate((sql) => RESULTS(sql, batch.join(), retentionDays))
    for (const { verdict, signatures, attestations } of results) {
      const isVerified = signatures !== null && attestations !== null
      const result = verdict && {
        verdict,
        signatures: isVerified ? (JSON.parse(signatures) as SignatureResult['signatures']) : [],
        attestations: isVerified ? (JSON.parse(attestations) as SignatureResult['attestations']) : [],
      }
      coverage.addResult(digests[at++]!, result)
      if (slice.isOver) await slice.next()
    }
  }
  return coverage
}

function readRunning(gate: Gate, { namespace, workload, windowSecs, retentionDays }: Scope): Promise<Row[]> {
  return gate((sql) =>
    namespace === null
      ? OF_CLUSTER(sql, windowSecs, retentionDays)
      : workload === undefined
        ? OF_NAMESPACE(sql, namespace, windowSecs, retentionDays)
        : OF_WORKLOAD(sql, namespace, workload.kind, workload.name, windowSecs, retentionDays),
  )
}

/** Containers outside the scope whose images have names of the scope, which its policies therefore bind too. */
async function readOthers(gate: Gate, scope: Scope, segments: string): Promise<Other[]> {
  const { namespace, workload, isClusterWide, windowSecs, retentionDays } = scope
  if (namespace === null) return []
  if (workload !== undefined)
    return gate((sql) =>
      OTHER_WORKLOADS(sql, namespace, workload.kind, workload.name, segments, windowSecs, retentionDays),
    )
  return isClusterWide ? gate((sql) => OTHER_NAMESPACES(sql, namespace, segments, windowSecs, retentionDays)) : []
}

const sumOf = (rows: readonly { readonly containers: number }[]): number =>
  rows.reduce((sum, { containers }) => sum + containers, 0)
