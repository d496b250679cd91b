import { access, body, route, sendJson } from '../lib/http/index.ts'
import { MAX_VEX_BYTES, storeVex, VexBody, VexOutcome } from '../lib/vex/index.ts'

/** POST /vex: makes decisions of the statements of a VEX document (docs/contract.md#decisions). */
export default route({
  summary: 'Take in a VEX document',
  description:
    'OpenVEX or CycloneDX. A newer version of a document replaces the older one. The answer says of each statement ' +
    'whether it was applied, and why not.',
  answer: VexOutcome,
  also: { 409: 'As many decisions hold, or as many documents are known, as may be.' },
  tag: 'vulnerabilities',
}).post('/vex', access('supplychain'), body(VexBody, MAX_VEX_BYTES), async (c) =>
  sendJson(c, await storeVex(c.get('deps').db.ingest, c.req.valid('json'))),
)
