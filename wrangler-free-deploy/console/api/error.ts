/** Without the DOM, so that plain node runs tests of what depends on it. */

/** A call that failed: the status, 0 where no answer came, and what the broker said. */
export class ApiError extends Error {
  readonly status: number
  readonly retryAfterMs: number | null
  /** The whole answer: some refusals say more than their message. */
  readonly body: string

  constructor(status: number, message: string, retryAfterMs: number | null = null, body = '') {
    super(message)
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.body = body
  }
}
