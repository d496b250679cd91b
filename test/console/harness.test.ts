/** The harness itself: the seed has its story, and a page with a fault fails its test. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { type ConsoleBroker, startConsoleBroker, TOKENS } from './support/broker.ts'
import { axeViolations, launch, noBrowser, openPage, overflowPx, screenshot } from './support/browser.ts'
import { LOG4SHELL, SILENT_NODES } from './support/seed/story.ts'
import { seededDatabase } from './support/seeded.ts'

/** The content security policy of the console. */
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
].join('; ')
/** These pages request resources that the policy forbids. */
const WITHOUT_POLICY = ['/foreign', '/wide']

/** Pages with one fault each; `/` has none. */
const PAGES: Readonly<Record<string, string>> = {
  '/': '<h1>Right</h1>',
  '/error': '<script src="/error.js"></script>',
  '/inline': '<script>0</script>',
  '/foreign': '<img alt="" src="http://127.0.0.1:9/x.png">',
  '/missing': '<script src="/missing.js"></script>',
  '/image': '<img src="/">',
  '/wide': '<div style="width: 3000px">wide</div>',
}
const SCRIPTS: Readonly<Record<string, string>> = {
  '/error.js': `console.error('it went wrong'); setTimeout(() => { throw new Error('uncaught') })`,
}

interface Site {
  readonly url: string
  readonly server: http.Server
  readonly browser: Browser
  readonly broker: ConsoleBroker
  readonly database: string
}
let site: Site

// Registered here: inside `before` it would run when that hook ends.
after(async () => {
  if (noBrowser) return
  site.server.close()
  await site.broker.stop()
})

before(async () => {
  if (noBrowser) return
  const server = http.createServer(({ url }, answer) => {
    const path = url!.replace(/\?.*/, '')
    const [body, type] = path in PAGES ? [PAGES[path]!, 'text/html'] : [SCRIPTS[path], 'text/javascript']
    if (path === '/favicon.ico') return void answer.writeHead(204).end()
    const policy = WITHOUT_POLICY.includes(path) ? {} : { 'content-security-policy': POLICY }
    answer.writeHead(body === undefined ? 404 : 200, { 'content-type': `${type}; charset=utf-8`, ...policy })
    const html = `<!doctype html><html lang="en"><title>Page</title><main>${body}</main></html>`
    answer.end(type === 'text/html' ? html : body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const database = await seededDatabase('cluster')
  const broker = await startConsoleBroker({ databaseUrl: database })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  site = { url, server, database, broker, browser: await launch() }
})

/** The fields of answers that these tests read. */
interface Answer {
  readonly nodes: readonly { readonly node: string; readonly stale: boolean }[]
  readonly items: readonly [
    { readonly id: string; readonly tier: string; readonly kev: boolean; readonly inUseState: string },
  ]
  readonly findings: readonly [{ readonly message: string }]
}

const problemsOf = async (path: string): Promise<readonly string[]> => {
  const opened = await openPage(site.browser, `${site.url}${path}`)
  await opened.page.waitForTimeout(200)
  const problems = [...opened.problems]
  await opened.page.context().close()
  return problems
}

test('a page without a fault passes', { skip: noBrowser }, async () => {
  const opened = await openPage(site.browser, site.url, { theme: 'dark', width: 320, zoom: 2 })
  assert.deepEqual(await axeViolations(opened.page), [])
  assert.equal(await overflowPx(opened.page), 0)
  assert.ok(existsSync(await screenshot(opened.page, 'harness')))
  await opened.close()
})

test('errors, violations of the policy, foreign requests and bad answers fail a test', {
  skip: noBrowser,
}, async () => {
  assert.deepEqual(await problemsOf('/error'), ['console error: it went wrong', 'uncaught: uncaught'])
  assert.ok((await problemsOf('/inline')).some((one) => one.startsWith('content security policy: script-src')))
  assert.ok((await problemsOf('/foreign')).includes('request to another origin: http://127.0.0.1:9/x.png'))
  assert.ok((await problemsOf('/missing')).includes(`answer 404: ${site.url}/missing.js`))
  const opened = await openPage(site.browser, `${site.url}/error`)
  await opened.page.waitForTimeout(200)
  await assert.rejects(opened.close(), /it went wrong/)
})

test('accessibility faults and pages wider than the window are found', { skip: noBrowser }, async () => {
  const image = await openPage(site.browser, `${site.url}/image`)
  assert.ok((await axeViolations(image.page)).some((one) => one.startsWith('image-alt')))
  await image.page.context().close()
  const wide = await openPage(site.browser, `${site.url}/wide`)
  assert.ok((await overflowPx(wide.page)) > 1_000)
  await wide.page.context().close()
})

test('the broker answers from the seed', { skip: noBrowser }, async () => {
  const get = async (path: string) => (await fetch(`${site.broker.url}${path}`)).json() as Promise<Answer>
  const { nodes } = await get('/node/status')
  assert.equal(nodes.length, 50)
  assert.deepEqual(
    nodes.filter(({ stale }) => stale).map(({ node }) => node),
    [...SILENT_NODES.keys()].sort(),
  )
  const { items } = await get('/vulnerabilities?limit=1')
  const [{ id, tier, kev, inUseState }] = items
  assert.deepEqual({ id, tier, kev, inUseState }, { id: LOG4SHELL.id, tier: 'P0', kev: true, inUseState: 'loaded' })
  const { findings } = await get('/compute/findings?namespace=shop')
  assert.match(findings[0].message, /waits for CPU/)
})

test('a broker with tokens refuses requests without one', { skip: noBrowser }, async () => {
  const broker = await startConsoleBroker({ databaseUrl: site.database, tokens: true })
  const { status } = await fetch(`${broker.url}/node/status`)
  const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }
  assert.deepEqual([status, (await fetch(`${broker.url}/node/status`, { headers })).status], [401, 200])
  await broker.stop()
})
