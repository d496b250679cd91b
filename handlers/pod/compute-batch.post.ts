import { z } from 'zod'
import { COMPUTE_BODY, MAX_COMPUTE_BYTES, Samples, takeSamples } from '../../lib/compute/index.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'

const Taken = z.strictObject({ accepted: z.int().min(0).describe('Containers that are stored, each once.') })

/** POST /pod/compute/batch: what the containers of a node take of CPU and memory, and the node itself (workload-profiling, Compute; interop-profiling 3.1). */
export default route({
  summary: 'Says what the containers of a node take of CPU and memory',
  description:
    'Sent every few seconds; without containers it is a heartbeat. Each sample takes the place of the one before, also of a newer one. Of a container that is twice in a post the last sample counts. One that cannot be stored is skipped; in the others, what is no number counts as 0, null or its default.',
  answer: Taken,
}).post('/pod/compute/batch', access('ingest'), body(Samples, MAX_COMPUTE_BYTES, COMPUTE_BODY), async (c) =>
  sendJson(c, `{"accepted":${await takeSamples(c.get('deps'), c.req.valid('json'))}}`),
)
