import { onAnswerEnd } from '../http/response/client-gone.ts'
import type { Context } from '../http/route.ts'

/** Counts texts that are being sent: each stays in memory until its last reader has received it or was disconnected. */
export class OutgoingTexts {
  readonly #readers = new Map<Buffer, number>()

  /** Number of distinct texts. */
  get size(): number {
    return this.#readers.size
  }

  /** Counts the text until its answer has been sent. */
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
