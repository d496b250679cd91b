import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { Executables, MAX_EXECUTABLES_BYTES, takeExecutables } from '../../lib/runtime/executables/index.ts'

const Taken = z.strictObject({
  accepted: z
    .int()
    .min(0)
    .describe('Entries that were taken, several of one file of a container too: with `dropped`, all that were posted.'),
  dropped: z.int().min(0).describe('Entries that cannot be stored.'),
  written: z.int().min(0).describe('Rows that were new or changed.'),
})

/** POST /runtime/executables: files that ran or were loaded in containers (workload-profiling, Runtime inventory; interop-profiling 2.3). */
export default route({
  summary: 'Adds files that ran or were loaded in containers',
  description:
    'Entries are judged one by one; those of one file are merged: the least `first_seen`, the greatest `last_seen`, `ebpf` before `backfill`, a complete path, the most suspicious origin. A stored file is written again when it was seen five minutes later or the report adds something. The same again changes nothing.',
  answer: Taken,
}).post(
  '/runtime/executables',
  access('ingest'),
  body(Executables, MAX_EXECUTABLES_BYTES, { tolerated: 'all' }),
  async (c) => {
    const { accepted, dropped, written } = await takeExecutables(c.get('deps'), c.req.valid('json'))
    return sendJson(c, `{"accepted":${accepted},"dropped":${dropped},"written":${written}}`)
  },
)
