import { z } from 'zod'
import { perDatabase } from '../../lib/db/folded.ts'
import { createFold } from '../../lib/db/index.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { pathText } from '../../lib/http/fields.ts'
import { sendPages } from '../../lib/http/pages.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { params } from '../../lib/http/validate.ts'
import type { Place } from '../../lib/records/index.ts'
import { readFirstPages, readNextPage, TrafficRow } from '../../lib/traffic/index.ts'

const PAGE_ROWS = 5_000
/** Bytes a row may cost while its page is built (interop-core 6.1). */
const ROW_BYTES = 2_560
/** Charged like the longest list there is, as clients expect (interop-core 6.1), until the first page is there. */
const CHARGE_KIB = kib(20_000 * ROW_BYTES)
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
  const { db } = c.get('deps')
  const { name } = c.req.valid('param')
  const first = await firstPages(db)(name)
  if (first.count === 0) throw noData()
  const next = (after: Place) => readNextPage(db.read, name, after, PAGE_ROWS)
  return sendPages(c, first, first.count < PAGE_ROWS, next, kib(PAGE_ROWS * ROW_BYTES))
})
