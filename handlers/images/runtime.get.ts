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
 * GET /images/{digest}/runtime: the files that ran of an image, each over all workloads that ran it, and who watches the image
 * (workload-profiling, Runtime inventory; interop-profiling 2.2). Always 200.
 */
export default route({
  summary: 'The files that ran of an image in all its workloads, and how many of its containers are watched',
  description:
    'A page may have fewer entries than `limit` and not be the last: one that many workloads share is read in more of them.',
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
