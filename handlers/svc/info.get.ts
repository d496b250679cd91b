import { z } from 'zod'
import { sharedRead } from '../../lib/db/batcher.ts'
import { access, asArray, charge, kib, NoParameters, query, route, sendJson } from '../../lib/http/index.ts'
import { listReader } from '../../lib/records/index.ts'
import { ServiceRecord } from '../../lib/services/index.ts'

const services = listReader(ServiceRecord, 'select * from service order by svc_namespace, svc_name, svc_ip')
const list = sharedRead<'all'>(async (db) => asArray(await services(db.read)))

/** GET /svc/info: all services by namespace, name and address (docs/contract.md#services). */
export default route({ summary: 'List all services', answer: z.array(ServiceRecord) }).get(
  '/svc/info',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  charge(kib(1_000 * 4_096)),
  async (c) => sendJson(c, await list(c.get('deps').db, 'all')),
)
