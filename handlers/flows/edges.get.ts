import { z } from 'zod'
import {
  answerEdges,
  EDGE_BYTES,
  EdgeParameters,
  FlowEdgePage,
  filterParameters,
  itemsOfPage,
} from '../../lib/flows/index.ts'
import { access, charge, kib, query, route, type Validated } from '../../lib/http/index.ts'

const perPage: Validated<'query', typeof EdgeParameters> = charge((c) =>
  kib(itemsOfPage(c.req.valid('query')) * EDGE_BYTES),
)
const etag = { ETag: z.string().describe('Send it back as `If-None-Match`. It is the same for the same edges.') }

/**
 * GET /flows/edges: who opens connections to whom, counted over months (docs/contract.md#flow-edges). 503 while the
 * flows of an older release are counted for the first time.
 */
export default route({
  summary: 'List edges between workloads, namespaces or services',
  description:
    'The job `flow-edges` counts flows into edges, which stay when the flows are deleted. Only a filter by pod, ' +
    'label, node or address counts the stored flows of the range.',
  answer: FlowEdgePage,
  headers: etag,
  also: { 304: { description: 'The client has these edges: `If-None-Match` matches.', answer: null, headers: etag } },
}).get(
  '/flows/edges',
  access('read'),
  query(EdgeParameters, { repeated: Object.keys(filterParameters) }),
  perPage,
  (c) => answerEdges(c, c.req.valid('query')),
)
