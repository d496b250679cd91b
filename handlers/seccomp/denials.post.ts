import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { Drain, MAX_DRAIN_BYTES, MAX_DRAIN_ENTRIES } from '../../lib/seccomp/denials/index.ts'

const Accepted = z.strictObject({
  accepted: z.int().min(0).describe('Rows stored: pod, syscall and action each once.'),
})

/** POST /seccomp/denials: what the kernel denied on a node since its last drain (workload-profiling, Denial ingest rules; interop-profiling 1.9). */
export default route({
  summary: 'Adds what the kernel denied on a node since its last drain',
  description:
    'Sent at every drain, an empty one too: by it the node is heard of. Counts are added to what is stored of the same pod, syscall and action. An entry that cannot be stored is dropped and the rest is stored, all in one transaction.',
  answer: Accepted,
}).post(
  '/seccomp/denials',
  access('ingest'),
  body(Drain, MAX_DRAIN_BYTES, { tolerated: ['denials'], maxListed: MAX_DRAIN_ENTRIES }),
  async (c) => sendJson(c, `{"accepted":${await c.get('deps').denials.take(c.req.valid('json'))}}`),
)
