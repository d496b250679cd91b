import { z } from 'zod'
import { access, params, route } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'
import {
  DuplicatePage,
  PayloadOutcome,
  PostedSbom,
  payload,
  payloadAnswers,
  StagedPage,
  storePayload,
} from '../../lib/supply-chain/index.ts'

const Params = z.object({ digest })

/** POST /images/{digest}/sbom: stores an SBOM from one source, whole or in pages (docs/contract.md#sbom). */
export default route({
  summary: 'Store an SBOM of an image, whole or in pages',
  description:
    'Different content replaces the stored SBOM of the same source only if its scan is strictly newer. The pages of' +
    ' a set may arrive in any order; the last one replaces the stored SBOM.',
  answer: z.union([PayloadOutcome, DuplicatePage]),
  also: {
    ...payloadAnswers,
    202: { description: 'The page is kept until the other pages arrive.', answer: StagedPage },
    429: 'Too many sets of pages are incomplete to begin another; `Retry-After` says when to try again.',
  },
}).post('/images/:digest/sbom', access('supplychain'), params(Params), payload(PostedSbom), (c) => {
  const { db } = c.get('deps')
  return storePayload(c, 'sbom', c.req.valid('param').digest, ({ header, page, rows }) =>
    db.ingest.json(
      (sql) =>
        sql`select store_sbom(${header}::text::json, ${page && JSON.stringify(page)}::text::json, ${rows}::text)`,
    ),
  )
})
