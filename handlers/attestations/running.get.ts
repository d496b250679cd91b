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
/** Bytes of a container with the longest result, as read and as sent. */
const CONTAINER_BYTES = 512 * 1_024
/** Bytes of a container without its result. */
const ROW_BYTES = 4 * 1_024
/** A piece of results is in memory as read, as rows of JSON, as one text, and as sent. */
const COPIES = 4

/** A page holds its list of containers, and one piece of their results at a time. */
const pageKib = (limit: number) =>
  kib(Math.min((limit + 1) * CONTAINER_BYTES, (limit + 1) * ROW_BYTES + COPIES * PIECE_BYTES))

const Query = z.object({
  namespace: filter('Only containers of this namespace'),
  limit: pageLimit(DEFAULT_CONTAINERS, MAX_CONTAINERS),
  after: containerCursor,
})

const perPage: Validated<'query', typeof Query> = charge((c) => pageKib(c.req.valid('query').limit))

/**
 * GET /attestations/running: each running container with the verified signers and attestations of its image,
 * untruncated, as trust policies match them (docs/contract.md#signatures-and-attestations). If a page cannot be read to
 * its end the connection is cut, so that it never looks whole.
 */
export default route({
  summary: 'List the running containers with their verified signatures and attestations',
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
