import { z } from 'zod'
import { foldedWrite } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { body } from '../../lib/http/validate.ts'
import { echoOf, normalizePod, PodEcho, PodPost, PodRecord, uidOf } from '../../lib/pods/index.ts'

const upsert = foldedWrite<PodRecord>({
  key: (pod) => pod.pod_name,
  run: (db, pods) => {
    const rows = pods.map((pod) => ({ ...pod, pod_uid: uidOf(pod.pod_obj) }))
    return db.ingest((sql) => sql`select upsert_pods(${JSON.stringify(rows)}::text::json)`)
  },
})

/** POST /pod/spec: upserts a pod by its name; answers the record as posted, normalised (interop-core 1.1). */
export default route({
  summary: 'Upserts a pod by its name; answers the record as posted, normalised',
  answer: z.union([PodRecord, PodEcho]),
}).post('/pod/spec', access('ingest'), body(PodPost), async (c) => {
  const { db, log } = c.get('deps')
  const post = c.req.valid('json')
  if (post.pod_name.trim() === '') {
    log.warn({ node: post.node_name }, 'pod without a name: nothing written')
    return sendJson(c, JSON.stringify(echoOf(post)))
  }
  const pod = normalizePod(post, (message) => log.warn({ pod: post.pod_name, node: post.node_name }, message))
  await upsert(db, pod)
  return sendJson(c, JSON.stringify(pod))
})
