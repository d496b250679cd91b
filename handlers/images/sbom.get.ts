import { z } from 'zod'
import {
  access,
  chargeRows,
  HttpError,
  orFirstPage,
  pageLimit,
  params,
  query,
  route,
  sendJson,
} from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { reportDigest, source } from '../../lib/supply-chain/filters.ts'
import { ComponentPage, readComponents } from '../../lib/supply-chain/sbom.ts'

const DEFAULT_COMPONENTS = 100
const MAX_COMPONENTS = 500
/** The read budget is charged this for each component. */
const COMPONENT_BYTES = 20 * 1_024

const NO_SUCH_REPORT = 'No SBOM of this report_digest for this image'

const Params = z.object({ digest })

const Query = z.object({
  source,
  report_digest: reportDigest,
  limit: pageLimit(DEFAULT_COMPONENTS, MAX_COMPONENTS),
  after: documentedAs(
    orFirstPage(
      z
        .string()
        .regex(/^[+-]?\d+$/, 'expected an integer')
        .transform((text) => Math.min(Math.max(Number(text), 0), Number.MAX_SAFE_INTEGER)),
      0,
    ),
    {
      type: 'integer',
      default: 0,
      description: 'The id of the last component of the page before; a negative number is 0.',
    },
  ),
})

/**
 * GET /images/{digest}/sbom: the components of one SBOM of an image, in the order posted, with the reports of all its
 * SBOMs (docs/contract.md#sbom). `report` is null without an SBOM from the source; an unknown `report_digest` is 404.
 */
export default route({
  summary: 'List the components of an image from one SBOM',
  answer: ComponentPage,
  also: { 404: NO_SUCH_REPORT },
}).get(
  '/images/:digest/sbom',
  access('read'),
  params(Params),
  query(Query),
  chargeRows<typeof Query>(COMPONENT_BYTES, 1),
  async (c) => {
    const { db, config } = c.get('deps')
    const { digest } = c.req.valid('param')
    const { source, report_digest: reportDigest, limit, after } = c.req.valid('query')
    const page = await readComponents(db.read, digest, { source, reportDigest }, { limit, after }, config)
    const { reports, retiredGuesses, report, items, nextAfter } = page
    if (report === null && reportDigest !== null) throw new HttpError(404, NO_SUCH_REPORT)
    const head = JSON.stringify({ digest, reports, retiredGuesses, report }).slice(0, -1)
    return sendJson(c, `${head},"items":[${items}],"nextAfter":${nextAfter}}`)
  },
)
