import type { ClientRequest } from 'node:http'

/** An answer from somebody the broker asked, read to its end. */
export interface Reply {
  readonly status: number
  readonly text: string
}

/** The answer to a request that has not been ended yet. Rejects on transport errors, and on an answer that is cut short or too large. */
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
      // Cut short: neither `end` nor, on every version of Node, `error` comes.
      incoming.on('close', () => reject(new Error('the answer was cut short')))
    })
  })
}
