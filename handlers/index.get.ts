import { accepts } from 'hono/accepts'
import { z } from 'zod'
import { access } from '../lib/http/access.ts'
import { route } from '../lib/http/context.ts'
import { respond, sendJson } from '../lib/http/respond.ts'
import { NoParameters, query } from '../lib/http/validate.ts'

const NAME = 'cluster telemetry broker'

/** Where to begin, and what is there. What takes a token says so itself. */
const PLACES = {
  health: ['/health', 'Whether it is up'],
  metrics: ['/metrics', 'Numbers for Prometheus'],
  openapi: ['/openapi.json', 'Every route, for tools'],
  version: ['/version', 'Which version this is'],
  pods: ['/pod/info', 'Pods'],
  traffic: ['/pod/traffic', 'Flows between pods and the world'],
  services: ['/svc/info', 'Services'],
  images: ['/images', 'Images that run'],
  vulnerabilities: ['/vulnerabilities', 'What the images are vulnerable to'],
  seccomp: ['/seccomp/profiles', 'Syscalls that workloads make'],
  compute: ['/compute/nodes', 'What the nodes have to compute with'],
  nodes: ['/node/status', 'Agents on the nodes'],
} as const

const LINKS = Object.fromEntries(Object.entries(PLACES).map(([name, [path]]) => [name, path]))

const ANSWER = z.object({ name: z.literal(NAME), links: z.record(z.string(), z.string()) })
const JSON_TEXT = JSON.stringify({ name: NAME, links: LINKS })

// Links are relative: a proxy may have the broker under a path of its own.
const items = Object.values(PLACES).map(([path, what]) => `<dt><a href="${path.slice(1)}">${path}</a><dd>${what}`)
const STYLE = `
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2.5rem auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.2}
code,a{font-family:ui-monospace,monospace}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.5rem 1.5rem}
dd{margin:0}
@media(max-width:32rem){dl{display:block}dd{margin:0 0 .75rem}}
`
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${NAME}</title>
<style>${STYLE}</style>
<h1>${NAME}</h1>
<p>It serves JSON. Where tokens are set, all but the first two links take one: <code>Authorization: Bearer&nbsp;TOKEN</code>.</p>
<dl>
${items.join('\n')}
</dl>
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
