/** Errors that several folders throw. */

/** An answer other than 200, thrown where the reason is found. The text is for the client. */
export class HttpError extends Error {
  readonly status: number
  readonly headers: Record<string, string>
  /** With a code the body is JSON: `{"error": code, "message": text}`, then the `facts`. */
  readonly code: string | undefined
  readonly facts: object
  constructor(
    status: number,
    message: string,
    headers: Record<string, string> = {},
    code?: string,
    facts: object = {},
  ) {
    super(message)
    this.status = status
    this.headers = headers
    this.code = code
    this.facts = facts
  }
}

/** 404 with the body of every look-up by name or address (docs/contract.md#errors). */
export const noData = () => new HttpError(404, 'No data found')

export const tooLarge = (maxBytes: number) => new HttpError(413, `body is larger than ${maxBytes} bytes`)

/** The status in the log and the metrics of a request whose client left before its answer; it is never sent. */
const CLIENT_GONE = 499

export const clientGone = () => new HttpError(CLIENT_GONE, 'the client has gone')

/** The environment is unusable. The message names each bad variable on its own line and contains no secret value. */
export class ConfigError extends Error {
  override readonly name: string = 'ConfigError'
}
