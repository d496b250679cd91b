import { z } from 'zod'
import { ANY_TIME_OR_BLANK, access, lookup, noData, pathText, route, sendJson } from '../../lib/http/index.ts'
import { canonicalAddress } from '../../lib/net/address.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { PodRecord } from '../../lib/pods/index.ts'
import { batchedLookup } from '../../lib/records/index.ts'
import { parseInstant } from '../../lib/time/timestamp.ts'

const Params = z.object({ ip: pathText.describe('An address, IPv4 or IPv6 in any spelling.') })
const Query = z.object({
  at: documentedAs(
    z.string().transform((text, c) => {
      if (text.trim() === '') return null
      const time = parseInstant(text)
      if (time === null)
        c.addIssue({ code: 'custom', message: 'expected RFC 3339, or naive UTC as YYYY-MM-DDTHH:MM:SS' })
      return time
    }),
    {
      type: 'string',
      pattern: ANY_TIME_OR_BLANK,
      description: 'RFC 3339 with any offset, or naive UTC; blank counts as absent.',
      examples: ['2026-01-01T09:00:00Z'],
    },
  ).optional(),
})

const podNow = batchedLookup<{ ip: string }>(
  PodRecord,
  { ip: 'text' },
  `select p.* from pod_address a join pod p on p.pod_name = a.pod_name
   where a.ip = k.ip
   order by p.is_dead, p.time_stamp desc, p.pod_name`,
)

const podAt = batchedLookup<{ ip: string; at: string }>(
  PodRecord,
  { ip: 'text', at: 'timestamp' },
  'select * from pod_at_address(k.ip, k.at)',
)

/** GET /pod/ip/{ip}: the pod that holds an address now, or held it `at` a time (docs/contract.md#attribution). */
export default route({
  summary: 'Get the pod that holds or held an address',
  description:
    'Without `at`, the live pod with the address, else the one with the newest record. With `at`, only a pod that ' +
    'is known to have started by then and, if it is dead, whose last record is not older.',
  answer: PodRecord,
  also: { 404: 'No data found' },
}).get('/pod/ip/:ip', access('read'), lookup.params(Params), lookup.query(Query, { unknown: 'ignored' }), async (c) => {
  const { db } = c.get('deps')
  const ip = canonicalAddress(c.req.valid('param').ip)
  const { at } = c.req.valid('query')
  const record = at ? await podAt(db, { ip, at }) : await podNow(db, { ip })
  if (!record) throw noData()
  return sendJson(c, record)
})
