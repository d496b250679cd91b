import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { MAX_EXECUTABLES_BYTES } from '../../lib/limits/limits.ts'
import { Executables, takeExecutables } from '../../lib/runtime/executables/index.ts'

const Taken = z.strictObject({
  accepted: z
    .int()
    .min(0)
    .describe(
      'Entries that were accepted, also several of one file. `accepted` and `dropped` add up to the entries posted.',
    ),
  dropped: z.int().min(0).describe('Entries that cannot be stored.'),
  written: z.int().min(0).describe('Rows that were new or changed.'),
})

/** POST /runtime/executables: files that ran or were loaded in containers (docs/contract.md#executables). */
export default route({
  summary: 'Store files that ran in containers',
  description:
    'Executed files, and loaded libraries. Entries are judged one by one; a bad one is dropped. Entries of one file' +
    ' are merged: the earliest `first_seen`, the latest `last_seen`, `ebpf` before `backfill`, a complete path ' +
    'before a cut one, the most suspicious origin. A stored file is rewritten only if it was seen five minutes ' +
    'later or the entry adds something.',
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
