/**
 * The shared part of the route that takes results: its declarations, its body and its answer
 * (docs/contract.md#signatures-and-attestations).
 */
import { randomUUID } from 'node:crypto'
import { HttpError } from '../errors.ts'
import { yieldToEventLoop } from '../event-loop/slices.ts'
import { kib } from '../http/charge.ts'
import { withPayload } from '../http/request/body.ts'
import { documentedBody } from '../http/request/validate.ts'
import { respondEmpty } from '../http/response/respond.ts'
import type { Context } from '../http/route.ts'
import { MAX_RESULT_BYTES, MIN_PRESCAN_BYTES, PAYLOAD_DEADLINE_MS } from '../limits/limits.ts'
import type { RouteDoc } from '../openapi/declare.ts'
import { PostedResult } from './posted.ts'
import { prepareResult } from './result.ts'

/**
 * Memory for each byte of a body: as text, as parsed, and twice in the statement, since verified entries are stored
 * twice.
 */
const HELD_PER_BYTE = 8

const ABSENT = 'The image is not in the inventory.'
const OTHER = 'Another result is stored that was checked at the same time or later.'

/** Answers other than 200. */
export const resultAnswers = {
  201: { description: 'Stored.', answer: null },
  404: ABSENT,
  408: `The body did not arrive within ${PAYLOAD_DEADLINE_MS / 1_000} seconds.`,
  409: OTHER,
  415: 'The body has a content coding.',
  422: 'The result breaks the contract; the text names the field and the rule, and nothing was written.',
} satisfies RouteDoc['also']

/** Declares the body for the OpenAPI document; the handler reads it. */
export const postedResult = documentedBody({
  schema: PostedResult,
  maxBytes: MAX_RESULT_BYTES,
  description:
    `At most ${MAX_RESULT_BYTES} bytes, without a content coding. Its content type is not looked at. ` +
    'Unknown keys are ignored.',
})

/**
 * Reads the body of a request, stores it and answers the outcome. `store` gets the JSON document of
 * `store_attestation`. The body is read before any memory budget is taken, so a slow sender holds only its own
 * connection.
 */
export async function storeResult(
  c: Context,
  digest: string,
  store: (document: string) => Promise<readonly { outcome: 'stored' | 'same' | 'other' | 'absent' }[]>,
) {
  return withPayload(c, { maxBytes: MAX_RESULT_BYTES, codings: ['identity'] }, async (bytes) => {
    const { bodies, metrics, unknownReasons } = c.get('deps')
    const release = await bodies.acquire(kib(bytes.length * HELD_PER_BYTE))
    try {
      if (bytes.length >= MIN_PRESCAN_BYTES) await yieldToEventLoop()
      const { document, unknownReasons: codes, unreadableTimes } = await prepareResult(bytes, digest, Date.now())
      unknownReasons.note(codes)
      metrics.unreadableTimes.labels('attestation').inc(unreadableTimes)
      // If the answer of the database is lost, the next attempt is recognised by `post`.
      const [row] = await store(JSON.stringify({ ...document, post: randomUUID() }))
      const { outcome } = row!
      if (outcome === 'absent') throw new HttpError(404, ABSENT)
      if (outcome === 'other') throw new HttpError(409, OTHER)
      return respondEmpty(c, outcome === 'stored' ? 201 : 200)
    } finally {
      release()
    }
  })
}
