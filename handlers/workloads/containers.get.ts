import { z } from 'zod'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { pathText } from '../../lib/http/fields.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { params } from '../../lib/http/validate.ts'
import { WorkloadContainers } from '../../lib/images/index.ts'

const MAX_ROWS = 256
/** Bytes a row may cost while its list is built (interop-core 6.1). */
const ROW_BYTES = 2_048

const Params = z.object({
  namespace: pathText.describe('The namespace of a workload.'),
  kind: pathText.describe('Its kind, `Pod` for a bare pod.'),
  name: pathText.describe('Its name.'),
})

/**
 * GET /workloads/{namespace}/{kind}/{name}/containers: the containers of a workload with the digests that they run, and those that
 * they ran, newest first (interop-core 9.5); 404 `No data found`. Of more rows than the list may have, the oldest that do not
 * run are left out.
 */
export default route({
  summary: 'The containers of a workload and their digests',
  answer: WorkloadContainers,
  also: { 404: 'No data found' },
}).get(
  '/workloads/:namespace/:kind/:name/containers',
  access('read'),
  params(Params),
  charge(kib((MAX_ROWS + 1) * ROW_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { namespace, kind, name } = c.req.valid('param')
    const windowSecs = config.imageRunningWindowSecs
    const bytes = await db.read.json(
      (sql) => sql`
        with listed as materialized (
          select w.*, is_running(w, ${windowSecs}) as is_running
          from workload_container w
          where w.pod_namespace = ${namespace} and w.workload_kind = ${kind} and w.workload_name = ${name}
          order by is_running desc, w.last_seen desc, w.container_name, w.image_digest, w.cluster_id
          limit ${MAX_ROWS}),
        entry as (
          select l.*, json_build_object(
              'digest', l.image_digest, 'imageRef', l.image_ref, 'securityContext', l.security_context, 'podSecurity', l.pod_security,
              'lastPodName', l.last_pod_name, 'firstSeen', wire_time(l.first_seen), 'lastSeen', wire_time(l.last_seen),
              'state', l.state, 'stateReason', l.state_reason, 'ranAsInit', ran_as_init(l.container_kind, l.state)) as entry
          from listed l),
        container as (
          select e.cluster_id, e.container_name, e.container_kind, json_build_object(
              'clusterId', e.cluster_id, 'containerName', e.container_name, 'containerKind', e.container_kind,
              'mixedDigests', count(*) filter (where e.is_running) > 1,
              'digests', coalesce(json_agg(e.entry order by e.last_seen desc, e.image_digest) filter (where e.is_running), '[]'),
              'previousDigests',
                coalesce(json_agg(e.entry order by e.last_seen desc, e.image_digest) filter (where not e.is_running), '[]')) as entry
          from entry e
          group by e.cluster_id, e.container_name, e.container_kind)
        select json_build_object(
          'namespace', ${namespace}::text, 'kind', ${kind}::text, 'name', ${name}::text, 'runningWindowSeconds', ${windowSecs}::int,
          'containers', json_agg(c.entry order by c.cluster_id, c.container_name, c.container_kind),
          'truncated', exists (
            select from workload_container w
            where w.pod_namespace = ${namespace} and w.workload_kind = ${kind} and w.workload_name = ${name} offset ${MAX_ROWS}))
        from container c
        having count(*) > 0`,
    )
    if (!bytes) throw noData()
    return sendJson(c, bytes)
  },
)
