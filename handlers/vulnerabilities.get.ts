import { z } from 'zod'
import { access, chargeRows, filter, flag, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { cursor, cursorText } from '../lib/http/request/cursor.ts'
import { epssMin, fixable, kev, packageName, tiers, useStates, vulnId } from '../lib/supply-chain/filters.ts'
import { TIER_POSITIONS } from '../lib/supply-chain/in-use.ts'
import { SEVERITIES, severities } from '../lib/supply-chain/severity.ts'
import { readSummary, VulnerabilityPage } from '../lib/supply-chain/summary.ts'

const DEFAULT_VULNERABILITIES = 100
const MAX_VULNERABILITIES = 500
/** The read budget is charged this for each vulnerability: 32 aliases of 128 bytes, and the rest. */
const VULNERABILITY_BYTES = 6 * 1_024

const Query = z.object({
  severity: severities,
  fixable,
  running: flag(false, 'With `true`, only vulnerabilities of running workloads.'),
  namespace: filter('Only vulnerabilities of this namespace; counts only its images and workloads'),
  vuln_id: vulnId,
  package: packageName,
  kev,
  epss_min: epssMin,
  in_use: useStates,
  tier: tiers,
  limit: pageLimit(DEFAULT_VULNERABILITIES, MAX_VULNERABILITIES),
  after: cursor(z.tuple([z.int().min(0).lt(TIER_POSITIONS.length), z.int().min(0).lt(SEVERITIES.length), cursorText])),
})

/**
 * GET /vulnerabilities: vulnerabilities of the images that workloads run or ran, the most urgent tier first, then the
 * most severe, then by id (docs/contract.md#findings, docs/contract.md#tiers). It reads a summary that a job keeps
 * current, so its cost does not depend on the number of findings; `computedAt` is the summary's age.
 */
export default route({
  summary: 'List the vulnerabilities of the cluster or of a namespace',
  answer: VulnerabilityPage,
}).get(
  '/vulnerabilities',
  access('read'),
  query(Query),
  chargeRows<typeof Query>(VULNERABILITY_BYTES, 1),
  async (c) => {
    const { db, config } = c.get('deps')
    const { severity, vuln_id, epss_min, in_use, tier, limit, after, ...rest } = c.req.valid('query')
    const filter = { ...rest, severities: severity, vulnId: vuln_id, epssMin: epss_min, states: in_use, tiers: tier }
    return sendJson(c, await readSummary(db.read, filter, { limit, after }, config.wireNames))
  },
)
