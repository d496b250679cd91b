import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { MiddlewareHandler } from 'hono'
import type { Context, Env } from './context.ts'
import { declare } from './declared.ts'
import { HttpError } from './errors.ts'

interface Waiter {
  kib: number
  grant: () => void
  expires: NodeJS.Timeout
}

/**
 * The memory that list routes may hold at once (interop-core 6.1). Each charges its worst case before its statement runs;
 * what does not fit waits in line, first come first served, and is shed with 503 when its turn does not come in time.
 * A list is whole or shed, never cut.
 */
export class ReadBudget {
  readonly totalKib: number
  readonly #waitMs: number
  readonly #line: Waiter[] = []
  #availableKib: number
  #shed = 0

  readonly #refusal: (kib: number, totalKib: number) => string

  constructor(options: { totalKib: number; waitMs: number; refusal?: (kib: number, totalKib: number) => string }) {
    this.totalKib = options.totalKib
    this.#availableKib = options.totalKib
    this.#waitMs = options.waitMs
    this.#refusal = options.refusal ?? readRefusal
  }

  get availableKib(): number {
    return this.#availableKib
  }

  get shed(): number {
    return this.#shed
  }

  /** Takes `kib` (at least 1, at most the total: a read over the total runs alone). Resolves to its release, callable once. */
  acquire(kib: number): Promise<() => void> | (() => void) {
    const cost = Math.min(Math.max(1, Math.ceil(kib)), this.totalKib)
    if (this.#line.length === 0 && cost <= this.#availableKib) return this.#take(cost)
    if (this.#waitMs === 0) throw this.#refuse(cost)
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        kib: cost,
        grant: () => {
          clearTimeout(waiter.expires)
          resolve(this.#take(cost))
        },
        expires: setTimeout(() => {
          this.#line.splice(this.#line.indexOf(waiter), 1)
          reject(this.#refuse(cost))
          this.#serve()
        }, this.#waitMs),
      }
      this.#line.push(waiter)
    })
  }

  #take(kib: number): () => void {
    this.#availableKib -= kib
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#availableKib += kib
      this.#serve()
    }
  }

  #serve(): void {
    while (this.#line[0] && this.#line[0].kib <= this.#availableKib) this.#line.shift()!.grant()
  }

  #refuse(kib: number): HttpError {
    this.#shed += 1
    return new HttpError(503, this.#refusal(kib, this.totalKib), { 'retry-after': '1' })
  }
}

// Clients look for both phrases.
const readRefusal = (kib: number, totalKib: number) =>
  `read memory budget exhausted: the read needs ${kib} KiB of a ${totalKib} KiB budget; retry in a moment`

export const kib = (bytes: number) => Math.max(1, Math.ceil(bytes / 1024))

/**
 * Charges a route to the read budget until its work is done and its answer has left, or its client has. Both count: a client that
 * goes away does not end the statement, whose list then still arrives.
 */
export function charge(cost: number | ((c: Context) => number)): MiddlewareHandler<Env> {
  const hold: MiddlewareHandler<Env> = async (c, next) => {
    const release = await c.get('deps').budget.acquire(typeof cost === 'number' ? cost : cost(c))
    const { incoming, outgoing } = c.env ?? {}
    if (!incoming || !outgoing) return next().finally(release)
    if (incoming.socket.destroyed) {
      release()
      throw new HttpError(CLIENT_GONE, 'the client has gone')
    }
    let isHalfDone = false
    const half = () => {
      if (isHalfDone) release()
      isHalfDone = true
    }
    onLeft(incoming.socket, outgoing, half)
    await next().finally(half)
  }
  return declare(hold, { isCharged: true })
}

/** Charges a list by the validated query parameter `limit`, and so many rows `more`, at so many bytes a row. */
export const chargeRows = (rowBytes: number, more = 0) =>
  charge((c) => kib(((c.req.valid('query' as never) as { limit: number }).limit + more) * rowBytes))

/** Never sent: what the log and the metrics call a request whose client left while it waited in line. */
const CLIENT_GONE = 499

/** Calls once, when the answer has left or its connection has ended. */
function onLeft(socket: Socket, outgoing: Writable & { socket: unknown }, left: () => void): void {
  // Pipelined behind another: it gets the socket later, and until then does not hear of its end.
  const isBehind = outgoing.socket === null
  const once = () => {
    outgoing.off('close', once)
    if (isBehind) socket.off('close', once)
    left()
  }
  outgoing.once('close', once)
  if (isBehind) socket.setMaxListeners(0).once('close', once)
}
