/// <reference lib="dom" />
/** The flows page compared with the answers of the API, by keyboard, live, and when requests fail. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { becomes, until } from '../support/until.ts'
import { type ConsoleBroker, startConsoleBroker } from './support/broker.ts'
import {
  axeViolations,
  launch,
  looksRight,
  noBrowser,
  openPage,
  overflowPx,
  screenshot,
  settled,
} from './support/browser.ts'
import { type Front, startFront } from './support/front.ts'
import { seededDatabase } from './support/seeded.ts'

const MAX_PAGE_BYTES = 300_000
const MAX_REQUESTS = 6
const skip = noBrowser

let browser: Browser
let seeded: { broker: ConsoleBroker; front: Front }
let small: { database: TestDatabase; broker: ConsoleBroker; front: Front }

// Registered here: inside `before` it would run when that hook ends.
after(async () => {
  await seeded?.broker.stop()
  await small?.broker.stop()
})

before(async () => {
  if (skip) return
  browser = await launch()
  const cluster = await startConsoleBroker({ databaseUrl: await seededDatabase('cluster') })
  seeded = { broker: cluster, front: await startFront(cluster.url) }
  const database = await createTestDatabase()
  const broker = await startConsoleBroker({ databaseUrl: database.url })
  small = { database, broker, front: await startFront(broker.url) }
})

interface ApiFlow {
  readonly uuid: string
  readonly time_stamp: string
  readonly decision: string
  readonly pod_name: string
}
interface ApiPage {
  readonly items: readonly ApiFlow[]
  readonly nextAfter: string | null
}

const ask = async (broker: ConsoleBroker, query: string): Promise<ApiPage> =>
  (await (await fetch(`${broker.url}/flows?${query}`)).json()) as ApiPage

/** The uuids of the rendered rows, from the top. */
const shown = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll('td a[id^=flow-]')].map(({ id }) => /^flow-(.*)-\d{4}-\d\d-\d\dT/.exec(id)![1]!),
  )

const linkOf = (uuid: string) => `a[id^="flow-${uuid}-"]`

