import { z } from 'zod'
import { access, chargeRows, params, query, route, sendJson } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'
import {
  after,
  ENTRY_BYTES,
  ImageRuntime,
  kind,
  limit,
  MORE_ENTRIES,
  readImage,
  windowHours,
} from '../../lib/runtime/reads/index.ts'

const Params = z.object({ digest })
const Query = z.object({ kind, limit, after, window_hours: windowHours })

/**
 * GET /images/{digest}/runtime: the files of an image that ran, over all its workloads (docs/contract.md#executables).
 * Always 200.
 */
export default route({
  summary: 'List the files of an image that ran',
  description:
    '`coverage` counts the containers of the image that are watched. A page may have fewer entries than `limit` and' +
    ' not be the last, where many workloads share the image.',
  answer: ImageRuntime,
}).get(
  '/images/:digest/runtime',
  access('read'),
  params(Params),
  query(Query),
  chargeRows<typeof Query>(ENTRY_BYTES, MORE_ENTRIES),
  async (c) => {
    const { digest } = c.req.valid('param')
    const { window_hours: windowHours, ...page } = c.req.valid('query')
    const { db, config } = c.get('deps')
    const retentionDays = config.runtimeInventoryRetentionDays
    const { entries, nextCursor, coverage } = await readImage(db.read, { digest, windowHours, retentionDays, ...page })
    const tail = `],"truncated":${nextCursor !== null},"nextCursor":${JSON.stringify(nextCursor)},"coverage":`
    return sendJson(
      c,
      Buffer.concat([
        Buffer.from(`{"digest":"${digest}","entries":[`),
        entries,
        Buffer.from(tail),
        coverage,
        Buffer.from('}'),
      ]),
    )
  },
)
