import { z } from 'zod'
import { access, chargeRows, filter, pageLimit, query, route, sendJson, zonedTimeFilter } from '../../lib/http/index.ts'
import { cursor } from '../../lib/http/request/cursor.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { readUnshipped, UnshippedCursor, UnshippedFiles } from '../../lib/runtime/reads/index.ts'

const DEFAULT_FILES = 100
const MAX_FILES = 500
/** The read budget is charged this for each file: a path may have 4 096 bytes. */
const FILE_BYTES = 8 * 1_024

const Query = z.object({
  namespace: filter('Only files of this namespace; `watch` is about it alone'),
  since: zonedTimeFilter('Only files first seen at this time or later'),
  running: documentedAs(
    z
      .enum(['true', 'false'], 'expected true or false')
      .transform((value) => value === 'true')
      .optional()
      .transform((value) => value ?? null),
    { type: 'boolean', description: 'Only files whose image the container runs now, or with `false` does not.' },
  ),
  limit: pageLimit(DEFAULT_FILES, MAX_FILES),
  after: cursor(UnshippedCursor),
})

/**
 * GET /runtime/unshipped: the files that ran from a writable layer, from memory or after they were deleted, first seen
 * last first (docs/contract.md#files-that-no-image-shipped). `watch` says how many containers nobody watches.
 */
export default route({
  summary: 'List the files that ran and no image shipped',
  description:
    'An empty list means that nothing was seen. It means that nothing ran only if `watch` has no unwatched instances.',
  answer: UnshippedFiles,
}).get('/runtime/unshipped', access('read'), query(Query), chargeRows<typeof Query>(FILE_BYTES, 1), async (c) => {
  const { db, config } = c.get('deps')
  const kept = {
    retentionDays: config.runtimeInventoryRetentionDays,
    runningWindowSecs: config.imageRunningWindowSecs,
  }
  return sendJson(c, await readUnshipped(db.read, { ...c.req.valid('query'), ...kept }))
})
