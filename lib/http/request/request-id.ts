import { randomUUID } from 'node:crypto'

/** The id of a request: the caller's own where it cannot be anything but an id, else a new one. */
export const requestId = (sent: string | undefined): string =>
  sent && /^[\w-]{8,64}$/.test(sent) ? sent : randomUUID()
