import { z } from 'zod'
import { perDatabase } from '../../lib/db/batcher.ts'
import { createBatcher } from '../../lib/db/index.ts'
import {
  access,
  charge,
  kib,
  NoParameters,
  noData,
  params,
  pathText,
  query,
  route,
  sendPages,
} from '../../lib/http/index.ts'
import type { PageCursor } from '../../lib/records/index.ts'
import { readFirstPages, readNextPage, TrafficRow } from '../../lib/traffic/index.ts'

/** Most pods have fewer flows than this. */
const FIRST_PAGE_ROWS = 1_000
const PAGE_ROWS = 5_000
/** The read budget is charged this for each row of a page. */
const ROW_BYTES = 2_560
const PODS_PER_STATEMENT = 8

const Params = z.object({ name: pathText.describe('The name of a pod.') })

const firstPages = perDatabase((db) =>
  createBatcher({
    maxItems: PODS_PER_STATEMENT,
    run: (pods: string[]) => readFirstPages(db.read, pods, FIRST_PAGE_ROWS),
  }),
)

/**
 * GET /pod/traffic/{name}: every flow of a pod, newest first; 404 without any (docs/contract.md#flows). The list has no
 * limit; it is streamed and charged page by page. A charge for the longest list would let five clients read at once.
 */
export default route({
  summary: 'List all flows of a pod',
  answer: z.array(TrafficRow).min(1),
  also: { 404: 'No data found' },
}).get(
  '/pod/traffic/:name',
  access('read'),
  params(Params),
  query(NoParameters, { unknown: 'ignored' }),
  charge(kib(FIRST_PAGE_ROWS * ROW_BYTES)),
  async (c) => {
    const { db } = c.get('deps')
    const { name } = c.req.valid('param')
    const first = await firstPages(db)(name)
    if (first.count === 0) throw noData()
    const next = (after: PageCursor) => readNextPage(db.read, name, after, PAGE_ROWS)
    return sendPages(c, first, first.count < FIRST_PAGE_ROWS, next, kib(PAGE_ROWS * ROW_BYTES))
  },
)
