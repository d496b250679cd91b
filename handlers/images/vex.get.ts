import { z } from 'zod'
import { access, charge, HttpError, kib, params, query, route, sendJson } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'
import {
  CONTENT_TYPES,
  CycloneDxVex,
  countImageDecisions,
  OpenVexDocument,
  readImageDecisions,
  VEX_FORMATS,
  vexOfImage,
} from '../../lib/vex/index.ts'

/** The read budget is charged this for each decision: its statement and product as texts, parsed and written. */
const DECISION_BYTES = 32 * 1_024

const Params = z.object({ digest })
const Query = z.object({ format: z.enum(VEX_FORMATS).default('openvex').describe('The format of the document.') })

type Asked = { out: { param: z.output<typeof Params> } }

const noDecision = () => new HttpError(404, 'No decision holds for this image')

/**
 * GET /images/{digest}/vex: the decisions that hold for an image wherever it runs, as a VEX document
 * (docs/contract.md#decisions). The charge follows from their number, which is read first.
 */
export default route({
  summary: 'Download the decisions about an image as OpenVEX or CycloneDX',
  description:
    'Decisions for a workload or a namespace are left out, since a VEX statement is about the image wherever it runs.',
  answer: [
    { contentType: CONTENT_TYPES.openvex, schema: OpenVexDocument },
    { contentType: CONTENT_TYPES.cyclonedx, schema: CycloneDxVex },
  ],
  also: { 404: 'No decision holds for this image' },
}).get(
  '/images/:digest/vex',
  access('read'),
  params(Params),
  query(Query),
  charge<Asked>(async (c) => {
    const count = await countImageDecisions(c.get('deps').db.read, c.req.valid('param').digest)
    if (count === 0) throw noDecision()
    return kib(count * DECISION_BYTES)
  }),
  async (c) => {
    const { db, config } = c.get('deps')
    const { digest } = c.req.valid('param')
    const { format } = c.req.valid('query')
    const { repository, decisions } = await readImageDecisions(db.read, digest)
    if (decisions.length === 0) throw noDecision()
    const headers = {
      'content-type': CONTENT_TYPES[format],
      'content-disposition': `attachment; filename="${digest.replace(':', '_')}.${format}.json"`,
    }
    return sendJson(c, vexOfImage(format, { digest, repository }, decisions, config), headers)
  },
)
