import { z } from 'zod'
import { placeCursor } from '../../lib/attestations/place.ts'
import { PIECE_BYTES, RunningPage, readRunning } from '../../lib/attestations/running.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { filter, pageLimit } from '../../lib/http/fields.ts'
import { asArray, between, pageByPage } from '../../lib/http/pages.ts'
import { chargeRows, kib } from '../../lib/http/read-budget.ts'
import { sendJson, sendPieces } from '../../lib/http/respond.ts'
import { query } from '../../lib/http/validate.ts'

const DEFAULT_CONTAINERS = 100
const MAX_CONTAINERS = 200
/** Bytes a container may cost while its list is built (interop-supply-chain 3.10). */
const CONTAINER_BYTES = 512 * 1_024
/** What a piece comes to as it was read, as rows of JSON, as one text, and as sent. */
const COPIES = 4

const Query = z.object({
  namespace: filter('Only containers of this namespace'),
  limit: pageLimit(DEFAULT_CONTAINERS, MAX_CONTAINERS),
  after: placeCursor,
})

/**
 * GET /attestations/running: each container of a workload that runs, with who signed its image and what was attested of it, whole, as trust
 * policies match them (supply-chain, Running feed item; interop-supply-chain 3.7). A page that could not be read to its end is cut, so
 * that it never looks whole.
 */
export default route({
  summary: 'The containers that run, with the verified signatures and attestations of their images',
  answer: RunningPage,
}).get('/attestations/running', access('read'), query(Query), chargeRows<typeof Query>(CONTAINER_BYTES, 1), async (c) => {
  const { db, config } = c.get('deps')
  const { namespace, limit, after } = c.req.valid('query')
  const scope = { namespace, windowSecs: config.imageRunningWindowSecs, retentionDays: config.attestationRetentionDays }
  const { first, next, maxPerPiece, nextAfter } = await readRunning(db.read, scope, { limit, after }, config.wireNames)
  const head = Buffer.from('{"items":')
  const tail = Buffer.from(`,"nextAfter":${JSON.stringify(nextAfter)}}`)
  if (first.last === null) return sendJson(c, Buffer.concat([head, asArray(first), tail]))
  const pieceKib = kib(Math.max(maxPerPiece * CONTAINER_BYTES, COPIES * PIECE_BYTES))
  return sendPieces(c, between(head, pageByPage(c, first, next, pieceKib), tail))
})
