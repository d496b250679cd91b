import { z } from 'zod'
import { access, lookup, NoParameters, noData, pathText, route, sendJson } from '../../lib/http/index.ts'
import { canonicalAddress } from '../../lib/net/address.ts'
import { batchedLookup } from '../../lib/records/index.ts'
import { ServiceRecord } from '../../lib/services/index.ts'

const Params = z.object({ ip: pathText.describe('An address, IPv4 or IPv6 in any spelling.') })

const serviceByAddress = batchedLookup<{ ip: string }>(
  ServiceRecord,
  { ip: 'text' },
  'select * from service where svc_ip = k.ip',
)

/** GET /svc/ip/{ip}: one service record (docs/contract.md#services). */
export default route({
  summary: 'Get a service by its cluster address',
  answer: ServiceRecord,
  also: { 404: 'No data found' },
}).get(
  '/svc/ip/:ip',
  access('read'),
  lookup.params(Params),
  lookup.query(NoParameters, { unknown: 'ignored' }),
  async (c) => {
    const record = await serviceByAddress(c.get('deps').db, { ip: canonicalAddress(c.req.valid('param').ip) })
    if (!record) throw noData()
    return sendJson(c, record)
  },
)
