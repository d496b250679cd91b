/** From dialling until the server has answered its first statement. */
const GREETING_MS = 5_000

/**
 * The answer to the first statement on a connection, or CONNECT_TIMEOUT. The driver's own timer may fire on a socket that it
 * has let go of and throws where nobody can catch it, so connections are opened without it.
 */
export async function greeted<T>(first: PromiseLike<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_, reject) => {
    const error = Object.assign(new Error(`no answer within ${GREETING_MS} ms`), { code: 'CONNECT_TIMEOUT' })
    timer = setTimeout(() => reject(error), GREETING_MS)
  })
  try {
    return await Promise.race([first, silence])
  } finally {
    clearTimeout(timer)
  }
}
