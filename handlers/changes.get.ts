import { z } from 'zod'
import { namespaceChanges } from '../lib/changes/namespace.ts'
import { SIGNALS } from '../lib/changes/order.ts'
import { readRange } from '../lib/changes/read/range.ts'
import { ChangePage } from '../lib/changes/record.ts'
import type { Config } from '../lib/config/index.ts'
import { moment } from '../lib/flows/parameters.ts'
import { access, charge, kib, pageLimit, query, route, sendJson, text } from '../lib/http/index.ts'
import { cursor, cursorText } from '../lib/http/request/cursor.ts'
import { documentedAs } from '../lib/openapi/declare.ts'
import { parseNaive } from '../lib/time/timestamp.ts'

const DEFAULT_WORKLOADS = 50
const MAX_WORKLOADS = 200
/** The read budget is charged this: the records of 500 workloads, and the answer. */
const CHANGES_BYTES = 32 * 1_024 * 1_024

const time = cursorText.refine((one) => parseNaive(one) === one)

const Query = z.object({
  namespace: documentedAs(
    text.refine((name) => name.trim() !== '', 'expected a namespace'),
    { type: 'string', pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$', description: 'The namespace; not blank.' },
  ),
  since: moment('Changes since this time, by default of the last seven days, at most as far back as anything is kept'),
  limit: pageLimit(DEFAULT_WORKLOADS, MAX_WORKLOADS),
  after: cursor(
    z.tuple([
      time,
      time,
      z
        .int()
        .min(0)
        .lt(2 ** SIGNALS.length),
      z.int().min(0),
      cursorText,
      cursorText,
    ]),
  ),
})

/** The longest of the retention times of what is compared; 0 where something is kept for ever. */
function longestDays(config: Config): number {
  const days = [
    ...[config.flowEdgeRetentionDays, config.imageInventoryRetentionDays, config.runtimeInventoryRetentionDays],
    config.profileVersionsRetentionDays,
  ]
  return days.includes(0) ? 0 : Math.max(...days)
}

/**
 * GET /changes: what changed in the workloads of a namespace, the most telling first (docs/contract.md#changes). What
 * was not recorded then is null, with the reason, and never new. The `after` of a page has its range.
 */
export default route({
  summary: 'List what changed in the workloads of a namespace',
  description:
    'Each workload with the signals that its changes show, how many there are, and a few of them. A count that is ' +
    'null has its reasons in `notKnown`.',
  answer: ChangePage,
}).get('/changes', access('read'), query(Query), charge(kib(CHANGES_BYTES)), async (c) => {
  const { db, config } = c.get('deps')
  const { namespace, since, limit, after } = c.req.valid('query')
  const range =
    after === null
      ? await readRange(db.read, { name: 'since', from: since, to: null, maxDays: longestDays(config) })
      : { from: after[0], to: after[1] }
  return sendJson(c, JSON.stringify(await namespaceChanges(db.read, namespace, range, { limit, after }, config)))
})
