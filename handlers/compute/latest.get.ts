import { z } from 'zod'
import { LatestContainer, LatestNode, MAX_LATEST, readLatest } from '../../lib/compute/index.ts'
import { access, chargeRows, filter, pageLimit, query, route, sendJson, text } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'

/** The read budget is charged this for each row. */
const ROW_BYTES = 1_024

const Query = z.object({
  namespace: documentedAs(
    text.refine((name) => name.trim() !== '', 'expected a namespace'),
    {
      type: 'string',
      pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$',
      description: 'The namespace of the containers; not blank.',
    },
  ),
  kind: filter('Only containers of pods of workloads of this kind, `Pod` for bare pods'),
  workload: filter('Only containers of pods of workloads with this name; a bare pod has its own'),
  limit: pageLimit(MAX_LATEST, MAX_LATEST),
})

const Latest = z
  .strictObject({
    containers: z.array(LatestContainer).describe('By pod and container; at most `limit`.'),
    nodes: z.array(LatestNode).describe('The nodes that host them, by name.'),
  })
  .meta({ id: 'ComputeLatest' })

/**
 * GET /compute/latest: the latest sample of each live container of a namespace, and their nodes
 * (docs/contract.md#compute).
 */
export default route({
  summary: 'List the latest compute samples of a namespace',
  description:
    'A container is listed while its sample is younger than three of its intervals plus a minute, by the clocks of ' +
    'both agent and broker, and its pod is not dead. Filters are exact and combine.',
  answer: Latest,
}).get('/compute/latest', access('read'), query(Query), chargeRows<typeof Query>(ROW_BYTES), async (c) =>
  sendJson(c, await readLatest(c.get('deps').db, c.req.valid('query'))),
)
