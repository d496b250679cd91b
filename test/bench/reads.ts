/** Requests of a benchmark of reads, and the measure of one route beside the p95 to hold. */
import { run } from './client.ts'
import { TOKENS } from './supply-chain-broker.ts'

export const print = (line: string) => process.stdout.write(`${line}\n`)
export const verdict = (isHeld: boolean) => (isHeld ? 'held' : 'NOT HELD')

export function request(
  method: string,
  path: string,
  token: string,
  body = Buffer.alloc(0),
  encoding?: string,
): Buffer {
  const head = [`${method} ${path} HTTP/1.1`, 'host: broker', `authorization: Bearer ${token}`]
  if (method === 'POST') head.push('content-type: application/json', `content-length: ${body.length}`)
  if (encoding) head.push(`content-encoding: ${encoding}`)
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}

interface Reads {
  readonly port: number
  readonly clients: number
  /** Time of each measure; a quarter of it more goes before, unmeasured. */
  readonly seconds: number
}

/** Measures a route whose path depends on the number of the request. */
export type Read = (name: string, path: (i: number) => string, p95Ms: number) => Promise<void>

export const createRead =
  ({ port, clients, seconds }: Reads): Read =>
  async (name, path, p95Ms) => {
    const load = {
      ...{ port, connections: clients },
      request: (i: number) => request('GET', path(i), TOKENS.BROKER_TOKEN_READ),
    }
    await run({ ...load, forMs: (seconds * 1_000) / 4 })
    const { calls, failed, p50Ms, p99Ms, slowerThan } = await run({ ...load, forMs: seconds * 1_000 })
    const isHeld = failed === 0 && slowerThan(p95Ms) <= 0.05 * calls
    print(
      `${name.padEnd(64)} p50 ${p50Ms.toFixed(1).padStart(7)}  p99 ${p99Ms.toFixed(1).padStart(7)} ms ` +
        `${String(calls).padStart(6)} calls${failed > 0 ? `, ${failed} FAILED` : ''}  ` +
        `p95 of ${p95Ms} ms ${verdict(isHeld)}`,
    )
  }
