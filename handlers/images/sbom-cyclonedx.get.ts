import { z } from 'zod'
import {
  access,
  asArray,
  between,
  charge,
  HttpError,
  kib,
  pageByPage,
  params,
  query,
  route,
  sendJson,
  sendPieces,
} from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'
import { CycloneDx, countComponents, PAGE_COMPONENTS, readCycloneDx } from '../../lib/supply-chain/cyclonedx.ts'
import { reportDigest, source } from '../../lib/supply-chain/filters.ts'

/** The read budget is charged this for each component. */
const COMPONENT_BYTES = 20 * 1_024
const CONTENT_TYPE = 'application/vnd.cyclonedx+json'

const Params = z.object({ digest })
const Query = z.object({ source, report_digest: reportDigest })

type Asked = { out: { param: z.output<typeof Params>; query: z.output<typeof Query> } }

const choice = ({ source, report_digest: reportDigest }: z.output<typeof Query>) => ({ source, reportDigest })

const noSbom = () => new HttpError(404, 'No SBOM for this image')

/**
 * GET /images/{digest}/sbom/cyclonedx: the SBOM that GET /images/{digest}/sbom shows, as one document
 * (docs/contract.md#sbom). The charge follows from the number of components, which is read first.
 */
export default route({
  summary: 'Download an SBOM of an image as CycloneDX 1.5',
  answer: { contentType: CONTENT_TYPE, schema: CycloneDx },
  also: {
    404: 'The image has no SBOM, or none from this source or with this `report_digest`: `No SBOM for this image`.',
  },
}).get(
  '/images/:digest/sbom/cyclonedx',
  access('read'),
  params(Params),
  query(Query, { unknown: 'ignored' }),
  charge<Asked>(async (c) => {
    const count = await countComponents(
      c.get('deps').db.read,
      c.req.valid('param').digest,
      choice(c.req.valid('query')),
    )
    if (count === null) throw noSbom()
    return kib(Math.max(1, count) * COMPONENT_BYTES)
  }),
  async (c) => {
    const { db, config } = c.get('deps')
    const { digest } = c.req.valid('param')
    const document = await readCycloneDx(db.read, digest, choice(c.req.valid('query')), config.wireNames)
    if (document === null) throw noSbom()
    const { head, first, next, tail } = document
    const headers = {
      'content-type': `${CONTENT_TYPE}; version=1.5`,
      'content-disposition': `attachment; filename="${digest.replace(':', '_')}.cdx.json"`,
    }
    if (first.last === null) return sendJson(c, Buffer.concat([head, asArray(first), tail]), headers)
    return sendPieces(
      c,
      between(head, pageByPage(c, first, next, kib(PAGE_COMPONENTS * COMPONENT_BYTES)), tail),
      headers,
    )
  },
)
