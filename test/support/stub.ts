/** An HTTP server on loopback that replaces a peer that the broker calls. It ends with the test file. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

export interface Heard {
  method: string
  path: string
  query: Record<string, string>
  headers: http.IncomingHttpHeaders
  /** Headers as received, names and values in turn. */
  rawHeaders: string[]
  body: string
}

/** `hang` never answers, `reset` resets the connection, `cut` ends it in the middle of an answer. */
export type StubAnswer =
  | { status?: number; json?: unknown; text?: string; headers?: Record<string, string> }
  | 'hang'
  | 'reset'
  | 'cut'

export async function startStub(handler: (heard: Heard) => StubAnswer | Promise<StubAnswer>) {
  const heard: Heard[] = []
  let connections = 0
  let open = 0
  const server = http.createServer(async (incoming, outgoing) => {
    let body = ''
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk
    const url = new URL(incoming.url!, 'http://stub')
    const one: Heard = {
      method: incoming.method!,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: incoming.headers,
      rawHeaders: incoming.rawHeaders,
      body,
    }
    heard.push(one)
    const answer = await handler(one)
    if (answer === 'hang') return
    if (answer === 'reset') return void outgoing.destroy()
    if (answer === 'cut') {
      outgoing.writeHead(200, { 'content-length': '100' })
      outgoing.write('{"results":', () => outgoing.destroy())
      return
    }
    outgoing.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers })
    outgoing.end(answer.text ?? JSON.stringify(answer.json ?? null))
  })
  // Idle connections are not closed, or a request would now and then be cut.
  server.keepAliveTimeout = 0
  server.on('connection', (socket) => {
    connections++
    open++
    socket.once('close', () => {
      open--
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  after(close)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    get connections() {
      return connections
    },
    /** Number of open connections. */
    get open() {
      return open
    },
    /** Closes all connections. */
    cut: () => server.closeAllConnections(),
    close,
  }
}
