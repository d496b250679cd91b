import { z } from 'zod'
import { containerCursor } from '../../lib/attestations/container-cursor.ts'
import { PIECE_BYTES, RunningPage, readRunning } from '../../lib/attestations/running.ts'
import {
  access,
  asArray,
  between,
  charge,
  filter,
  kib,
  pageByPage,
  pageLimit,
  query,
  route,
  sendJson,
  sendPieces,
  type Validated,
} from '../../lib/http/index.ts'

const DEFAULT_CONTAINERS = 100
const MAX_CONTAINERS = 200
/** Bytes of a container with its result at its longest, as it was read and as it is sent (interop-supply-chain 3.10). */
const CONTAINER_BYTES = 512 * 1_024
/** Bytes of a container without its result. */
const ROW_BYTES = 4 * 1_024
/** A piece as it was read, as rows of JSON, as one text, and as sent. */
const COPIES = 4

/** A page holds which containers it has, and one piece of their results at a time. */
const pageKib = (limit: number) =>
  kib(Math.min((limit + 1) * CONTAINER_BYTES, (limit + 1) * ROW_BYTES + COPIES * PIECE_BYTES))

const Query = z.object({
  namespace: filter('Only containers of this namespace'),
  limit: pageLimit(DEFAULT_CONTAINERS, MAX_CONTAINERS),
  after: containerCursor,
})

const perPage: Validated<'query', typeof Query> = charge((c) => pageKib(c.req.valid('query').limit))

/**
 * GET /attestations/running: each container of a workload that runs, with who signed its image and what was attested of it, whole, as trust
 * policies match them (supply-chain, Running feed item; interop-supply-chain 3.7). A page that could not be read to its end is cut, so
 * that it never looks whole.
 */
export default route({
  summary: 'The containers that run, with the verified signatures and attestations of their images',
  answer: RunningPage,
}).get('/attestations/running', access('read'), query(Query), perPage, async (c) => {
  const { db, config } = c.get('deps')
  const { namespace, limit, after } = c.req.valid('query')
  const scope = { namespace, windowSecs: config.imageRunningWindowSecs, retentionDays: config.attestationRetentionDays }
  const { first, next, nextAfter } = await readRunning(db.read, scope, { limit, after }, config.wireNames)
  const head = Buffer.from('{"items":')
  const tail = Buffer.from(`,"nextAfter":${JSON.stringify(nextAfter)}}`)
  if (first.last === null) return sendJson(c, Buffer.concat([head, asArray(first), tail]))
  return sendPieces(c, between(head, pageByPage(c, first, next, pageKib(limit)), tail))
})
