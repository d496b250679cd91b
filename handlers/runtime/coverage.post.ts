import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { MAX_HEARTBEATS_BYTES } from '../../lib/limits/limits.ts'
import { Heartbeats, takeHeartbeats } from '../../lib/runtime/coverage/index.ts'

const Taken = z.strictObject({
  accepted: z
    .int()
    .min(0)
    .describe(
      'Entries that were accepted, also several of one container. `accepted` and `dropped` add up to the entries ' +
        'posted.',
    ),
  dropped: z.int().min(0).describe('Entries that cannot be stored.'),
  written: z
    .int()
    .min(0)
    .describe(
      'Rows that were new or changed. A heartbeat that is not newer than the stored one, or of a container that ' +
        'ended, changes nothing.',
    ),
})

/** POST /runtime/coverage: heartbeats of watched containers (docs/contract.md#runtime-coverage). */
export default route({
  summary: 'Store heartbeats of watched containers',
  description:
    'Entries are judged one by one; a bad one is dropped. Several of one container are applied in the order of ' +
    'their times. A heartbeat that is late, or that reports a restarted probe or another mode or probe, starts the ' +
    'watched time anew. The same heartbeat again changes nothing.',
  answer: Taken,
}).post(
  '/runtime/coverage',
  access('ingest'),
  body(Heartbeats, MAX_HEARTBEATS_BYTES, { tolerated: 'all' }),
  async (c) => {
    const { accepted, dropped, written } = await takeHeartbeats(c.get('deps'), c.req.valid('json'))
    return sendJson(c, `{"accepted":${accepted},"dropped":${dropped},"written":${written}}`)
  },
)
