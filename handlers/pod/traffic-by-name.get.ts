import { z } from 'zod'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { pathText } from '../../lib/http/fields.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson, sendStream } from '../../lib/http/respond.ts'
import { params } from '../../lib/http/validate.ts'
import { asArray, readPage, streamPages } from '../../lib/traffic/index.ts'

const PAGE_ROWS = 5_000
/** Charged as the longest page of the list route would be (interop-core 6.1); the stream never holds more. */
const CHARGE_KIB = kib(20_000 * 2_560)

const Params = z.object({ name: pathText })

/** GET /pod/traffic/{name}: every flow of a pod, newest first, without limit and in bounded memory; 404 when there is none. */
export default route().get('/pod/traffic/:name', access('read'), params(Params), charge(CHARGE_KIB), async (c) => {
  const { db, log } = c.get('deps')
  const { name } = c.req.valid('param')
  const first = await readPage(
    db.read,
    (sql) => sql`select * from traffic where pod_name = ${name} order by time_stamp desc, uuid desc limit ${PAGE_ROWS}`,
  )
  if (first.count === 0) throw noData()
  if (first.count < PAGE_ROWS) return sendJson(c, asArray(first))
  const next = ({ time, uuid }: { time: string; uuid: string }) =>
    readPage(
      db.read,
      (sql) => sql`
        select * from traffic where pod_name = ${name} and (time_stamp, uuid) < (${time}::text::timestamp, ${uuid})
        order by time_stamp desc, uuid desc limit ${PAGE_ROWS}`,
    )
  const cut = (error: Error) => {
    log.warn({ requestId: c.get('requestId'), code: (error as { code?: string }).code }, 'a list was cut: the next page could not be read')
    c.env?.outgoing?.destroy()
  }
  return sendStream(c, streamPages(first, next, cut))
})
