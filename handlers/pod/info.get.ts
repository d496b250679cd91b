import { z } from 'zod'
import { sharedRead } from '../../lib/db/batcher.ts'
import { access, charge, kib, query, route, sendPages } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { POD_PAGE_ROWS, type PodCursor, PodRecord, readFirstPods, readNextPods } from '../../lib/pods/index.ts'
import type { Page } from '../../lib/records/page.ts'

const Query = z.object({
  include_dead: documentedAs(z.enum(['true', 'false']).default('true'), {
    type: 'boolean',
    default: true,
    description: 'With `false`, only pods running now.',
  }),
})

/** The read budget is charged this for each record of a page. */
const POD_BYTES = 4_096
const PAGE_KIB = kib(POD_PAGE_ROWS * POD_BYTES)

const firstPage = sharedRead<'true' | 'false', Page<PodCursor>>((db, includeDead) =>
  readFirstPods(db.read, includeDead === 'false'),
)

/**
 * GET /pod/info: all pods, or with `include_dead=false` those running now, by namespace and name. The list has no
 * limit; it is streamed and charged page by page, so that it needs bounded memory (docs/contract.md#limits).
 */
export default route({
  summary: 'List all pods, or those running now',
  answer: z.array(PodRecord),
}).get('/pod/info', access('read'), query(Query, { unknown: 'ignored' }), charge(PAGE_KIB), async (c) => {
  const { db } = c.get('deps')
  const { include_dead } = c.req.valid('query')
  const first = await firstPage(db, include_dead)
  return sendPages(
    c,
    first,
    first.last === null,
    (after) => readNextPods(db.read, include_dead === 'false', after),
    PAGE_KIB,
  )
})
