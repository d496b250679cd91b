import { z } from 'zod'
import {
  MAX_MINUTES,
  MAX_MINUTES_WITHOUT_NODE,
  MAX_PAIRS,
  MAX_PAIRS_OF_VICTIM,
  Pair,
  readContention,
} from '../../lib/compute/index.ts'
import { access, charge, clamped, filter, kib, query, route, sendJson } from '../../lib/http/index.ts'

/** The read budget is charged this for each row. */
const ROW_BYTES = 1_024

const Query = z
  .object({
    namespace: filter('Only victims of this namespace'),
    node: filter('Only victims on this node'),
    minutes: clamped(5, MAX_MINUTES, `Minutes to look back; without \`node\`, at most ${MAX_MINUTES_WITHOUT_NODE}`),
  })
  .refine(({ namespace, node }) => namespace !== null || node !== null, 'expected a namespace or a node')

const Contention = z
  .strictObject({
    pairs: z
      .array(Pair)
      .describe(
        `By victim, the longest wait first: at most ${MAX_PAIRS_OF_VICTIM} of a victim, and ${MAX_PAIRS} in all.`,
      ),
  })
  .meta({ id: 'ComputeContention' })

/** GET /compute/contention: which container waited for which culprit, minute by minute (docs/contract.md#compute). */
export default route({ summary: 'List what the containers of a namespace or node waited for', answer: Contention }).get(
  '/compute/contention',
  access('read'),
  query(Query),
  charge(kib(MAX_PAIRS * ROW_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    return sendJson(
      c,
      await readContention(db, { ...c.req.valid('query'), retentionDays: config.computeHistoryRetentionDays }),
    )
  },
)
