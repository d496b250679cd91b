import { randomInt } from 'node:crypto'
import net from 'node:net'

/** Below the ephemeral ports, which the system may give to any connection at any time. */
const FIRST = 20_000
const LAST = 32_000

const given = new Set<number>()

/** A free port of the loopback address, for a program that cannot choose one itself. */
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
