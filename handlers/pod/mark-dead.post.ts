import { z } from 'zod'
import { access, address, body, name, route, sendJson } from '../../lib/http/index.ts'
import { canonicalAddress } from '../../lib/net/address.ts'

const MarkDead = z.object({ pod_name: name, pod_ip: address.nullish() }).meta({ id: 'MarkDeadPost' })

/**
 * POST /pod/mark_dead: marks a pod dead by name and, if sent, primary address; returns 0 or 1 (docs/contract.md#pods).
 */
export default route({
  summary: 'Mark a pod dead',
  description: 'Finds the pod by name and, if `pod_ip` is sent, by its primary address too.',
  answer: z.int().min(0).max(1).describe('The number of pods marked.'),
}).post('/pod/mark_dead', access('ingest'), body(MarkDead), async (c) => {
  const { db, log } = c.get('deps')
  const { pod_name, pod_ip } = c.req.valid('json')
  if (pod_name.trim() === '') {
    log.warn('mark_dead without a pod name: nothing marked')
    return sendJson(c, '0')
  }
  const ip = pod_ip?.trim() ? canonicalAddress(pod_ip) : null
  if (ip === null) log.warn({ pod: pod_name }, 'mark_dead without an address: by name only')
  const rows = await db.ingest(
    (sql) => sql`
      update pod set is_dead = true, swept_at = null
      where pod_name = ${pod_name} and (${ip}::text is null or pod_ip = ${ip})
      returning 1`,
  )
  return sendJson(c, String(rows.length))
})
