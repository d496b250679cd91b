import { z } from 'zod'
import { batchedWrite } from '../../lib/db/batcher.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { recordInventory, runningContainers, runningDigests } from '../../lib/images/index.ts'
import { exactJson } from '../../lib/json/exact-integers.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import {
  echoOf,
  hasOwner,
  labelsHash,
  namedPorts,
  normalizePod,
  PodEcho,
  PodPost,
  PodRecord,
  uidOf,
} from '../../lib/pods/index.ts'

/** A pod with its running containers, null where the post does not say, the digests of their images, and its ports. */
interface RunningPod extends PodRecord {
  running_containers: string[] | null
  image_digests: string[]
  named_ports: Record<string, number> | null
}

const upsert = batchedWrite<RunningPod>({
  key: (pod) => pod.pod_name,
  run: (db, pods) => {
    const rows = pods.map((pod) => ({
      ...pod,
      pod_uid: uidOf(pod.pod_obj),
      has_owner: hasOwner(pod.pod_obj),
      labels_hash: labelsHash(pod.pod_obj),
    }))
    return db.ingest((sql) => sql`select upsert_pods(${exactJson(rows)}::text::json)`)
  },
})

// A malformed value in the first two never refuses the pod. Only the part of the manifest that is kept is checked.
const tolerated = ['containers', 'pod_security', 'pod_obj']

/** POST /pod/spec: upserts a pod by name, then its image inventory (docs/contract.md#pods, docs/contract.md#images). */
export default route({
  summary: 'Create or update a pod',
  description:
    'The name is the key. Returns the record as posted and normalised. `containers` feed the inventory of images.',
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
    named_ports: namedPorts(post.pod_obj ?? null),
  })
  await recordInventory(deps, post)
  return sendJson(c, exactJson(pod))
})
