import { z } from 'zod'
import { access, chargeRows, filter, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { documentedAs } from '../lib/openapi/declare.ts'
import { cursor, cursorText } from '../lib/supply-chain/cursor.ts'
import { epssMin, fixable, kev, packageName, vulnId } from '../lib/supply-chain/filters.ts'
import { SEVERITIES, severities } from '../lib/supply-chain/severity.ts'
import { readSummary, VulnerabilityPage } from '../lib/supply-chain/summary.ts'

const DEFAULT_VULNERABILITIES = 100
const MAX_VULNERABILITIES = 500
/** Bytes a vulnerability may cost while its list is built: 32 other ids of 128 bytes, and all else. */
const VULNERABILITY_BYTES = 6 * 1_024

const Query = z.object({
  severity: severities,
  fixable,
  running: documentedAs(
    z
      .enum(['true', 'false'])
      .transform((value) => value === 'true')
      .default(false),
    { type: 'boolean', default: false, description: 'With `true` only what a running workload has.' },
  ),
  namespace: filter('Only what this namespace has, its images and workloads alone counted'),
  vuln_id: vulnId,
  package: packageName,
  kev,
  epss_min: epssMin,
  limit: pageLimit(DEFAULT_VULNERABILITIES, MAX_VULNERABILITIES),
  after: cursor(z.tuple([z.int().min(0).lt(SEVERITIES.length), cursorText])),
})

/**
 * GET /vulnerabilities: the vulnerabilities of the images that workloads run or ran, the most severe first, then by id (interop-supply-chain
 * 3.5). They are read off the summary, whose age it tells: what a list costs does not depend on how many findings there are.
 */
export default route({
  summary: 'The vulnerabilities of the cluster or of a namespace',
  answer: VulnerabilityPage,
}).get(
  '/vulnerabilities',
  access('read'),
  query(Query),
  chargeRows<typeof Query>(VULNERABILITY_BYTES, 1),
  async (c) => {
    const { db, config } = c.get('deps')
    const { severity, vuln_id, epss_min, limit, after, ...rest } = c.req.valid('query')
    const filter = { ...rest, severities: severity, vulnId: vuln_id, epssMin: epss_min }
    return sendJson(c, await readSummary(db.read, filter, { limit, after }, config.wireNames))
  },
)
