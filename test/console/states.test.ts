/** The console when things fail: no token, no broker, no capacity, no data, and a newer release. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page, Route } from 'playwright-core'
import { SHOP } from '../support/policy-cluster.ts'
import { type ConsoleBroker, startConsoleBroker, TOKENS } from './support/broker.ts'
import { evaluate, launch, looksRight, noBrowser, type OpenPage, openPage } from './support/browser.ts'
import { startConsoleEdge } from './support/edge.ts'
import { emptyDatabase } from './support/empty.ts'
import { REFUSED } from './support/visit.ts'

const skip = noBrowser
const READ = TOKENS.BROKER_TOKEN_READ
const BUSY = [/^answer 503: /, /^console error: Failed to load resource.* 503/]
const LOST = [...REFUSED, /^request failed: /]
/** Polls run twenty times as often. */
const POLL_FASTER = `{
  const plain = window.setInterval
  window.setInterval = (run, ms, ...rest) => plain(run, ms >= 10_000 ? ms / 20 : ms, ...rest)
}`
const FOLLOW = /\/flows\?.*follow=true/
const POLICY = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: web, namespace: shop }
spec: { podSelector: { matchLabels: { app: web } }, policyTypes: [Ingress, Egress] }
`
const NODES = /\/node\/status$/

let browser: Browser
let databaseUrl: string
/** One broker asks for tokens, the other for none. */
let guarded: ConsoleBroker
let open: ConsoleBroker

// Registered here: inside `before` it would run when that hook ends.
after(async () => {
  await guarded?.stop()
  await open?.stop()
})

before(async () => {
  if (skip) return
  databaseUrl = await emptyDatabase()
  guarded = await startConsoleBroker({ databaseUrl, tokens: true })
  open = await startConsoleBroker({ databaseUrl })
  browser = await launch()
  for (const pod of Object.values(SHOP)) await post('/pod/spec', pod)
})

async function post(path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}`, 'content-type': 'application/json' }
  const answer = await fetch(`${guarded.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  assert.equal(answer.status, 200, await answer.text())
}

let flows = 0
/** Stores a flow, and returns its uuid. */
async function postFlow(): Promise<string> {
  const uuid = `flow-${++flows}`
  await post('/pod/traffic/batch', [
    {
      ...{ uuid, pod_name: 'web-1', pod_namespace: 'shop', pod_ip: '10.1.0.1', pod_port: `${40_000 + flows}` },
      ...{ ip_protocol: 'TCP', traffic_type: 'EGRESS', traffic_in_out_ip: '10.1.0.2', traffic_in_out_port: '8080' },
      ...{ decision: 'ALLOW', time_stamp: new Date().toISOString().slice(0, -1) },
    },
  ])
  return uuid
}

/** Opens a page with faster polling. `arrange` runs before its first request. */
async function visit(
  url: string,
  { arrange, allowed = REFUSED }: { arrange?: (page: Page) => Promise<unknown>; allowed?: readonly RegExp[] } = {},
): Promise<OpenPage> {
  const opened = await openPage(browser, 'about:blank', { allowed, origins: [new URL(url).origin] })
  await opened.page.addInitScript({ content: POLL_FASTER })
  await arrange?.(opened.page)
  await opened.page.goto(url)
  return opened
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()
const nodeRow = (page: Page) => page.getByRole('link', { name: 'node-1', exact: true })

/** Types a token and submits it by keyboard. */
async function typeToken(page: Page, token: string, { keep = false } = {}): Promise<void> {
  await page.locator('input[type=password]:focus').waitFor()
  await page.keyboard.type(token)
  if (keep) {
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await page.keyboard.press('Tab')
  }
  await page.keyboard.press('Enter')
}

interface Stored {
  readonly cookie: string
  readonly local: string
  readonly tab: string
}

async function storedBy(page: Page): Promise<Stored> {
  assert.deepEqual(await page.context().cookies(), [])
  const text = `JSON.stringify({ cookie: document.cookie,
    local: JSON.stringify(localStorage), tab: JSON.stringify(sessionStorage) })`
  return JSON.parse(await evaluate<string>(page, text)) as Stored
}

/** A resume token for the same flows in a database with another name. */
async function foreignPlace(url: string): Promise<string> {
  const stream = new AbortController()
  const answer = await fetch(url, { signal: stream.signal })
  let text = ''
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += piece
    const resume = /"resume":"([^"]+)"/.exec(text)?.[1]
    if (resume === undefined) continue
    const keys = JSON.parse(Buffer.from(resume, 'base64url').toString()) as unknown[]
    return Buffer.from(JSON.stringify(keys.with(1, `${keys[1]}0`))).toString('base64url')
  }
  throw new Error(`no place in ${text}`)
}

// These tests mostly wait, so several run at once.
describe('the console when things go wrong', { skip, concurrency: 4 }, () => {
  it('a token is asked for, by keyboard alone, and forgotten unless it is kept', async () => {
    const opened = await visit(`${guarded.url}/console/nodes?since=1h`)
    const { page } = opened
    await heading(page, 'Read token')
    await looksRight(page, 'state-token')
    await typeToken(page, 'not the token')
    await heading(page, 'This token is not valid')
    await page.getByRole('alert').getByText('mistyped, or was replaced').waitFor()
    await looksRight(page, 'state-token-invalid')
    await typeToken(page, READ)
    await heading(page, 'Nodes')
    await nodeRow(page).waitFor()
    assert.equal(page.url(), `${guarded.url}/console/nodes?since=1h`)
    const forgotten = await storedBy(page)
    assert.ok(!JSON.stringify(forgotten).includes(READ))
    assert.equal(forgotten.cookie, '')

    await page.reload()
    await heading(page, 'Read token')
    await typeToken(page, READ, { keep: true })
    await nodeRow(page).waitFor()
    const kept = await storedBy(page)
    assert.ok(!(kept.cookie + kept.local).includes(READ))
    assert.ok(kept.tab.includes(READ))
    await page.reload()
    await nodeRow(page).waitFor()
    await opened.close()
  })

  it('a token that may not read: the page says so, and takes another one', async () => {
    const opened = await visit(`${guarded.url}/console/nodes`)
    const { page } = opened
    await heading(page, 'Read token')
    // All tokens of this broker may read, so the refusal is made up.
    const refusal = "token lacks the 'read' scope"
    await page.route(NODES, (route) => route.fulfill({ status: 403, contentType: 'text/plain', body: refusal }))
    await typeToken(page, TOKENS.BROKER_TOKEN_INGEST, { keep: true })
    await page.getByText('The token may not read this').waitFor()
    await page.getByText(refusal).waitFor()
    await looksRight(page, 'state-token-refused')
    await page.getByRole('button', { name: 'Use another token' }).dispatchEvent('click')
    await heading(page, 'Read token')
    await page.unroute(NODES)
    assert.ok(!(await storedBy(page)).tab.includes(TOKENS.BROKER_TOKEN_INGEST))
    await typeToken(page, READ)
    await nodeRow(page).waitFor()
    await opened.close()
  })

  it('a broker that stops and comes again, then with another token', async () => {
    let broker = await startConsoleBroker({ databaseUrl, tokens: true })
    const again = { databaseUrl, tokens: true, port: Number(new URL(broker.url).port) }
    const opened = await visit(`${broker.url}/console/nodes`, { allowed: LOST })
    const { page } = opened
    await heading(page, 'Read token')
    await typeToken(page, READ)
    await nodeRow(page).waitFor()

    broker.kill()
    const stale = page.locator('.stale')
    await stale.getByText('the broker cannot be reached').waitFor()
    assert.match((await stale.textContent())!, /^As of .+, .+ old: the broker cannot be reached/)
    assert.ok(await nodeRow(page).isVisible())
    await looksRight(page, 'state-broker-gone')
    broker = await startConsoleBroker(again)
    await stale.waitFor({ state: 'detached' })
    assert.ok(await nodeRow(page).isVisible())

    broker.kill()
    await stale.waitFor()
    const other = 'another-token-of-the-console-tests'
    broker = await startConsoleBroker({ ...again, env: { BROKER_TOKEN_READ: other } })
    await heading(page, 'This token is not valid')
    await typeToken(page, other)
    await nodeRow(page).waitFor()
    await broker.stop()
    await opened.close()
  })

  it('data of a broker that is away is asked for again by hand', async () => {
    const opened = await openPage(browser, `${open.url}/console/nodes`, { allowed: LOST })
    const { page } = opened
    await nodeRow(page).waitFor()
    await page.route(NODES, (route) => route.abort('connectionrefused'))
    await page.waitForTimeout(5_500)
    await evaluate(page, `document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)
    await page.locator('.stale').waitFor()
    await page.unroute(NODES)
    await page.getByRole('button', { name: 'Ask again' }).click()
    await page.locator('.stale').waitFor({ state: 'detached' })
    await opened.close()
  })

  it('a page that is opened while the broker is away', async () => {
    const opened = await openPage(browser, 'about:blank', { allowed: LOST, origins: [open.url] })
    const { page } = opened
    await page.route(NODES, (route) => route.abort('connectionrefused'))
    await page.goto(`${open.url}/console/nodes`)
    await page.getByText('The broker cannot be reached').waitFor()
    await page.getByText('This page asks again by itself').waitFor()
    await looksRight(page, 'state-broker-away')
    await page.unroute(NODES)
    await page.getByRole('button', { name: 'Try again' }).click()
    await nodeRow(page).waitFor()
    await opened.close()
  })

  it('without data a page reads again automatically, even if it does not poll', async () => {
    let isAway = true
    const opened = await visit(`${open.url}/console/workload/shop/Deployment/web?tab=changes`, {
      allowed: LOST,
      arrange: (page) =>
        page.route(/\/diff\?/, (route) => (isAway ? route.abort('connectionrefused') : route.continue())),
    })
    const { page } = opened
    await page.getByText('The broker cannot be reached').waitFor()
    isAway = false
    await page.locator('.failure').waitFor({ state: 'detached' })
    await page.locator('.loading').waitFor({ state: 'detached' })
    assert.equal(await page.locator('.failure').count(), 0)
    await opened.close()
  })

  it('a busy broker: a short wait is not shown, a long one is', async () => {
    const busy = (seconds: number) => (route: Route) =>
      route.fulfill({
        ...{ status: 503, headers: { 'retry-after': `${seconds}`, 'content-type': 'text/plain' } },
        body: `too many reads; retry in ${seconds} seconds`,
      })
    const opened = await visit(`${open.url}/console/nodes`, {
      arrange: (page) => page.route(NODES, busy(1), { times: 1 }),
    })
    const { page } = opened
    await nodeRow(page).waitFor()

    await page.route(NODES, busy(30), { times: 1 })
    await page.reload()
    await page.getByText('The broker is busy').waitFor()
    await page.getByText('too many reads; retry in 30 seconds').waitFor()
    await nodeRow(page).waitFor()
    await opened.close()
  })

  it('an unknown workload, and an unknown page', async () => {
    const opened = await visit(`${open.url}/console/workload/shop/Deployment/never`)
    const { page } = opened
    await page.getByText('Not found').waitFor()
    await looksRight(page, 'state-not-found')
    await page.goto(`${open.url}/console/never/was`)
    await heading(page, 'There is no such page')
    await looksRight(page, 'state-no-such-page')
    await page.getByRole('link', { name: 'Go to the start' }).click()
    await page.waitForURL(`${open.url}/console/`)
    await opened.close()
  })

  it('a follow whose resume token is from another database starts again', async () => {
    const opened = await visit(`${open.url}/console/flows?live=true`, {
      arrange: (page) =>
        page.route(
          FOLLOW,
          async (route) => {
            const url = route.request().url()
            await route.continue({ url: `${url}&resume=${await foreignPlace(url)}` })
          },
          { times: 1 },
        ),
    })
    const { page } = opened
    await page.getByText('Too old to go on from').waitFor()
    await page.getByText('the token is of another database').waitFor()
    await looksRight(page, 'state-follow-too-old')
    await page.getByRole('button', { name: 'Start again from now' }).click()
    await page.waitForSelector('.live-mark.live')
    const uuid = await postFlow()
    await page.locator(`a[id^="flow-${uuid}-"]`).waitFor()
    await opened.close()
  })

  it('code of another release: the failure offers to load the console again', async () => {
    const opened = await visit(`${open.url}/console/nodes`, { allowed: LOST })
    const { page } = opened
    await nodeRow(page).waitFor()
    const assets = /\/console\/assets\//
    await page.route(assets, (route) => route.fulfill({ status: 404 }))
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Images' }).click()
    await page.getByText('This page could not be loaded').waitFor()
    await heading(page, 'Images')
    await looksRight(page, 'state-code-not-loaded')
    await page.unroute(assets)
    await page.getByRole('button', { name: 'Load the console anew' }).click()
    await page.getByText('This page could not be loaded').waitFor({ state: 'detached' })
    await heading(page, 'Images')
    await opened.close()
  })

  it('behind the edge proxy no token is asked for, and everything works', async () => {
    const edge = await startConsoleEdge(guarded.url, READ)
    const opened = await visit(`${edge}/`, { allowed: BUSY })
    const { page } = opened
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await page.locator('h1').first().waitFor()
    assert.equal(await page.getByLabel('Token').count(), 0)
    const links: string[] = await evaluate(
      page,
      `[...document.querySelectorAll('a[href^="/"]')].map((a) => a.pathname)`,
    )
    assert.ok(links.length > 5)
    assert.deepEqual(
      links.filter((link) => !link.startsWith('/console/')),
      [],
    )
    await page.getByRole('link', { name: 'Nodes', exact: true }).first().click()
    await nodeRow(page).waitFor()
    assert.equal(page.url(), `${edge}/console/nodes`)

    await page.goto(`${edge}/console/policy`)
    await page.getByRole('textbox', { name: 'Policies as YAML' }).fill(POLICY)
    await page.getByRole('button', { name: 'Try it' }).click()
    await page.locator('.trial').waitFor()
    // An action by button is not repeated automatically, and the page does not say that it would be.
    await page.route(/\/networkpolicy\/try/, (route) => route.fulfill({ status: 503, body: 'too many trials' }))
    await page.getByRole('button', { name: 'Try it' }).click()
    await page.getByText('The broker is busy').waitFor()
    assert.equal(await page.getByText('asks again by itself').count(), 0)

    await page.goto(`${edge}/console/flows?live=true`)
    await page.waitForSelector('.live-mark.live')
    const uuid = await postFlow()
    await page.locator(`a[id^="flow-${uuid}-"]`).waitFor()
    await opened.close()
  })

  it('a proxy with a wrong token, and one whose broker is gone', async () => {
    const wrong = await visit(`${await startConsoleEdge(guarded.url, 'not-the-token-of-the-broker')}/console/nodes`)
    await heading(wrong.page, 'The proxy has no valid token')
    assert.equal(await wrong.page.getByLabel('Token').count(), 0)
    await looksRight(wrong.page, 'state-edge-token')
    await wrong.close()

    const gone = await startConsoleBroker({ databaseUrl, tokens: true })
    const edge = await startConsoleEdge(gone.url, READ)
    await gone.stop()
    const lost = await visit(`${edge}/console/nodes`)
    await lost.page.getByText('The broker cannot be reached').waitFor()
    await looksRight(lost.page, 'state-edge-broker-gone')
    const again = await startConsoleBroker({ databaseUrl, tokens: true, port: Number(new URL(gone.url).port) })
    await nodeRow(lost.page).waitFor()
    await again.stop()
    await lost.close()
  })
})
