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
