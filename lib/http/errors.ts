import { DatabaseBusy, DatabaseUnavailable } from '../db/index.ts'
import type { Context } from './context.ts'
import { respond } from './respond.ts'

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

/** Renders every error of every route, in one place: typed ones as they say, unknown ones as a fixed text. */
export function onError(error: Error, c: Context): Response {
  if (error instanceof HttpError) return respond(c, error.status, error.message, error.headers)
  if (error instanceof DatabaseBusy) {
    const seconds = error.retryAfterSeconds
    return respond(c, 503, `${error.message}; retry in ${seconds} seconds`, { 'retry-after': String(seconds) })
  }
  if (error instanceof DatabaseUnavailable) {
    return respond(c, 503, 'database unavailable; retry in a moment', { 'retry-after': String(error.retryAfterSeconds) })
  }
  const requestId = c.get('requestId')
  // Under `err` the log keeps what names the fault and leaves out values.
  c.get('deps').log.error({ requestId, err: error }, 'request failed')
  return respond(c, 500, `internal error, request ${requestId}`)
}
