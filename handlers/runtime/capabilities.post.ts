import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { MAX_CAPABILITIES_BYTES } from '../../lib/limits/limits.ts'
import { Capabilities, takeCapabilities } from '../../lib/runtime/capabilities/index.ts'

const Taken = z.strictObject({
  accepted: z.int().min(0).describe('Rows after entries of one row are merged.'),
  dropped: z.int().min(0).describe('Entries that cannot be stored.'),
  written: z.int().min(0).describe('Rows that were written: all that were accepted.'),
})

/** POST /runtime/capabilities: checks of Linux capabilities since the last post (docs/contract.md#capabilities). */
export default route({
  summary: 'Add checks of Linux capabilities in containers',
  description:
    'Entries are judged one by one; a bad one is dropped. Entries of one capability of a container and image with ' +
    'the same `granted` and `probed` are one row: counts are added, also to what is stored, with the earliest ' +
    '`first_seen` and the latest `last_seen`. A post that is repeated is added again.',
  answer: Taken,
}).post(
  '/runtime/capabilities',
  access('ingest'),
  body(Capabilities, MAX_CAPABILITIES_BYTES, { tolerated: 'all' }),
  async (c) => {
    const { accepted, dropped, written } = await takeCapabilities(c.get('deps'), c.req.valid('json'))
    return sendJson(c, `{"accepted":${accepted},"dropped":${dropped},"written":${written}}`)
  },
)
