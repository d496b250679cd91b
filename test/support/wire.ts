/** The protocol of PostgreSQL as far as a proxy needs it: where messages end, and which statement runs. */

export interface Message {
  /** One letter; empty for the startup message, which has none. */
  type: string
  body: Buffer
}

/** Cuts a stream into messages. The first message of a client has no type. */
export function splitter(side: 'client' | 'server'): (bytes: Buffer) => Message[] {
  let rest: Buffer = Buffer.alloc(0)
  let isStarting = side === 'client'
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
    const messages: Message[] = []
    for (;;) {
      const head = isStarting ? 0 : 1
      if (rest.length < head + 4) return messages
      const end = head + rest.readInt32BE(head)
      if (rest.length < end) return messages
      messages.push({ type: rest.toString('latin1', 0, head), body: rest.subarray(head + 4, end) })
      rest = rest.subarray(end)
      isStarting = false
    }
  }
}

const text = (body: Buffer, from: number) => body.toString('utf8', from, body.indexOf(0, from))

/** Follows the messages of a client; returns the text of a statement when it was sent completely. */
export function statements(): (message: Message) => string | undefined {
  const texts = new Map<string, string>()
  let running: string | undefined
  return ({ type, body }) => {
    if (type === 'P') texts.set(text(body, 0), text(body, body.indexOf(0) + 1))
    if (type === 'B') running = texts.get(text(body, body.indexOf(0) + 1))
    if (type !== 'S') return undefined
    const sent = running
    running = undefined
    return sent
  }
}
