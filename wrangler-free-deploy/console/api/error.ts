/** This module does not use the DOM, so tests of its users run in plain Node. */

/** A failed call: the HTTP status (0 if there was no answer) and the text of the answer. */
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
