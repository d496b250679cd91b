import { z } from 'zod'
import {
  access,
  charge,
  kib,
  NoParameters,
  noData,
  params,
  pathText,
  query,
  route,
  sendJson,
} from '../../lib/http/index.ts'
import { ContainerDigest, WorkloadContainers } from '../../lib/images/index.ts'
import { plainColumns, plainRows, type RawRow } from '../../lib/records/index.ts'

const MAX_ROWS = 256
/** The read budget is charged this for each row. */
const ROW_BYTES = 2_048

const Params = z.object({
  namespace: pathText.describe('The namespace of a workload.'),
  kind: pathText.describe('Its kind, `Pod` for a bare pod.'),
  name: pathText.describe('Its name.'),
})

const DIGEST = plainColumns(ContainerDigest, 'w')
/** The column after the three that identify a container. */
const IS_RUNNING = 3

const inOrder = (a: RawRow, b: RawRow) =>
  Buffer.compare(a[0]!, b[0]!) || Buffer.compare(a[1]!, b[1]!) || Buffer.compare(a[2]!, b[2]!)

/** The JSON of a container, from the rows of its digests. */
function shown(rows: readonly RawRow[]): string {
  const [clusterId, containerName, containerKind] = rows[0]!.map(String)
  const running = rows.filter((row) => String(row[IS_RUNNING]) === 'true')
  const previous = rows.slice(running.length)
  const container = JSON.stringify({ clusterId, containerName, containerKind, mixedDigests: running.length > 1 }).slice(
    0,
    -1,
  )
  const digests = (some: readonly RawRow[]) => `[${plainRows(ContainerDigest, some, IS_RUNNING + 1)}]`
  return `${container},"digests":${digests(running)},"previousDigests":${digests(previous)}}`
}

/**
 * GET /workloads/{namespace}/{kind}/{name}/containers: the containers of a workload with the digests that they run and
 * ran, newest first (docs/contract.md#images). Above `MAX_ROWS` the oldest rows that do not run are left out.
 */
export default route({
  summary: 'List the containers of a workload and their images',
  answer: WorkloadContainers,
  also: { 404: 'No data found' },
}).get(
  '/workloads/:namespace/:kind/:name/containers',
  access('read'),
  params(Params),
  query(NoParameters),
  charge(kib((MAX_ROWS + 1) * ROW_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { namespace, kind, name } = c.req.valid('param')
    const windowSecs = config.imageRunningWindowSecs
    const found = await db.read((sql) =>
      sql`
        select w.cluster_id, w.container_name, w.container_kind, w.is_running::text, ${sql.unsafe(DIGEST)}
        from (select w.*, w.image_digest as digest, ran_as_init(w.container_kind, w.state) as ran_as_init,
                     is_running(w, ${windowSecs})
              from workload_container w
              where w.pod_namespace = ${namespace} and w.workload_kind = ${kind} and w.workload_name = ${name}) w
        order by w.is_running desc, w.last_seen desc, w.container_name, w.image_digest, w.cluster_id
        limit ${MAX_ROWS + 1}`.raw(),
    )
    if (found.length === 0) throw noData()
    const containers = new Map<string, RawRow[]>()
    for (const row of found.slice(0, MAX_ROWS)) {
      const key = JSON.stringify(row.slice(0, IS_RUNNING).map(String))
      containers.set(key, [...(containers.get(key) ?? []), row])
    }
    const list = [...containers.values()].sort(([a], [b]) => inOrder(a!, b!)).map(shown)
    const workload = JSON.stringify({ namespace, kind, name, runningWindowSeconds: windowSecs }).slice(0, -1)
    return sendJson(c, `${workload},"containers":[${list}],"truncated":${found.length > MAX_ROWS}}`)
  },
)
