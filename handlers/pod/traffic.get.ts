import { z } from 'zod'
import { sharedRead } from '../../lib/db/batcher.ts'
import { access, asArray, chargeRows, pageLimit, query, route, sendJson } from '../../lib/http/index.ts'
import { readNewest, TrafficRow } from '../../lib/traffic/index.ts'

const DEFAULT_ROWS = 5_000
const MAX_ROWS = 20_000
/** The read budget is charged this for each row. */
const ROW_BYTES = 2_560

const Query = z.object({
  limit: pageLimit(DEFAULT_ROWS, MAX_ROWS),
})

const newest = sharedRead<number>(async (db, limit) => asArray(await readNewest(db.read, limit)))

/** GET /pod/traffic: the newest flows of all pods (docs/contract.md#flows). */
export default route({ summary: 'List the newest flows', answer: z.array(TrafficRow).max(MAX_ROWS) }).get(
  '/pod/traffic',
  access('read'),
  query(Query, { unknown: 'ignored' }),
  chargeRows<typeof Query>(ROW_BYTES),
  async (c) => sendJson(c, await newest(c.get('deps').db, c.req.valid('query').limit)),
)
