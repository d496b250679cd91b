import { z } from 'zod'
import { foldedWrite } from '../../lib/db/folded.ts'
import { access, body, MAX_CORE_BODY_BYTES, route, sendJson } from '../../lib/http/index.ts'
import { recordInventory, runningContainers, runningDigests } from '../../lib/images/index.ts'
import { exactJson } from '../../lib/json/exact-integers.ts'
import { echoOf, normalizePod, PodEcho, PodPost, PodRecord, uidOf } from '../../lib/pods/index.ts'

/** A pod, and the containers that run in it where the post says, with the digests of their images. */
interface RunningPod extends PodRecord {
  running_containers: string[] | null
  image_digests: string[]
}

const upsert = foldedWrite<RunningPod>({
  key: (pod) => pod.pod_name,
  run: (db, pods) => {
    const rows = pods.map((pod) => ({ ...pod, pod_uid: uidOf(pod.pod_obj) }))
    return db.ingest((sql) => sql`select upsert_pods(${exactJson(rows)}::text::json)`)
  },
})

// Whatever they hold, the pod is written (interop-core 1.1).
const tolerated = ['containers', 'pod_security']

/** POST /pod/spec: upserts a pod by its name, then its image inventory; answers the record as posted, normalised (interop-core 1.1). */
export default route({
  summary: 'Upserts a pod by its name; answers the record as posted, normalised',
  answer: z.union([PodRecord, PodEcho]),
}).post('/pod/spec', access('ingest'), body(PodPost, MAX_CORE_BODY_BYTES, { tolerated }), async (c) => {
  const deps = c.get('deps')
  const { db, log } = deps
  const post = c.req.valid('json')
  deps.agentClocks.note(post.node_name, post.time_stamp)
  if (post.pod_name.trim() === '') {
    log.warn({ node: post.node_name }, 'pod without a name: nothing written')
    return sendJson(c, exactJson(echoOf(post)))
  }
  const pod = normalizePod(post, (message) => log.warn({ pod: post.pod_name, node: post.node_name }, message))
  const { containers } = post
  await upsert(db, {
    ...pod,
    running_containers: runningContainers(containers),
    image_digests: runningDigests(containers),
  })
  await recordInventory(deps, post)
  return sendJson(c, exactJson(pod))
})
