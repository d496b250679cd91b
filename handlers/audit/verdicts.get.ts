import { z } from 'zod'
import { access, chargeRows, pageLimit, query, route, sendJson, text, wireTime } from '../../lib/http/index.ts'
import { plainColumns, plainRows } from '../../lib/records/index.ts'

const DEFAULT_ROWS = 100
const MAX_ROWS = 500
const ROW_BYTES = 1_024

const VERDICTS = ['Allow', 'WouldDeny'] as const
const DIRECTIONS = ['Ingress', 'Egress'] as const

const VerdictRow = z
  .strictObject({
    id: z.int(),
    policy_uid: z.string(),
    policy_namespace: z.string(),
    policy_name: z.string(),
    direction: z.enum(DIRECTIONS),
    src_namespace: z.string().nullable(),
    src_pod: z.string().nullable(),
    dst_namespace: z.string().nullable(),
    dst_pod: z.string().nullable(),
    dst_port: z.int(),
    protocol: z.string(),
    reason: z.string(),
    observed_at: wireTime,
    verdict: z.enum(VERDICTS),
  })
  .meta({ id: 'VerdictRow' })

const COLUMNS = plainColumns(VerdictRow, 'a')

/** One of the words; an empty value is no filter. */
const filter = (words: readonly string[]) =>
  z
    .enum(['', ...words], { error: ({ input }) => `${JSON.stringify(input)} is not one of ${words.join(', ')}` })
    .default('')

const Query = z.object({
  policy: text.describe('Only verdicts of the policy with this name; empty is no filter.').optional(),
  namespace: text
    .describe('Only verdicts of policies of this namespace; empty means cluster-wide policies.')
    .optional(),
  verdict: filter(VERDICTS).describe('Only this verdict; empty is no filter.'),
  direction: filter(DIRECTIONS).describe('Only this direction; empty is no filter.'),
  limit: pageLimit(DEFAULT_ROWS, MAX_ROWS),
})

/** GET /audit/verdicts: verdicts of the policy evaluator, newest first (docs/contract.md#verdicts). */
export default route({
  summary: 'List the newest verdicts of the policy evaluator',
  answer: z.array(VerdictRow).max(MAX_ROWS),
}).get(
  '/audit/verdicts',
  access('read'),
  query(Query, { unknown: 'ignored' }),
  chargeRows<typeof Query>(ROW_BYTES),
  async (c) => {
    const { policy, namespace, verdict, direction, limit } = c.req.valid('query')
    // The index has each verdict and direction in the order of the list: at most four ranges are merged, none is read
    // past the limit. Rows past their retention may still be there.
    const { db, config } = c.get('deps')
    const rows = await db.read((sql) =>
      sql`
  select ${sql.unsafe(COLUMNS)}
  from (values ('Allow'), ('WouldDeny')) v(verdict)
  cross join (values ('Ingress'), ('Egress')) d(direction)
  cross join lateral (
    select * from audit_verdict a
    where a.verdict = v.verdict and a.direction = d.direction
      ${policy ? sql`and a.policy_name = ${policy}` : sql``}
      ${namespace === undefined ? sql`` : sql`and a.policy_namespace = ${namespace}`}
    order by a.observed_at desc, a.id desc
    limit ${limit}) a
  where ${verdict} in ('', v.verdict) and ${direction} in ('', d.direction)
    and a.observed_at >= retention_start(${config.auditRetentionDays})
  order by a.observed_at desc, a.id desc
  limit ${limit}`.raw(),
    )
    return sendJson(c, `[${plainRows(VerdictRow, rows)}]`)
  },
)
