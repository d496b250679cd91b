import { z } from 'zod'
import { sharedRead } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { charge, kib } from '../../lib/http/charge.ts'
import { query } from '../../lib/http/request/validate.ts'
import { sendPages } from '../../lib/http/response/pages.ts'
import { route } from '../../lib/http/route.ts'
import { shownAs } from '../../lib/openapi/declare.ts'
import { POD_PAGE_ROWS, type PodCursor, PodRecord, readFirstPods, readNextPods } from '../../lib/pods/index.ts'
import type { Page } from '../../lib/records/page.ts'

const Query = z.object({
  include_dead: shownAs(z.enum(['true', 'false']).default('true'), {
    type: 'boolean',
    default: true,
    description: 'With `false` only pods running now.',
  }),
})

/** Bytes a record may cost while its page is built (interop-core 6.1). */
const POD_BYTES = 4_096
const PAGE_KIB = kib(POD_PAGE_ROWS * POD_BYTES)

const firstPage = sharedRead<'true' | 'false', Page<PodCursor>>((db, includeDead) =>
  readFirstPods(db.read, includeDead === 'false'),
)

/**
 * GET /pod/info: all pods, or with `include_dead=false` those running now, by namespace and name; without limit and in bounded memory.
 * Charged by the page, where the sheet has 20 000 KiB for all of it (interop-core 6.1).
 */
export default route({
  summary: 'All pods, or those running now, by namespace and name',
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
