import { randomUUID } from 'node:crypto'

/** The id of a request: the one that the caller sent if it has the form of an id, else a new one. */
export const requestId = (sent: string | undefined): string =>
  sent && /^[\w-]{8,64}$/.test(sent) ? sent : randomUUID()
