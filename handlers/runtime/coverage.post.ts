import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { Heartbeats, MAX_HEARTBEATS_BYTES, takeHeartbeats } from '../../lib/runtime/coverage/index.ts'

const Taken = z.strictObject({
  accepted: z
    .int()
    .min(0)
    .describe('Entries that were taken, several of one container too: with `dropped`, all that were posted.'),
  dropped: z.int().min(0).describe('Entries that cannot be stored.'),
  written: z
    .int()
    .min(0)
    .describe(
      'Rows that were new or changed: what is not newer than what is stored, or of a container that ended, changes nothing.',
    ),
})

/** POST /runtime/coverage: heartbeats of watched containers (workload-profiling, Runtime coverage and heartbeat; interop-profiling 2.4, P11). */
export default route({
  summary: 'Takes heartbeats of watched containers',
  description:
    'Entries are judged one by one. Of several of one container the newest counts, with what all of them lost. A heartbeat that is late, or that tells of a probe attached anew or of another mode or probe, begins the run without a gap anew. The same again changes nothing.',
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
