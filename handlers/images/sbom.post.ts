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

/** POST /images/{digest}/sbom: stores the SBOM that one source has of an image, whole or page by page (supply-chain, States). */
export default route({
  summary: 'Stores the SBOM that one source has of an image, whole or page by page',
  description:
    'Only a strictly newer scan replaces other content. The pages of a set may come in any order and are swapped in together with the last.',
  answer: z.union([PayloadOutcome, DuplicatePage]),
  also: {
    ...payloadAnswers,
    202: { description: 'The page is kept until the others have come.', answer: StagedPage },
    429: 'Too many sets are half sent to begin another; `Retry-After` says when to try again.',
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
