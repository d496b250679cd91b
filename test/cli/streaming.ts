/** A server that writes its answers piece by piece, for what a broker does only after minutes, or never. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

export interface Asked {
  readonly query: Readonly<Record<string, string>>
  readonly accept: string | undefined
}

export async function startStreaming(answer: (asked: Asked, outgoing: http.ServerResponse) => unknown) {
  const asked: Asked[] = []
  const server = http.createServer(async (incoming, outgoing) => {
    const { searchParams } = new URL(incoming.url!, 'http://stub')
    const one = { query: Object.fromEntries(searchParams), accept: incoming.headers.accept }
    asked.push(one)
    await answer(one, outgoing)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** Resolves when the text is on its way, so that a reset behind it does not overtake it. */
export const send = (outgoing: http.ServerResponse, text: string | Buffer): Promise<void> =>
  new Promise((resolve) => {
    outgoing.write(text, () => resolve())
  })
