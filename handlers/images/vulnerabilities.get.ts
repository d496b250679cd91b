import { z } from 'zod'
import { access, chargeRows, pageLimit, params, query, route, sendJson } from '../../lib/http/index.ts'
import { cursor, cursorText } from '../../lib/http/request/cursor.ts'
import { digest } from '../../lib/images/index.ts'
import { epssMin, fixable, kev, packageName, source, tiers, useStates, vulnId } from '../../lib/supply-chain/filters.ts'
import { FindingPage, readFindings } from '../../lib/supply-chain/finding-page.ts'
import { SEVERITIES, severities } from '../../lib/supply-chain/severity.ts'

const DEFAULT_FINDINGS = 100
const MAX_FINDINGS = 500
/** The read budget is charged this for each finding. */
const FINDING_BYTES = 20 * 1_024

const Params = z.object({ digest })

const Query = z.object({
  severity: severities,
  fixable,
  source,
  vuln_id: vulnId,
  package: packageName,
  kev,
  epss_min: epssMin,
  in_use: useStates,
  tier: tiers,
  limit: pageLimit(DEFAULT_FINDINGS, MAX_FINDINGS),
  after: cursor(z.tuple([z.int().min(0).lt(SEVERITIES.length), cursorText, cursorText, cursorText])),
})

/**
 * GET /images/{digest}/vulnerabilities: the findings of an image, merged over sources and platforms, most severe first
 * (docs/contract.md#findings). Filters apply to the merged finding. A digest without a report has empty lists.
 */
export default route({
  summary: 'List the vulnerabilities of an image',
  answer: FindingPage,
}).get(
  '/images/:digest/vulnerabilities',
  access('read'),
  params(Params),
  query(Query),
  chargeRows<typeof Query>(FINDING_BYTES, 1),
  async (c) => {
    const { db, config } = c.get('deps')
    const { digest } = c.req.valid('param')
    const { severity, vuln_id, epss_min, in_use, tier, limit, after, ...rest } = c.req.valid('query')
    const filter = { ...rest, severities: severity, vulnId: vuln_id, epssMin: epss_min, states: in_use, tiers: tier }
    const page = await readFindings(db.read, digest, filter, { limit, after }, config)
    const { reports, retiredGuesses } = page
    const head = JSON.stringify({ digest, reports, retiredGuesses }).slice(0, -1)
    return sendJson(c, `${head},"items":[${page.items}],"nextAfter":${JSON.stringify(page.nextAfter)}}`)
  },
)
