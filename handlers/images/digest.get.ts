import { z } from 'zod'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { params } from '../../lib/http/validate.ts'
import { digest, ImageRecord } from '../../lib/images/index.ts'

const MAX_WORKLOADS = 500
/** Bytes a workload may cost while its list is built (interop-core 6.1). */
const WORKLOAD_BYTES = 2_048

const Params = z.object({ digest })

/** GET /images/{digest}: an image, and the containers that run or ran it, the running first (interop-core 9.5); 404 `No data found`. */
export default route({
  summary: 'An image and the containers that run it or ran it',
  answer: ImageRecord,
  also: { 404: 'No data found' },
}).get('/images/:digest', access('read'), params(Params), charge(kib((MAX_WORKLOADS + 2) * WORKLOAD_BYTES)), async (c) => {
  const { db, config } = c.get('deps')
  const { digest } = c.req.valid('param')
  const bytes = await db.read.json(
    (sql) => sql`
        select json_build_object(
          'digest', m.digest, 'repository', m.repository, 'tags', array_to_json(m.tags), 'digestKind', m.digest_kind,
          'firstSeen', wire_time(m.first_seen), 'lastSeen', wire_time(m.last_seen),
          'workloads', (
            select coalesce(json_agg(json_build_object(
              'clusterId', w.cluster_id, 'namespace', w.pod_namespace, 'workloadKind', w.workload_kind,
              'workloadName', w.workload_name, 'containerName', w.container_name, 'containerKind', w.container_kind,
              'imageRef', w.image_ref, 'firstSeen', wire_time(w.first_seen), 'lastSeen', wire_time(w.last_seen),
              'state', w.state, 'stateReason', w.state_reason, 'ranAsInit', ran_as_init(w.container_kind, w.state),
              'running', w.is_running)), '[]')
            from (select w.*, is_running(w, ${config.imageRunningWindowSecs}) as is_running
                  from workload_container w where w.image_digest = m.digest
                  order by is_running desc, w.pod_namespace, w.workload_kind, w.workload_name, w.container_name, w.cluster_id
                  limit ${MAX_WORKLOADS}) w),
          'truncated', exists (select from workload_container w where w.image_digest = m.digest offset ${MAX_WORKLOADS}))
        from image m where m.digest = ${digest}`,
  )
  if (!bytes) throw noData()
  return sendJson(c, bytes)
})
