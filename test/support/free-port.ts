import { randomInt } from 'node:crypto'
import net from 'node:net'

/** Below those that systems give to whoever asks for any, also for the near end of a connection: such a one may be gone a moment later. */
const FIRST = 20_000
const LAST = 32_000

const given = new Set<number>()

/** A port of the loopback address that nobody listens on, for a program that cannot choose one itself. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST)
    if (given.has(port)) continue
    given.add(port)
    const server = net.createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}
