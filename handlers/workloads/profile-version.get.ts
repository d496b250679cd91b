import { fixed } from '../../lib/db/index.ts'
import { access, charge, codedErrors, kib, NoParameters, params, query, route, sendJson } from '../../lib/http/index.ts'
import { ProfilePath } from '../../lib/profile/path.ts'
import {
  canonicalJson,
  revisionNotFound,
  revisionSegment,
  VERSION_REFUSALS,
  type VersionPosture,
  WholeVersion,
} from '../../lib/profile/versions/index.ts'

/** The read budget is charged this: a snapshot of 2 000 rules between workloads with names of usual length. */
const VERSION_BYTES = 128 * 1_024

const Params = ProfilePath.extend({ revision: revisionSegment })

interface Row {
  readonly contentHash: string
  readonly createdAt: string
  readonly dimensionHashes: object
  readonly posture: VersionPosture
  /** Canonical JSON. */
  readonly snapshot_text: string
}

const READ = fixed<Row[]>(`
  select v.content_hash as "contentHash", wire_time(v.created_at) || 'Z' as "createdAt",
         v.dimension_hashes as "dimensionHashes", v.posture, v.snapshot::text as snapshot_text
  from workload_profile_version v
  where v.pod_namespace = $1::text and v.workload_kind = $2::text and v.workload_name = $3::text
    and v.revision = $4::integer and v.cluster_id = 'primary'`)

/**
 * GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision}: one state that a workload was in
 * (docs/contract.md#workload-profiles).
 */
export default route({
  summary: 'Show a version of the profile of a workload',
  answer: WholeVersion,
  also: VERSION_REFUSALS,
}).get(
  '/workloads/:namespace/:kind/:name/profile/versions/:revision',
  access('read'),
  codedErrors,
  params(Params),
  query(NoParameters, { unknown: 'ignored' }),
  charge(kib(VERSION_BYTES)),
  async (c) => {
    const { read } = c.get('deps').db
    const { revision, ...workload } = c.req.valid('param')
    const { namespace, kind, name } = workload
    const [row] = await read((sql) => READ(sql, namespace, kind, name, revision))
    if (row === undefined) throw await revisionNotFound(read, workload, `no version ${revision} is stored`)
    // The snapshot is sent as it is stored, and its key is the last one.
    const { snapshot_text: snapshot, ...version } = row
    return sendJson(c, `${canonicalJson({ ...version, ...workload, revision }).slice(0, -1)},"snapshot":${snapshot}}`)
  },
)
