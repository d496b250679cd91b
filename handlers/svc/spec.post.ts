import { batchedWrite } from '../../lib/db/batcher.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { exactJson } from '../../lib/json/exact-integers.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import { uidOf } from '../../lib/pods/index.ts'
import {
  echoOfService,
  hasClusterAddress,
  normalizeService,
  ServicePost,
  ServiceRecord,
} from '../../lib/services/index.ts'

const upsert = batchedWrite<ServiceRecord>({
  key: (service) => service.svc_ip,
  run: (db, services) => {
    const rows = services.map((service) => ({ ...service, svc_uid: uidOf(service.service_spec) }))
    return db.ingest((sql) => sql`select upsert_services(${exactJson(rows)}::text::json)`)
  },
})

// Only the part of the object that is kept is checked.
const tolerated = ['service_spec']

/** POST /svc/spec: upserts a service by its cluster address (docs/contract.md#services). */
export default route({
  summary: 'Create or update a service',
  description: 'The cluster address is the key. Returns the record as posted and normalised.',
  answer: ServiceRecord,
}).post('/svc/spec', access('ingest'), body(ServicePost, MAX_CORE_BODY_BYTES, { tolerated }), async (c) => {
  const { db, log } = c.get('deps')
  const post = c.req.valid('json')
  if (!hasClusterAddress(post)) {
    log.warn(
      { service: post.svc_name, namespace: post.svc_namespace },
      'service without a cluster address: nothing written',
    )
    return sendJson(c, exactJson(echoOfService(post)))
  }
  const service = normalizeService(post)
  await upsert(db, service)
  return sendJson(c, exactJson(service))
})
