import type { Context, MiddlewareHandler } from 'hono'
import type { BlankInput, Input } from 'hono/types'
import type { z } from 'zod'
import { clientGone } from '../errors.ts'
import { KIB } from '../limits/memory-budget.ts'
import { declare } from '../openapi/declare.ts'
import { onAnswerEnd } from './response/client-gone.ts'
import type { Env, Validated } from './route.ts'

export const kib = (bytes: number) => Math.max(1, Math.ceil(bytes / KIB))

/**
 * Charges a route to the read budget until its work is done and its answer or its client has left. Both must be over:
 * when a client leaves, its statement goes on and its list still arrives. Sending an answer gives back the part that it
 * does not need.
 */
export function charge<I extends Input = BlankInput>(
  cost: number | ((c: Context<Env, string, I>) => number | Promise<number>),
): MiddlewareHandler<Env, string, I> {
  const hold: MiddlewareHandler<Env, string, I> = async (c, next) => {
    const needed = typeof cost === 'number' ? cost : cost(c)
    const share = await c.get('deps').budget.enter(typeof needed === 'number' ? needed : await needed)
    c.set('share', share)
    const { incoming, outgoing } = c.env ?? {}
    if (!incoming || !outgoing) return next().finally(share.release)
    if (incoming.socket.destroyed) {
      share.release()
      throw clientGone()
    }
    let isOneOver = false
    const oneIsOver = () => {
      if (isOneOver) share.release()
      isOneOver = true
    }
    onAnswerEnd(incoming.socket, outgoing, oneIsOver)
    await next().finally(oneIsOver)
  }
  return declare(hold, { isCharged: true })
}

/** Charges a list for `limit` rows of its query, validated by the schema `Q`, and `more` rows, at `rowBytes` each. */
export const chargeRows = <Q extends z.ZodType<{ limit: number }>>(rowBytes: number, more = 0): Validated<'query', Q> =>
  charge((c) => kib((c.req.valid('query').limit + more) * rowBytes))
