import { z } from 'zod'
import { COMPUTE_BODY, MAX_COMPUTE_BYTES, Minutes, takeMinutes } from '../../lib/compute/index.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'

const Taken = z.strictObject({
  accepted: z.int().min(0).describe('Containers that are kept, each once, also where they were known.'),
})

/** POST /pod/compute/history/batch: what the containers of a node did in a minute (workload-profiling, Compute; interop-profiling 3.2). */
export default route({
  summary: 'Says what the containers of a node did in a minute, and who made them wait',
  description:
    'A row of history for each container. Sent again it changes nothing: it is known by container, time and resolution. Of a container that is twice in a post the last one counts. One that cannot be stored is skipped; in the others, what is no number counts as 0, null or its default. With no days of history nothing is stored, and none is accepted.',
  answer: Taken,
}).post('/pod/compute/history/batch', access('ingest'), body(Minutes, MAX_COMPUTE_BYTES, COMPUTE_BODY), async (c) =>
  sendJson(c, `{"accepted":${await takeMinutes(c.get('deps'), c.req.valid('json'))}}`),
)
