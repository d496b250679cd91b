import { z } from 'zod'
import { COMPUTE_BODY, Samples, takeSamples } from '../../lib/compute/index.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { MAX_COMPUTE_BYTES } from '../../lib/limits/limits.ts'

const Taken = z.strictObject({ accepted: z.int().min(0).describe('Containers that were stored, each once.') })

/**
 * POST /pod/compute/batch: samples of the CPU and memory use of a node and its containers (docs/contract.md#compute).
 */
export default route({
  summary: 'Store CPU and memory samples of a node',
  description:
    'Sent every few seconds; a post without containers is a heartbeat. A sample replaces the last one, even a newer' +
    ' one. If a container is in the post twice, its last sample counts. A container that cannot be stored is ' +
    'skipped; in the others, a value that is no number counts as 0, null or its default.',
  answer: Taken,
}).post('/pod/compute/batch', access('ingest'), body(Samples, MAX_COMPUTE_BYTES, COMPUTE_BODY), async (c) =>
  sendJson(c, `{"accepted":${await takeSamples(c.get('deps'), c.req.valid('json'))}}`),
)
