import { z } from 'zod'
import { sharedRead } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { ServiceRecord } from '../../lib/services/index.ts'

// Ordered before it is aggregated: PostgreSQL 15 would sort for an aggregate what an index has in order.
const list = sharedRead<'all'>(async (db) => {
  const bytes = await db.read.json(
    (sql) => sql`
      select coalesce(json_agg(r.service), '[]')
      from (select service_record(s) as service from service s order by s.svc_namespace, s.svc_name, s.svc_ip) r`,
  )
  return bytes!
})

/** GET /svc/info: all services by namespace, name and address. */
export default route({ summary: 'All services by namespace, name and address', answer: z.array(ServiceRecord) }).get(
  '/svc/info',
  access('read'),
  charge(kib(1_000 * 4_096)),
  async (c) => sendJson(c, await list(c.get('deps').db, 'all')),
)
