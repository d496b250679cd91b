/**
 * The shared part of the two routes that take payloads: their declarations, body and answers
 * (docs/contract.md#findings, #sbom).
 */
import type { ServerResponse } from 'node:http'
import type { MiddlewareHandler } from 'hono'
import { z } from 'zod'
import { withPayload } from '../http/request/body.ts'
import { wireTime } from '../http/request/fields.ts'
import { documentedBody } from '../http/request/validate.ts'
import { sendShortJson } from '../http/response/respond.ts'
import type { Context, Env } from '../http/route.ts'
import { MAX_PAYLOAD_BYTES, PAYLOAD_DEADLINE_MS } from '../limits/limits.ts'
import type { RouteDoc } from '../openapi/declare.ts'
import type { Ask } from './payloads.ts'
import type { Kind } from './worker.ts'

const count = z.int().min(0)

const Stored = z.strictObject({ status: z.literal('stored'), items: count.describe('Rows of the payload.') })
const Unchanged = z.strictObject({ status: z.literal('unchanged') })
const Stale = z.strictObject({
  status: z.literal('stale'),
  stored_scanned_at: wireTime.describe('Of what is stored, or half sent, and not older.'),
})

/** The outcome for a payload. */
export const PayloadOutcome = z.union([Stored, Unchanged, Stale]).meta({ id: 'PayloadOutcome' })

const Pages = { received: count.describe('Pages held.'), total: count }

/** The outcome for one page of a set. */
export const DuplicatePage = z.strictObject({ status: z.literal('duplicate_page'), ...Pages })
export const StagedPage = z.strictObject({ status: z.literal('staged'), ...Pages }).meta({ id: 'StagedPage' })

/** Answers of both routes. */
export const payloadAnswers = {
  408: `The body did not arrive within ${PAYLOAD_DEADLINE_MS / 1_000} seconds.`,
  422: 'The payload breaks the contract; the text names the field and the rule, and nothing was written.',
} satisfies RouteDoc['also']

/** Declares the body for the OpenAPI document; the handler reads it. */
export function payload(schema: z.ZodType): MiddlewareHandler<Env> {
  const description = `At most ${MAX_PAYLOAD_BYTES} bytes as sent, and as many as \`SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES\` says as unpacked; \`Content-Encoding: gzip\` and \`x-gzip\` are accepted. Its content type is not looked at. Unknown keys are ignored.`
  return documentedBody({ schema, maxBytes: MAX_PAYLOAD_BYTES, description })
}

/**
 * Reads the body of a request, stores it and answers the outcome. The body is read before it waits for earlier
 * payloads, so a slow sender holds only its own connection.
 * @throws HttpError 408, 413 and 415 for the body, and the errors of `Payloads.store`
 */
export async function storePayload(c: Context, kind: Kind, digest: string, ask: Ask): Promise<Response> {
  const body = { maxBytes: MAX_PAYLOAD_BYTES, codings: ['identity', 'gzip', 'x-gzip'] as const }
  return withPayload(c, body, async (bytes, coding) => {
    const sent = { bytes, isPacked: coding !== 'identity', digest }
    const outcome = await c.get('deps').payloads.store(kind, sent, ask, (leave) => onLeaving(c, leave))
    return sendShortJson(c, outcome.status === 'staged' ? 202 : 200, JSON.stringify(outcome))
  })
}

function onLeaving(c: Context, leave: () => void): void {
  const outgoing = c.env?.outgoing as ServerResponse | undefined
  outgoing?.once('close', leave)
}
