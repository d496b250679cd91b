import { within } from '../time/within.ts'
import { DatabaseUnavailable } from './errors.ts'

/** From dialling until the server has answered its first statement. */
const GREETING_MS = 5_000

/**
 * The answer to the first statement on a connection, or CONNECT_TIMEOUT. The driver's own timer may fire on a socket that it
 * has let go of and throws where nobody can catch it, so connections are opened without it.
 */
export async function greeted<T extends object>(first: PromiseLike<T>): Promise<T> {
  const answer = await within(first, GREETING_MS)
  if (answer === undefined) throw new DatabaseUnavailable(`no answer within ${GREETING_MS} ms`, 'CONNECT_TIMEOUT')
  return answer
}
