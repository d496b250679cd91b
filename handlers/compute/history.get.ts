import { z } from 'zod'
import { countContainers, HistoryRow, MAX_HISTORY, MAX_MINUTES, readHistory } from '../../lib/compute/index.ts'
import { access, charge, clamped, kib, params, pathText, query, route, sendJson } from '../../lib/http/index.ts'

/** Bytes a row may cost while its list is built: as it was read, and as JSON, most of which is its keys. */
const ROW_BYTES = 2_048

const Params = z.object({ pod_uid: pathText.describe('The uid of a pod') })
const Query = z.object({ minutes: clamped(60, MAX_MINUTES, 'Minutes to look back') })

const History = z
  .strictObject({
    rows: z
      .array(HistoryRow)
      .describe('The oldest first; of more than a row a minute for each container, or 20000, the newest.'),
  })
  .meta({ id: 'ComputeHistory' })

/**
 * GET /compute/history/{pod_uid}: what the containers of a pod did (workload-profiling, Compute; interop-profiling 3.3). Unknown uids have no rows.
 * Charged is what the containers can come to, which a look-up tells.
 */
export default route({ summary: 'The history of the containers of a pod', answer: History }).get(
  '/compute/history/:pod_uid',
  access('read'),
  params(Params),
  query(Query),
  charge<{
    in: { param: z.input<typeof Params>; query: z.input<typeof Query> }
    out: { param: z.output<typeof Params>; query: z.output<typeof Query> }
  }>(async (c) => {
    const containers = await countContainers(c.get('deps').db, c.req.valid('param').pod_uid)
    return kib(Math.min(containers * c.req.valid('query').minutes, MAX_HISTORY) * ROW_BYTES)
  }),
  async (c) => {
    const { db, config } = c.get('deps')
    return sendJson(
      c,
      await readHistory(
        db,
        c.req.valid('param').pod_uid,
        c.req.valid('query').minutes,
        config.computeHistoryRetentionDays,
      ),
    )
  },
)
