import { onAnswerEnd } from '../http/response/client-gone.ts'
import type { Context } from '../http/route.ts'

/** Texts that are on their way to somebody: each stays in memory until its last reader has taken it, or was cut. */
export class LeavingTexts {
  readonly #readers = new Map<Buffer, number>()

  /** How many different ones. */
  get size(): number {
    return this.#readers.size
  }

  /** Counts the text until its answer has left. */
  add(c: Context, text: Buffer): void {
    const { incoming, outgoing } = c.env ?? {}
    if (!incoming || !outgoing || incoming.socket.destroyed) return
    this.#readers.set(text, (this.#readers.get(text) ?? 0) + 1)
    onAnswerEnd(incoming.socket, outgoing, () => {
      const left = this.#readers.get(text)! - 1
      if (left === 0) this.#readers.delete(text)
      else this.#readers.set(text, left)
    })
  }
}
