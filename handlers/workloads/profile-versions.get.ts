import { z } from 'zod'
import { fixed } from '../../lib/db/index.ts'
import { access, chargeRows, codedErrors, pageLimit, params, query, route, sendJson } from '../../lib/http/index.ts'
import { isKnownWorkload, WORKLOAD_REFUSALS, workloadNotFound } from '../../lib/profile/known.ts'
import { ProfilePath } from '../../lib/profile/path.ts'
import { CORE_DIMENSIONS } from '../../lib/profile/record/common.ts'
import {
  canonicalJson,
  type DimensionHashes,
  revisionOrNull,
  type Version,
  VersionPage,
} from '../../lib/profile/versions/index.ts'

const DEFAULT_VERSIONS = 50
const MAX_VERSIONS = 200
/** The read budget is charged this for each version. */
const VERSION_BYTES = 1_024

const Query = z.object({
  limit: pageLimit(DEFAULT_VERSIONS, MAX_VERSIONS),
  before: revisionOrNull('Only revisions below this one'),
})

interface Row extends Omit<Version, 'changedDimensions'> {
  /** Of the revision before; null where it is gone. */
  readonly hashes_before: DimensionHashes | null
}

const READ = fixed<Row[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as name, $4::integer as before, $5::integer as most)
  select v.revision, v.content_hash as "contentHash", wire_time(v.created_at) || 'Z' as "createdAt",
         v.dimension_hashes as "dimensionHashes", v.posture, o.dimension_hashes as hashes_before
  from asked a
  cross join lateral (
    select v.*
    from workload_profile_version v
    where v.pod_namespace = a.namespace and v.workload_kind = a.kind and v.workload_name = a.name
      and v.cluster_id = 'primary' and v.revision < coalesce(a.before::bigint, 1::bigint << 31)
    order by v.revision desc
    limit a.most) v
  left join workload_profile_version o
    on o.pod_namespace = a.namespace and o.workload_kind = a.kind and o.workload_name = a.name
   and o.revision = v.revision - 1 and o.cluster_id = 'primary'
  order by v.revision desc`)

function versionOf({ hashes_before: before, ...row }: Row): Version {
  if (row.revision === 1) return { ...row, changedDimensions: [...CORE_DIMENSIONS] }
  const isChanged = (one: keyof DimensionHashes) => before?.[one] !== row.dimensionHashes[one]
  return { ...row, changedDimensions: before && CORE_DIMENSIONS.filter(isChanged) }
}

/**
 * GET /workloads/{namespace}/{kind}/{name}/profile/versions: the states that a workload was in, the newest first
 * (docs/contract.md#workload-profiles).
 */
export default route({
  summary: 'List the versions of the profile of a workload',
  answer: VersionPage,
  also: WORKLOAD_REFUSALS,
}).get(
  '/workloads/:namespace/:kind/:name/profile/versions',
  access('read'),
  codedErrors,
  params(ProfilePath),
  query(Query, { unknown: 'ignored' }),
  chargeRows<typeof Query>(VERSION_BYTES, 1),
  async (c) => {
    const { read } = c.get('deps').db
    const workload = c.req.valid('param')
    const { namespace, kind, name } = workload
    const { limit, before } = c.req.valid('query')
    const rows = await read((sql) => READ(sql, namespace, kind, name, before, limit + 1))
    if (rows.length === 0 && !(await isKnownWorkload(read, workload))) throw workloadNotFound(workload)
    const items = rows.slice(0, limit).map(versionOf)
    const nextBefore = rows.length > limit ? items.at(-1)!.revision : null
    return sendJson(c, canonicalJson({ namespace, kind, name, items, nextBefore }))
  },
)
