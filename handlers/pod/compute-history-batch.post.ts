import { z } from 'zod'
import { COMPUTE_BODY, Minutes, takeMinutes } from '../../lib/compute/index.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { MAX_COMPUTE_BYTES } from '../../lib/limits/limits.ts'

const Taken = z.strictObject({
  accepted: z.int().min(0).describe('Containers that were stored or already known, each once.'),
})

/** POST /pod/compute/history/batch: one minute of the containers of a node (docs/contract.md#compute). */
export default route({
  summary: 'Store one minute of the compute history of a node',
  description:
    'Adds one row of history for each container, and what it waited for. A row is known by container, time and ' +
    'resolution: posted again it changes nothing. If a container is in the post twice, the last entry counts. A ' +
    'container that cannot be stored is skipped; in the others, a value that is no number counts as 0, null or its ' +
    'default. If the history is switched off, nothing is stored and none is accepted.',
  answer: Taken,
}).post('/pod/compute/history/batch', access('ingest'), body(Minutes, MAX_COMPUTE_BYTES, COMPUTE_BODY), async (c) =>
  sendJson(c, `{"accepted":${await takeMinutes(c.get('deps'), c.req.valid('json'))}}`),
)
