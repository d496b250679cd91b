import { type CoveragePage, CoverageQuery, CoverageReport, PARTS, type Part, readPart } from '../lib/coverage/index.ts'
import { access, charge, kib, query, route, sendJson, type Validated } from '../lib/http/index.ts'
import { writeCursor } from '../lib/http/request/cursor.ts'
import { staleAfterSecs } from '../lib/nodes/index.ts'

/** The read budget is charged this for each row of each part: eight names of 253 characters, and the rest. */
const ROW_BYTES = 4 * 1_024

const perPart: Validated<'query', typeof CoverageQuery> = charge((c) => {
  const { part, limit } = c.req.valid('query')
  return kib((part === undefined ? PARTS.length : 1) * (limit + 1) * ROW_BYTES)
})

const listOf = (part: Part, { totals, items, next }: CoveragePage) => ({
  totals,
  items,
  nextAfter: next === null ? null : writeCursor([part, ...next]),
})

/**
 * GET /coverage: what the broker does not know of the running images and containers, the nodes and the workloads, by
 * name (docs/contract.md#coverage-report).
 */
export default route({
  summary: 'Report what is not known',
  description:
    'Running images without reports, SBOMs or signature results, containers that are not watched, nodes without ' +
    'probes, and workloads whose syscalls or denials are not known. Nothing is shown as safe for want of data.',
  answer: CoverageReport,
}).get('/coverage', access('read'), query(CoverageQuery), perPart, async (c) => {
  const { db, config } = c.get('deps')
  const { namespace, part, after, limit, ...asked } = c.req.valid('query')
  const question = {
    namespace,
    limit,
    olderThanDays: asked.older_than_days,
    windowHours: asked.window_hours,
    includeKnown: asked.include_known,
    withTotals: asked.totals,
    runningWindowSecs: config.imageRunningWindowSecs,
    staleAfterSecs: staleAfterSecs(config),
    attestationRetentionDays: config.attestationRetentionDays,
    denialRetentionDays: config.seccompDenialsRetentionDays,
  }
  const report: Record<string, unknown> = {
    namespace,
    olderThanDays: question.olderThanDays,
    windowHours: question.windowHours,
    runningWindowSeconds: question.runningWindowSecs,
  }
  const place = after === null ? null : after.slice(1)
  for (const one of PARTS)
    report[one] = part === undefined || part === one ? listOf(one, await readPart(db.read, one, question, place)) : null
  return sendJson(c, JSON.stringify(report))
})
