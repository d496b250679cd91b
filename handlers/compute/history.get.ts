import { z } from 'zod'
import { countContainers, HistoryRow, MAX_HISTORY, MAX_MINUTES, readHistory } from '../../lib/compute/index.ts'
import { access, charge, clamped, kib, params, pathText, query, route, sendJson } from '../../lib/http/index.ts'

/** The read budget is charged this for each row: as read, and as JSON, which is mostly keys. */
const ROW_BYTES = 2_048

const Params = z.object({ pod_uid: pathText.describe('The uid of a pod') })
const Query = z.object({ minutes: clamped(60, MAX_MINUTES, 'Minutes to look back') })

const History = z
  .strictObject({
    rows: z
      .array(HistoryRow)
      .describe(
        'Oldest first. If there are more rows than one a minute and container, or than 20000, only the newest.',
      ),
  })
  .meta({ id: 'ComputeHistory' })

/**
 * GET /compute/history/{pod_uid}: the history of the containers of a pod (docs/contract.md#compute). An unknown uid has
 * no rows. The charge follows from the number of containers, which is looked up first.
 */
export default route({ summary: 'Get the compute history of a pod', answer: History }).get(
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
