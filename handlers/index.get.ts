import { accepts } from 'hono/accepts'
import { z } from 'zod'
import { access } from '../lib/http/access.ts'
import { NoParameters, query } from '../lib/http/request/validate.ts'
import { respond, sendJson } from '../lib/http/response/respond.ts'
import { route } from '../lib/http/route.ts'

const NAME = 'cluster telemetry broker'

/** First links for a newcomer. A route that needs a token says so in its own answer. */
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

// Links are relative, since a proxy may serve the broker under a path prefix.
const items = Object.entries(LINKS).map(([what, path]) => `<li><a href="${path.slice(1)}">${path}</a> ${what}</li>`)
const STYLE =
  'body{font:1rem/1.6 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}' +
  'li{color:#555}a{font-family:monospace}'
const TOKEN = '<code>Authorization: Bearer TOKEN</code>'
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${NAME}</title>
<style>${STYLE}</style>
<h1>${NAME}</h1>
<p>It serves JSON. Where tokens are set, all but the first two links take one: ${TOKEN}.</p>
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

/** GET /: links to the main routes; an HTML page where `Accept` prefers one. Needs no token. */
export default route({
  summary: 'Get links to the main routes',
  description: 'Returns a short HTML page if `Accept` prefers `text/html`, else JSON.',
  answer: [ANSWER, { contentType: HTML, schema: z.string() }],
  database: false,
  tag: 'operations',
}).get('/', access('open'), query(NoParameters, { unknown: 'ignored' }), (c) => {
  const wanted = accepts(c, { header: 'Accept', supports: ['application/json', HTML], default: 'application/json' })
  return wanted === HTML ? respond(c, 200, PAGE, PAGE_HEADERS) : sendJson(c, JSON_TEXT, { vary: 'accept' })
})
