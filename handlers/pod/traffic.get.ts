import { z } from 'zod'
import { sharedRead } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { shownAs } from '../../lib/http/declared.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { query } from '../../lib/http/validate.ts'
import { asArray, readPage, TrafficRow } from '../../lib/traffic/index.ts'

const DEFAULT_ROWS = 5_000
const MAX_ROWS = 20_000
/** Bytes a row may cost while its list is built (interop-core 6.1). */
const ROW_BYTES = 2_560

const Query = z.object({
  limit: shownAs(
    z
      .string()
      .regex(/^[+-]?\d+$/, 'expected an integer')
      .transform((text) => Math.min(Math.max(Number(text), 1), MAX_ROWS))
      .default(DEFAULT_ROWS),
    { type: 'integer', default: DEFAULT_ROWS, description: `Rows at most; what is outside 1..${MAX_ROWS} is clamped to it.` },
  ),
})

const newest = sharedRead<number>(async (db, limit) =>
  asArray(await readPage(db.read, (sql) => sql`select * from traffic order by time_stamp desc, uuid desc limit ${limit}`)),
)

/** GET /pod/traffic: the newest flows, `limit` 5000 unless sent, clamped to 1..20000. */
export default route({ summary: 'The newest flows', answer: z.array(TrafficRow).max(MAX_ROWS) }).get(
  '/pod/traffic',
  access('read'),
  query(Query),
  charge((c) => kib(c.req.valid('query' as never)['limit'] * ROW_BYTES)),
  async (c) => sendJson(c, await newest(c.get('deps').db, c.req.valid('query').limit)),
)
