import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { MAX_DRAIN_BYTES } from '../../lib/limits/limits.ts'
import { Drain, MAX_DRAIN_ENTRIES } from '../../lib/seccomp/denials/index.ts'

const Accepted = z.strictObject({
  accepted: z.int().min(0).describe('Rows stored, one for each pod, syscall and action.'),
})

/** POST /seccomp/denials: denials of a node since its last drain (docs/contract.md#denials). */
export default route({
  summary: 'Add the denials of a node since its last drain',
  description:
    'Sent at every drain; an empty one is the heartbeat of the node. Counts are added to those stored for the same ' +
    'pod, syscall and action. An entry that cannot be stored is dropped; the rest is stored in one transaction.',
  answer: Accepted,
}).post(
  '/seccomp/denials',
  access('ingest'),
  body(Drain, MAX_DRAIN_BYTES, { tolerated: ['denials'], maxListed: MAX_DRAIN_ENTRIES }),
  async (c) => sendJson(c, `{"accepted":${await c.get('deps').denials.take(c.req.valid('json'))}}`),
)
