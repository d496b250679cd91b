import { accepts } from 'hono/accepts'
import { z } from 'zod'
import { access, NoParameters, query, respond, route, sendJson } from '../lib/http/index.ts'

const NAME = 'cluster telemetry broker'

/** Where to begin. What takes a token says so itself. */
const LINKS = {
  health: '/health',
  metrics: '/metrics',
  openapi: '/openapi.json',
  version: '/version',
  pods: '/pod/info',
  traffic: '/pod/traffic',
  services: '/svc/info',
  images: '/images',
  vulnerabilities: '/vulnerabilities',
  seccomp: '/seccomp/profiles',
  compute: '/compute/nodes',
  nodes: '/node/status',
}

const ANSWER = z.object({ name: z.literal(NAME), links: z.record(z.string(), z.string()) })
const JSON_TEXT = JSON.stringify({ name: NAME, links: LINKS })

// Links are relative: a proxy may have the broker under a path of its own.
const items = Object.entries(LINKS).map(([what, path]) => `<li><a href="${path.slice(1)}">${path}</a> ${what}</li>`)
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${NAME}</title>
<style>body{font:1rem/1.6 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}li{color:#555}a{font-family:monospace}</style>
<h1>${NAME}</h1>
<p>It serves JSON. Where tokens are set, all but the first two links take one: <code>Authorization: Bearer TOKEN</code>.</p>
<ul>
${items.join('\n')}
</ul>
</html>
`

const HTML = 'text/html'
const PAGE_HEADERS = {
  'content-type': `${HTML}; charset=utf-8`,
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  vary: 'accept',
}

/** GET /: links to begin with, as a page for a browser. Open, and the same for everybody. */
export default route({
  summary: 'Links to begin with',
  description: 'A short page where `Accept` prefers `text/html`, else JSON.',
  answer: [ANSWER, { contentType: HTML, schema: z.string() }],
  database: false,
  tag: 'operations',
}).get('/', access('open'), query(NoParameters, { unknown: 'ignored' }), (c) => {
  const wanted = accepts(c, { header: 'Accept', supports: ['application/json', HTML], default: 'application/json' })
  return wanted === HTML ? respond(c, 200, PAGE, PAGE_HEADERS) : sendJson(c, JSON_TEXT, { vary: 'accept' })
})
