import { z } from 'zod'
import { access, body, filterText, NO_NULL_PATTERN, query, route, sendJson } from '../lib/http/index.ts'
import { MAX_VEX_BYTES } from '../lib/limits/limits.ts'
import { documentedAs } from '../lib/openapi/declare.ts'
import { MAX_DOCUMENT_ID_CHARS, storeVex, VexBody, VexOutcome } from '../lib/vex/index.ts'

const Query = z.object({
  document: documentedAs(
    filterText.refine(
      (text) => text === null || text.length <= MAX_DOCUMENT_ID_CHARS,
      `expected at most ${MAX_DOCUMENT_ID_CHARS} characters`,
    ),
    {
      type: 'string',
      maxLength: MAX_DOCUMENT_ID_CHARS,
      pattern: NO_NULL_PATTERN,
      description:
        'The id by which the broker knows the document, in place of its own; blank is its own. Some hubs have one id ' +
        'in several documents, or another in each version: give their path.',
    },
  ),
})

/** POST /vex: makes decisions of the statements of a VEX document (docs/contract.md#decisions). */
export default route({
  summary: 'Take in a VEX document',
  description:
    'OpenVEX or CycloneDX. A newer version of a document replaces the older one. The answer says of each statement ' +
    'whether it was applied, and why not.',
  answer: VexOutcome,
  also: { 409: 'As many decisions hold, or as many documents are known, as may be.' },
  tag: 'vulnerabilities',
}).post('/vex', access('supplychain'), query(Query), body(VexBody, MAX_VEX_BYTES), async (c) =>
  sendJson(c, await storeVex(c.get('deps').db.ingest, c.req.valid('json'), c.req.valid('query').document)),
)
