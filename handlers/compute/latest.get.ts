import { z } from 'zod'
import { LatestContainer, LatestNode, MAX_LATEST, readLatest } from '../../lib/compute/index.ts'
import { access, charge, kib, query, route, sendJson, text } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'

/** Bytes a row may cost while its list is built (interop-profiling 3.3). */
const ROW_BYTES = 1_024

const Query = z.object({
  namespace: documentedAs(
    text.refine((name) => name.trim() !== '', 'expected a namespace'),
    { type: 'string', pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$', description: 'Whose containers; not blank.' },
  ),
})

const Latest = z
  .strictObject({
    containers: z.array(LatestContainer).describe(`By pod and container; at most ${MAX_LATEST}.`),
    nodes: z.array(LatestNode).describe('Those that host them, by name.'),
  })
  .meta({ id: 'ComputeLatest' })

/** GET /compute/latest: the latest sample of each container of a namespace that lives, and the nodes that host them. */
export default route({
  summary: 'The latest sample of each container of a namespace',
  description:
    'Containers that live: their sample is younger than three of its intervals and a minute, by the clock of the agent and that of the broker, and their pod is not dead.',
  answer: Latest,
}).get('/compute/latest', access('read'), query(Query), charge(kib(MAX_LATEST * ROW_BYTES)), async (c) =>
  sendJson(c, await readLatest(c.get('deps').db, c.req.valid('query').namespace)),
)
