import { z } from 'zod'
import {
  MAX_MINUTES,
  MAX_MINUTES_BY_TIME,
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
    pod_uid: filter('Only victims of the pod with this uid'),
    minutes: clamped(
      5,
      MAX_MINUTES,
      `Minutes to look back; without \`node\`, at most ${MAX_MINUTES_WITHOUT_NODE}; with \`pod_uid\`, ` +
        `at most ${MAX_MINUTES_BY_TIME}`,
    ),
    per_victim: clamped(MAX_PAIRS_OF_VICTIM, MAX_PAIRS_OF_VICTIM, 'Pairs of a victim at most, the longest waits'),
  })
  .refine(
    ({ namespace, node, pod_uid }) => namespace !== null || node !== null || pod_uid !== null,
    'expected a namespace, a node or a pod_uid',
  )

const Contention = z
  .strictObject({
    pairs: z
      .array(Pair)
      .describe(`By victim, the longest wait first: at most \`per_victim\` of a victim, and ${MAX_PAIRS} in all.`),
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
    const { pod_uid: podUid, per_victim: perVictim, ...asked } = c.req.valid('query')
    const retentionDays = config.computeHistoryRetentionDays
    return sendJson(c, await readContention(db, { ...asked, podUid, perVictim, retentionDays }))
  },
)
