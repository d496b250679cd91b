import type { ClientRequest } from 'node:http'

/** A complete answer from a server that the broker called. */
export interface Reply {
  readonly status: number
  readonly text: string
}

/**
 * Reads the answer to a request that has not been ended yet. Rejects on transport errors and on truncated or too large
 * answers.
 */
export function readReply(outgoing: ClientRequest, maxBytes: number): Promise<Reply> {
  return new Promise((resolve, reject) => {
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = []
      let bytes = 0
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > maxBytes) outgoing.destroy(new Error(`an answer of more than ${maxBytes} bytes`))
        else chunks.push(chunk)
      })
      incoming.on('error', reject)
      incoming.on('end', () => resolve({ status: incoming.statusCode!, text: Buffer.concat(chunks).toString() }))
      // On a truncated answer `end` is not emitted, nor `error` on every version of Node.
      incoming.on('close', () => reject(new Error('the answer was cut short')))
    })
  })
}
