// Real HTTP servers on loopback that play the broker's outbound peers.
import { createServer } from 'node:http'

/** A server whose answer is decided by `handler(req, bodyText, url)` -> { status, json | text, headers, delayMs } | 'hang' | 'reset'. */
export async function stubServer(handler) {
  const seen = []
  const server = createServer(async (req, res) => {
    let body = ''
    for await (const c of req) body += c
    const url = new URL(req.url, 'http://stub')
    seen.push({
      method: req.method,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: req.headers,
      body,
    })
    const out = await handler(req, body, url)
    if (out === 'hang') return
    if (out === 'reset') return res.destroy()
    if (out.delayMs) await new Promise((ok) => setTimeout(ok, out.delayMs))
    res.writeHead(out.status ?? 200, {
      'content-type': out.json !== undefined ? 'application/json' : 'text/plain',
      ...out.headers,
    })
    res.end(out.json !== undefined ? JSON.stringify(out.json) : (out.text ?? ''))
  })
  await new Promise((ok) => server.listen(0, '127.0.0.1', ok))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    seen,
    close: () => {
      server.closeAllConnections()
      return new Promise((ok) => server.close(ok))
    },
  }
}
