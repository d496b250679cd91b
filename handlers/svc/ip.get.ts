import { z } from 'zod'
import { foldedLookup } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { pathText } from '../../lib/http/fields.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { lookup } from '../../lib/http/validate.ts'
import { canonicalAddress } from '../../lib/net/address.ts'
import { ServiceRecord } from '../../lib/services/index.ts'

const Params = z.object({ ip: pathText.describe('An address, IPv4 or IPv6 in any spelling.') })

const serviceByAddress = foldedLookup<string>(async (db, ips) => {
  const rows = await db.read((sql) =>
    sql`
      select (select service_record(s) from service s where s.svc_ip = k.ip)
      from json_array_elements_text(${JSON.stringify(ips)}::text::json) with ordinality k(ip, n) order by k.n`.raw(),
  )
  return rows.map(([record]) => record as Buffer | null)
})

/** GET /svc/ip/{ip}: one service record; 404 `No data found`. */
export default route({ summary: 'One service by its cluster address', answer: ServiceRecord, also: { 404: 'No data found' } }).get(
  '/svc/ip/:ip',
  access('read'),
  lookup.params(Params),
  async (c) => {
    const record = await serviceByAddress(c.get('deps').db, canonicalAddress(c.req.valid('param').ip))
    if (!record) throw noData()
    return sendJson(c, record)
  },
)
