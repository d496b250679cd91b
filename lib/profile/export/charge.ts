/** The memory of an export, charged to the read budget (docs/contract.md#workload-profiles, #limits). */
import { fixed, type Gate } from '../../db/index.ts'
import { PREFERRED } from '../../supply-chain/sbom.ts'
import { PROFILE_BYTES } from '../build.ts'
import type { WorkloadKey } from '../built.ts'
import type { ExportQuery } from './query.ts'
import { MAX_STATEMENT_ROWS } from './vex-read.ts'

/** Components of all SBOMs of a bundle. */
export const MAX_COMPONENTS = 10_000
/** Images whose SBOMs are read for a bundle. */
export const MAX_IMAGES = 64

/** The facts of network policies, 20 000 flows and 500 pods. They are gone before other documents are made. */
export const MADE_BYTES = 20_000 * 2_560 + 500 * 4_096
const STATEMENT_BYTES = 512
const COMPONENT_BYTES = 4 * 1_024
/** Copies of a component: in its document, and in the answer, where YAML has it as comments. */
const COPIES = { yaml: 3, 'zip-manifest': 2 } as const

/**
 * Counts the components of the SBOMs that answer for the images of a workload: those that run, and the newest one of a
 * container.
 */
const COUNT = fixed<{ components: string }[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as name, $4::integer as window_secs)
  select coalesce(sum(r.item_count), 0)::text as components
  from (
    select distinct w.image_digest
    from (
      select w.image_digest, is_running(w, a.window_secs) as is_running,
             row_number() over (partition by w.container_name order by w.last_seen desc) as nth
      from asked a
      join workload_container w
        on w.pod_namespace = a.namespace and w.workload_kind = a.kind and w.workload_name = a.name) w
    where w.is_running or w.nth = 1
    limit ${MAX_IMAGES}) i
  cross join lateral (
    select r.item_count
    from answering_reports(i.image_digest, 'sbom') e
    join image_report r on r.digest = e.digest and r.source = e.source and r.kind = 'sbom'
    order by ${PREFERRED}
    limit 1) r`)

/** Bytes that an export takes at most. The components of SBOMs are counted first. */
export async function exportBytes(
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  { artifacts, format }: Pick<ExportQuery, 'artifacts' | 'format'>,
  windowSecs: number,
): Promise<number> {
  const bytes = PROFILE_BYTES + MADE_BYTES + (artifacts.includes('vex') ? MAX_STATEMENT_ROWS * STATEMENT_BYTES : 0)
  if (!artifacts.includes('sbom')) return bytes
  const [row] = await gate((sql) => COUNT(sql, namespace, kind, name, windowSecs))
  return bytes + Math.min(Number(row!.components), MAX_COMPONENTS) * COMPONENT_BYTES * COPIES[format]
}
