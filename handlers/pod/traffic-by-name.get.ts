import { z } from 'zod'
import { perDatabase } from '../../lib/db/folded.ts'
import { createFold } from '../../lib/db/index.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { pathText } from '../../lib/http/fields.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson, sendStream } from '../../lib/http/respond.ts'
import { params } from '../../lib/http/validate.ts'
import { asArray, readFirstPages, readNextPage, streamPages, TrafficRow } from '../../lib/traffic/index.ts'

const PAGE_ROWS = 5_000
/** Charged like the longest list there is, as clients expect (interop-core 6.1); a page is all that is ever held. */
const CHARGE_KIB = kib(20_000 * 2_560)
const PODS_PER_STATEMENT = 8

const Params = z.object({ name: pathText.describe('The name of a pod.') })

const firstPages = perDatabase((db) =>
  createFold({ maxItems: PODS_PER_STATEMENT, run: (pods: string[]) => readFirstPages(db.read, pods, PAGE_ROWS) }),
)

/** GET /pod/traffic/{name}: every flow of a pod, newest first, without limit and in bounded memory; 404 when there is none. */
export default route({
  summary: 'Every flow of a pod, newest first, without limit',
  answer: z.array(TrafficRow).min(1),
  also: { 404: 'No data found' },
}).get('/pod/traffic/:name', access('read'), params(Params), charge(CHARGE_KIB), async (c) => {
  const { db, log } = c.get('deps')
  const { name } = c.req.valid('param')
  const first = await firstPages(db)(name)
  if (first.count === 0) throw noData()
  if (first.count < PAGE_ROWS) return sendJson(c, asArray(first))
  const next = (after: { time: string; uuid: string }) => readNextPage(db.read, name, after, PAGE_ROWS)
  const cut = (error: Error) => {
    log.warn({ requestId: c.get('requestId'), code: (error as { code?: string }).code }, 'a list was cut: the next page could not be read')
    c.env?.outgoing?.destroy()
  }
  return sendStream(c, streamPages(first, next, cut))
})
