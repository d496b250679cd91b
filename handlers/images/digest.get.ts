import { z } from 'zod'
import { access, charge, kib, NoParameters, noData, params, query, route, sendJson } from '../../lib/http/index.ts'
import { digest, ImageRecord, ImageSelf, ImageWorkload } from '../../lib/images/index.ts'
import { plainColumns, plainRow, plainRows } from '../../lib/records/index.ts'

const MAX_WORKLOADS = 500
/** The read budget is charged this for each workload. */
const WORKLOAD_BYTES = 2_048
const CHARGE_KIB = kib((MAX_WORKLOADS + 2) * WORKLOAD_BYTES)

const Params = z.object({ digest })

const IMAGE = plainColumns(ImageSelf, 'm')
const IMAGE_COLUMNS = Object.keys(ImageSelf.shape).length
const WORKLOAD = plainColumns(ImageWorkload, 'w')

/**
 * GET /images/{digest}: an image and the containers that run or ran it, running ones first (docs/contract.md#images).
 */
export default route({
  summary: 'Get an image and the containers that run it',
  answer: ImageRecord,
  also: { 404: 'No data found' },
}).get('/images/:digest', access('read'), params(Params), query(NoParameters), charge(CHARGE_KIB), async (c) => {
  const { db, config } = c.get('deps')
  const { digest } = c.req.valid('param')
  const rows = await db.read((sql) =>
    sql`
        select ${sql.unsafe(IMAGE)}, ${sql.unsafe(WORKLOAD)}
        from image m
        left join lateral (
          select w.*, w.pod_namespace as namespace, ran_as_init(w.container_kind, w.state) as ran_as_init,
                 is_running(w, ${config.imageRunningWindowSecs}) as running
          from workload_container w where w.image_digest = m.digest
          order by running desc, w.pod_namespace, w.workload_kind, w.workload_name, w.container_name, w.cluster_id
          limit ${MAX_WORKLOADS + 1}) w on true
        where m.digest = ${digest}`.raw(),
  )
  const [first] = rows
  if (!first) throw noData()
  const workloads = rows.slice(0, MAX_WORKLOADS).filter((row) => row[IMAGE_COLUMNS] !== null)
  const image = plainRow(ImageSelf, first).toString().slice(0, -1)
  const list = plainRows(ImageWorkload, workloads, IMAGE_COLUMNS)
  return sendJson(c, `${image},"workloads":[${list}],"truncated":${rows.length > MAX_WORKLOADS}}`)
})