let posted = 0
/** Stores flows, and returns their uuids. */
async function post(number: number, fields: object = {}): Promise<string[]> {
  const flows = Array.from({ length: number }, () => ({
    uuid: `flow-${++posted}`,
    ...{ pod_name: 'web-1', pod_namespace: 'shop', pod_ip: '10.0.0.1', pod_port: String(40_000 + posted) },
    ...{ ip_protocol: 'TCP', traffic_type: 'EGRESS', traffic_in_out_ip: '10.0.0.2', traffic_in_out_port: '5432' },
    ...{ decision: 'ALLOW', time_stamp: new Date().toISOString().slice(0, -1) },
    ...fields,
  }))
  const answer = await fetch(`${small.broker.url}/pod/traffic/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(flows),
  })
  assert.equal(answer.status, 200, await answer.text())
  return flows.map(({ uuid }) => uuid)
}

test('the list has the flows of the API, in few requests and bytes', { skip }, async () => {
  const opened = await openPage(browser, 'about:blank')
  const { page } = opened
  const requests: string[] = []
  let bytes = 0
  page.on('response', async (response) => {
    if (response.url().includes('/console/')) return
    requests.push(response.url())
    bytes += (await response.body().catch(() => Buffer.alloc(0))).length
  })
  await page.goto(`${seeded.front.url}flows?verdict=DROP&since=30d`)
  await page.waitForSelector('td a[id^=flow-]')
  await settled(page)
  const { items } = await ask(seeded.broker, 'verdict=DROP&since=30d&limit=200')
  const uuids = await shown(page)
  assert.ok(uuids.length > 0)
  assert.deepEqual(
    uuids,
    items.slice(0, uuids.length).map(({ uuid }) => uuid),
  )
  assert.equal(await page.locator('td .badge', { hasText: 'dropped' }).count(), uuids.length)
  assert.ok(requests.length <= MAX_REQUESTS, `${requests}`)

  await page.goto(`${seeded.front.url}flows`)
  await page.waitForSelector('.in-sight td a')
  await settled(page)
  assert.ok(bytes < MAX_PAGE_BYTES, `${bytes} bytes`)
  await opened.page.context().close()
})

test('oldest first, and older pages are read as the end comes near', { skip }, async () => {
  const opened = await openPage(browser, `${seeded.front.url}flows`)
  const { page } = opened
  await page.waitForSelector('.in-sight td a')
  await page.getByLabel('Order').selectOption('oldest first')
  await page.waitForURL(/order=oldest/)
  const { items } = await ask(seeded.broker, 'order=oldest&limit=400')
  await becomes(async () => (await shown(page))[0], items[0]!.uuid, 10_000)
  await page.evaluate(() => document.querySelector('.in-sight')!.scrollTo(0, 1e6))
  await becomes(
    async () => (await page.getByText('rows, more are there').textContent())?.trim(),
    '400 rows, more are there',
  )
  await page.evaluate(() => document.querySelector('.in-sight')!.scrollTo(0, 1e6))
  await until('the last rows', async () => (await shown(page)).includes(items[395]!.uuid), 10_000)
  await opened.close()
})

test('filters by keyboard: complete, leave out, change, remove; all in the address', { skip }, async () => {
  const opened = await openPage(browser, `${seeded.front.url}flows`)
  const { page } = opened
  const query = () => new URL(page.url()).searchParams
  const field = page.getByRole('combobox', { name: 'Filter' })
  await field.focus()
  await page.keyboard.type('from_n')
  await page.keyboard.press('ArrowDown')
  await until('the active option is named', () => field.getAttribute('aria-activedescendant'))
  await page.keyboard.press('Enter')
  assert.equal(await field.inputValue(), 'from_namespace:')
  await page.keyboard.type('sho')
  await page.getByRole('option', { name: 'shop', exact: true }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await becomes(() => query().getAll('from_namespace'), ['shop'], 5_000)

  await page.keyboard.type('to_namespace:!shop')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Enter')
  await becomes(() => query().getAll('to_namespace'), ['!shop'], 5_000)
  await page.keyboard.type('443')
  await page.keyboard.press('Enter')
  await becomes(() => query().getAll('port'), ['443'], 5_000)
  await page.keyboard.type('verdict:perhaps')
  await page.keyboard.press('Enter')
  await page.getByText('verdict is one of ALLOW, DROP.').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')

  await page.getByRole('button', { name: 'Change the filter port 443' }).click()
  assert.equal(await page.locator('.filter-bar input').inputValue(), 'port:443')
  await page.keyboard.type('0')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Enter')
  await becomes(() => query().getAll('port'), ['4430'], 5_000)
  await page.getByRole('button', { name: 'Remove the filter port 4430' }).click()
  await becomes(() => query().getAll('port'), [], 5_000)

  const { items } = await ask(seeded.broker, 'from_namespace=shop&to_namespace=!shop&limit=200')
  await becomes(async () => (await shown(page))[0], items[0]!.uuid, 10_000)
  await page.getByRole('button', { name: 'Remove all' }).click()
  await becomes(() => [...query()], [], 5_000)
  // Several filters at once, pasted from a message.
  await page.keyboard.type('namespace:shop verdict:drop')
  await page.keyboard.press('Enter')
  await becomes(() => `${query()}`, 'namespace=shop&verdict=DROP', 5_000)
  await opened.close()
})

test('the detail of a row by keyboard, and by its address', { skip }, async () => {
  const opened = await openPage(browser, `${seeded.front.url}flows?verdict=DROP`)
  const { page } = opened
  const { items } = await ask(seeded.broker, 'verdict=DROP&limit=3')
  const second = items[1]!
  await page.locator(linkOf(items[0]!.uuid)).focus()
  await page.keyboard.press('ArrowDown')
  const focused = () => page.evaluate(() => document.activeElement?.id)
  const link = `flow-${second.uuid}-${second.time_stamp}`
  await becomes(focused, link, 5_000)
  await page.keyboard.press('Enter')
  const detail = page.getByRole('complementary', { name: 'The selected flow' })
  await detail.getByText(second.pod_name).first().waitFor()
  await detail.getByText('A living pod reports a flow once').waitFor()
  await detail.getByText('no answer to the SYN').waitFor()
  await detail.getByText(second.uuid).waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'One flow')
  assert.equal(new URL(page.url()).searchParams.get('flow'), second.uuid)
  assert.deepEqual(await axeViolations(page), [])
  await screenshot(page, 'flows-detail')
  const address = page.url()
  await page.keyboard.press('Escape')
  await detail.waitFor({ state: 'detached' })
  assert.equal(await focused(), link)
  // The address alone shows the same flow, though the list is another one.
  await page.goto(address.replace('verdict=DROP', 'verdict=ALLOW'))
  await detail.getByText(second.uuid).waitFor()
  await opened.close()
})

test('live flows and the options of a filter are accessible and no wider than the window', { skip }, async () => {
  const opened = await openPage(browser, `${seeded.front.url}flows?since=30d&namespace=!kube-system&live=true`)
  const { page } = opened
  await page.waitForSelector('.in-sight td a')
  await page.waitForSelector('.live-mark.live')
  await looksRight(page, 'flows')
  await page.locator('.filter-bar input').click()
  await page.keyboard.type('fr')
  await page.locator('.option').first().waitFor()
  await page.keyboard.press('ArrowDown')
  await looksRight(page, 'flows-options')
  await opened.close()
})

test('an empty list says why', { skip }, async () => {
  await small.database.adminSql`truncate traffic`
  const opened = await openPage(browser, `${small.front.url}flows`)
  const { page } = opened
  await page.getByText('No flow was ever stored').waitFor()
  await post(1)
  await page.goto(`${small.front.url}flows?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z`)
  await page.getByText('No flow was first seen in this window').waitFor()
  assert.equal(await page.getByLabel('Live').isDisabled(), true)
  await page.goto(`${small.front.url}flows?namespace=elsewhere&verdict=DROP`)
  await page.getByText('No flow matches').waitFor()
  assert.deepEqual(await axeViolations(page), [])
  await page.getByRole('link', { name: 'Remove all filters' }).click()
  await page.waitForSelector('td a[id^=flow-]')
  await page.goto(`${small.front.url}flows?since=7d`)
  await page.getByText('The window begins earlier, and nothing is known here of that time.').waitFor()
  await page.goto(`${small.front.url}flows?label=app%3Dweb`)
  await page.getByText('1 flow is left out').waitFor()
  await opened.close()
})

test('live: new flows on top, a pause, a hidden tab', { skip }, async () => {
  await small.database.adminSql`truncate traffic`
  const [old] = await post(1)
  const opened = await openPage(browser, `${small.front.url}flows`)
  const { page } = opened
  await page.getByLabel('Live').check()
  await page.waitForSelector('.live-mark.live')
  await page.getByText(/Live, as of \d\d:\d\d:\d\d/).waitFor()
  const [first, second] = await post(2)
  await becomes(() => shown(page), [second, first, old], 10_000)
  await page.getByRole('button', { name: 'Pause' }).click()
  const [third] = await post(1)
  await page.getByRole('button', { name: '1 new' }).waitFor()
  assert.deepEqual(await shown(page), [second, first, old])
  await page.getByRole('button', { name: '1 new' }).click()
  await becomes(() => shown(page), [third, second, first, old], 10_000)

  // A peer that becomes known updates its row.
  await small.database.adminSql`
    update traffic set peer_kind = 'pod', peer_namespace = 'shop', peer_name = 'db-0', tx = pg_current_xact_id()
    where uuid = ${third!}`
  await page.getByText('db-0').waitFor()
  assert.equal((await shown(page)).length, 4)

  await hide(page, true)
  await page.getByText('Waits until this tab is seen').waitFor()
  const [fourth] = await post(1)
  await hide(page, false)
  await becomes(async () => (await shown(page)).slice(0, 2), [fourth, third], 10_000)
  await page.getByLabel('Live').uncheck()
  await page.waitForSelector('.live-bar', { state: 'detached' })
  await becomes(() => shown(page), [fourth, third, second, first, old], 10_000)
  await opened.close()
})

const hide = (page: Page, hidden: boolean) =>
  page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, hidden)

test('live: too old, no room, and a broker that is gone', { skip }, async () => {
  await small.database.adminSql`truncate traffic`
  await post(1)
  let refusal: { status: number; text: string } | null = null
  const front = await startFront(small.broker.url, (url, _, response) => {
    if (refusal === null || url.searchParams.get('follow') !== 'true') return false
    response.writeHead(refusal.status, { 'retry-after': '1' }).end(refusal.text)
    return true
  })
  const opened = await openPage(browser, `${front.url}flows?live=true`, { allowed: [/410|503|Failed to load/] })
  const { page } = opened
  await page.waitForSelector('.live-mark.live')

  refusal = { status: 410, text: 'resume: the token is of another database or time line' }
  await hide(page, true)
  await hide(page, false)
  await page.getByText('Too old to go on from').waitFor()
  await page.getByText('another database or time line').waitFor()
  refusal = null
  await page.getByRole('button', { name: 'Start again from now' }).click()
  await page.waitForSelector('.live-mark.live')
  const [afterwards] = await post(1)
  await until('a new flow', async () => (await shown(page))[0] === afterwards)

  refusal = { status: 503, text: '200 clients follow flows here: ask another replica, or retry later' }
  await hide(page, true)
  await hide(page, false)
  await page.getByText('the broker has no room for another follower').waitFor()
  const [polled] = await post(1)
  await until('the list is polled', async () => (await shown(page))[0] === polled)
  assert.deepEqual(await axeViolations(page), [])
  await opened.close()
})

test('live: after a broker was killed and restarted, no flow is missing or duplicated', { skip }, async () => {
  await small.database.adminSql`truncate traffic`
  const port = Number(new URL(small.broker.url).port)
  const opened = await openPage(browser, `${small.front.url}flows?live=true`, { allowed: [/./] })
  const { page } = opened
  await page.waitForSelector('.live-mark.live')
  const before = await post(3)
  await becomes(async () => (await shown(page)).length, 3, 10_000)
  small.broker.kill()
  await page.getByText('the connection to the broker is lost').waitFor()
  small.broker = await startConsoleBroker({ databaseUrl: small.database.url, port })
  const behind = await post(3)
  await page.waitForSelector('.live-mark.live')
  await becomes(async () => (await shown(page)).sort(), [...before, ...behind].sort(), 60_000)
  await opened.close()
})

test('CSV of all flows equals the CSV of the API', { skip }, async () => {
  const opened = await openPage(browser, `${seeded.front.url}flows?verdict=DROP`)
  const { page } = opened
  // The file picker is a window of the system and cannot be driven.
  await page.evaluate(() => Reflect.deleteProperty(window, 'showSaveFilePicker'))
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV of all' }).click(),
  ])
  const headers = { accept: 'text/csv' }
  const expected = await (await fetch(`${seeded.broker.url}/flows?verdict=DROP`, { headers })).text()
  assert.equal(readFileSync(await download.path(), 'utf8'), expected)
  await page.getByText('Saved,').waitFor()
  const button = (name: string) => page.getByRole('button', { name }).getAttribute('title')
  assert.equal(await button('Copy as ctb'), 'ctb flows --verdict DROP')
  await opened.close()
})

test('CSV is written to a file as it arrives, if the browser can do that', { skip }, async () => {
  const opened = await openPage(browser, `${seeded.front.url}flows?verdict=DROP`)
  const { page } = opened
  await page.waitForSelector('td a[id^=flow-]')
  await page.evaluate(() => {
    const written = { text: '', isClosed: false }
    const decoder = new TextDecoder()
    const file = {
      write: async (bytes: Uint8Array) => {
        written.text += decoder.decode(bytes, { stream: true })
      },
      close: async () => {
        written.isClosed = true
      },
      abort: async () => {},
    }
    Object.assign(window, { written, showSaveFilePicker: async () => ({ createWritable: async () => file }) })
  })
  await page.getByRole('button', { name: 'CSV of all' }).click()
  await page.getByText('Saved,').waitFor()
  const headers = { accept: 'text/csv' }
  const expected = await (await fetch(`${seeded.broker.url}/flows?verdict=DROP`, { headers })).text()
  assert.deepEqual(await page.evaluate(() => Reflect.get(window, 'written')), { text: expected, isClosed: true })
  await opened.close()
})

test('CSV beyond the memory limit is cut after a row, and the page says so', { skip }, async () => {
  const line = Buffer.from(`${'x'.repeat(98)}\r\n`)
  const front = await startFront(small.broker.url, (_, request, response) => {
    if (request.headers.accept !== 'text/csv') return false
    response.writeHead(200, { 'content-type': 'text/csv' })
    const piece = Buffer.concat(Array.from({ length: 9_999 }, () => line))
    let sent = 0
    const send = () => {
      while (sent++ < 100) if (!response.write(piece)) return void response.once('drain', send)
      response.end()
    }
    send()
    return true
  })
  await post(1)
  const opened = await openPage(browser, `${front.url}flows`)
  const { page } = opened
  await page.waitForSelector('td a[id^=flow-]')
  await page.evaluate(() => Reflect.deleteProperty(window, 'showSaveFilePicker'))
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV of all' }).click(),
  ])
  await page.getByText('the rest of the list is missing').waitFor()
  const saved = readFileSync(await download.path())
  assert.ok(saved.length > 60 * 1_024 ** 2 && saved.length <= 64 * 1_024 ** 2, `${saved.length} bytes`)
  assert.equal(saved.length % line.length, 0)
  await opened.close()
})

test('names with markup, and very long names, are shown as text', { skip }, async () => {
  await small.database.adminSql`truncate traffic`
  const markup = '<img src=x onerror=alert(1)>'
  const endless = `\u202e${'w'.repeat(250)}`
  const [uuid] = await post(1, { pod_namespace: markup, pod_name: endless, decision: markup, ip_protocol: markup })
  for (const width of [1_280, 320]) {
    const opened = await openPage(browser, `${small.front.url}flows?pod=!x/${'y'.repeat(200)}`, { width })
    const { page } = opened
    await page.locator(linkOf(uuid!)).click()
    const detail = page.getByRole('complementary', { name: 'The selected flow' })
    await detail.getByText(`The agent calls it ${markup}.`).waitFor()
    assert.equal(await page.locator('img').count(), 0)
    assert.ok((await overflowPx(page)) <= 0)
    assert.deepEqual(await axeViolations(page), [])
    await opened.close()
  }
})
