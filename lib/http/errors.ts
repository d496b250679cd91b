/** An answer other than 200, thrown by whatever finds the reason. The text is for the client. */
export class HttpError extends Error {
  readonly status: number
  readonly headers: Record<string, string>
  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** 404 with the body that every look-up by name or address answers (core-telemetry, Errors). */
export const noData = () => new HttpError(404, 'No data found')

/** The status by which the log and the metrics know a request whose client left before there was an answer; it is never sent. */
const CLIENT_GONE = 499

export const clientGone = () => new HttpError(CLIENT_GONE, 'the client has gone')
