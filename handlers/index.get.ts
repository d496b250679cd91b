import { accepts } from 'hono/accepts'
import { z } from 'zod'
import { access, NoParameters, query, respond, route, sendJson } from '../lib/http/index.ts'

const NAME = 'cluster telemetry broker'

type Pages = Readonly<Record<string, readonly [path: string, what: string]>>

/** First links for a newcomer, with what they show. A route that needs a token says so in its own answer. */
const PAGES: Pages = {
  health: ['/health', 'Health of the broker'],
  metrics: ['/metrics', 'Metrics for Prometheus'],
  openapi: ['/openapi.json', 'All routes as OpenAPI'],
  version: ['/version', 'Version'],
  pods: ['/pod/info', 'Pods'],
  traffic: ['/pod/traffic', 'Flows between pods and the world'],
  services: ['/svc/info', 'Services'],
  images: ['/images', 'Running images'],
  vulnerabilities: ['/vulnerabilities', 'Vulnerabilities of images'],
  seccomp: ['/seccomp/profiles', 'Observed syscalls of workloads'],
  compute: ['/compute/nodes', 'CPU and memory of nodes'],
  nodes: ['/node/status', 'Agents on the nodes'],
}
const CONSOLE: Pages = { console: ['/console/', 'Console: all of this in the browser'] }

const ANSWER = z.object({ name: z.literal(NAME), links: z.record(z.string(), z.string()) })

const STYLE = `
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2.5rem auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.2}
code,a{font-family:ui-monospace,monospace}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.5rem 1.5rem}
dd{margin:0}
@media(max-width:32rem){dl{display:block}dd{margin:0 0 .75rem}}
`
const BEARER = '<code>Authorization: Bearer&nbsp;TOKEN</code>'

function pageOf(pages: Pages, openCount: string): string {
  // Links are relative, since a proxy may serve the broker under a path prefix.
  const items = Object.values(pages).map(([path, what]) => `<dt><a href="${path.slice(1)}">${path}</a><dd>${what}`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${NAME}</title>
<style>${STYLE}</style>
<h1>${NAME}</h1>
<p>This server answers JSON. If tokens are set, all links but the first ${openCount} need one: ${BEARER}.</p>
<dl>
${items.join('\n')}
</dl>
</html>
`
}

function answersOf(pages: Pages, openCount: string) {
  const links = Object.fromEntries(Object.entries(pages).map(([name, [path]]) => [name, path]))
  return { json: JSON.stringify({ name: NAME, links }), page: pageOf(pages, openCount) }
}

const WITHOUT_CONSOLE = answersOf(PAGES, 'two')
const WITH_CONSOLE = answersOf({ ...CONSOLE, ...PAGES }, 'three')

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
  const { json, page } = c.get('deps').hasConsole ? WITH_CONSOLE : WITHOUT_CONSOLE
  return wanted === HTML ? respond(c, 200, page, PAGE_HEADERS) : sendJson(c, json, { vary: 'accept' })
})
