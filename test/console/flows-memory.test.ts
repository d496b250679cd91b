/**
 * Memory of the flows page, with a made-up broker: the heap stays flat while a million rows are scrolled, and over
 * hours of live flows. FLOWS_SCROLLED and FLOWS_FOLLOWED set the numbers of rows.
 */
/// <reference lib="dom" />

import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { before, test } from 'node:test'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { onlyFull } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { launch, noBrowser, openPage } from './support/browser.ts'
import { type Front, startFront } from './support/front.ts'

const SCROLLED = Number(process.env.FLOWS_SCROLLED ?? 40_000)
const FOLLOWED = Number(process.env.FLOWS_FOLLOWED ?? 100_000)
const GROUP = 1_000
const MAX_GROWN_BYTES = 25_000_000

let browser: Browser
before(async () => {
  if (!noBrowser) browser = await launch()
})

const side = (n: number) => ({
  ...{
    kind: 'pod',
    namespace: `team-${n % 40}`,
    name: `api-${n % 900}-7d9f8-x${n}`,
    workload: `Deployment/api-${n % 900}`,
  },
  ...{ ip: `10.64.${n % 250}.${n % 240}`, port: '8080' },
})
const flowOf = (n: number) => ({
  uuid: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  ...{ pod_name: `api-${n}`, pod_namespace: 'shop', pod_ip: '10.64.0.1', ip_protocol: 'TCP', traffic_type: 'EGRESS' },
  ...{ traffic_in_out_ip: '10.64.0.2', traffic_in_out_port: '8080', decision: n % 9 === 0 ? 'DROP' : 'ALLOW' },
  time_stamp: new Date(1_790_000_000_000 - n * 1_000).toISOString().slice(0, -1),
  ...{ from: side(n), to: side(n + 1) },
})

/** Pages of an endless list. The cursor is a number. */
function answerPage(url: URL, response: ServerResponse): true {
  const from = Number(url.searchParams.get('after') ?? 0)
  const limit = Number(url.searchParams.get('limit'))
  const items = Array.from({ length: limit }, (_, i) => flowOf(from + i))
  const facts = { observedSince: '2026-01-01T00:00:00', observedUntil: '2026-11-27T00:00:00', unstamped: 0 }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ items, nextAfter: String(from + limit), ...facts }))
  return true
}

async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage')
  return (await session.send('Runtime.getHeapUsage')).usedSize
}

/** Scrolls to the end of the loaded rows. */
const toEnd = (page: Page) =>
  page.evaluate(() => {
    const rows = document.querySelector('.in-sight')!
    rows.scrollTop = rows.scrollHeight
  })

const lastRow = (page: Page) =>
  page.evaluate(() =>
    Math.max(...[...document.querySelectorAll('tr[aria-rowindex]')].map((row) => Number(row.ariaRowIndex))),
  )

test(`${SCROLLED} flows are scrolled, and back: the heap and the document stay flat`, {
  skip: noBrowser || onlyFull,
}, async (t) => {
  const front = await startFront(null, (url, _, response) => url.pathname === '/flows' && answerPage(url, response))
  const opened = await openPage(browser, `${front.url}flows`)
  const { page } = opened
  await page.waitForSelector('.in-sight tbody a')
  const session = await page.context().newCDPSession(page)
  const heaps: number[] = []
  const elements: number[] = []
  for (let reached = 0, step = 1; reached < SCROLLED; ) {
    await toEnd(page)
    reached = await lastRow(page)
    if (reached < (SCROLLED * step) / 10) continue
    heaps.push(await heapOf(session))
    elements.push(await page.evaluate(() => document.querySelectorAll('*').length))
    step++
  }
  const [, early] = heaps
  assert.ok(heaps.at(-1)! - early! < MAX_GROWN_BYTES, `the heap: ${heaps}`)
  assert.ok(Math.max(...elements) < 3_000, `the elements: ${elements}`)
  t.diagnostic(`heap in MB at each tenth: ${heaps.map((one) => (one / 1e6).toFixed(1))}`)

  // The rendered rows match their index in the list, also after pages were dropped and read again.
  const isRight = async () => {
    const rows = await page.evaluate(() =>
      [...document.querySelectorAll('tr[aria-rowindex]')].map((row) => ({
        index: Number(row.ariaRowIndex) - 2,
        link: row.querySelector('a')!.id,
      })),
    )
    for (const { index, link } of rows) assert.equal(link, `flow-${flowOf(index).uuid}-${flowOf(index).time_stamp}`)
    return rows[0]!.index
  }
  const low = await isRight()
  await until('earlier pages are read again', async () => {
    await page.evaluate(() => document.querySelector('.in-sight')!.scrollBy(0, -20_000))
    return (await isRight()) < low - 4_000
  })
  await page.getByRole('button', { name: 'To the first row' }).click()
  await until('the first row', async () => (await isRight()) === 0, 10_000)
  await opened.close()
})

test(`${FOLLOWED} flows come live: the heap stays flat, the page answers`, {
  skip: noBrowser || onlyFull,
}, async (t) => {
  let stream: ServerResponse | undefined
  const front: Front = await startFront(null, (url, _, response) => {
    if (url.searchParams.get('follow') !== 'true') return answerPage(url, response)
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.write('{"heartbeat":true,"resume":"start"}\n')
    stream = response
    return true
  })
  const opened = await openPage(browser, `${front.url}flows?live=true`)
  const { page } = opened
  await page.waitForSelector('.live-mark.live')
  const session = await page.context().newCDPSession(page)
  const heaps: number[] = []
  for (let sent = 0, step = 1; sent < FOLLOWED; sent += GROUP) {
    const lines = Array.from({ length: GROUP }, (_, i) => ({ ...flowOf(1_000_000_000 - sent - i), update: false }))
    const text = [...lines, { resume: String(sent) }].map((line) => `${JSON.stringify(line)}\n`).join('')
    if (!stream!.write(text)) await new Promise((resolve) => stream!.once('drain', resolve))
    if (sent < (FOLLOWED * step) / 10) continue
    const newest = lines.at(-1)!.uuid
    await page.waitForSelector(`#flow-${newest}`)
    heaps.push(await heapOf(session))
    step++
  }
  t.diagnostic(`heap in MB at each tenth: ${heaps.map((one) => (one / 1e6).toFixed(1))}`)
  // The first 20 000 rows fill the memory of the follow.
  const full = heaps[Math.ceil((25_000 / FOLLOWED) * 10)]!
  assert.ok(heaps.at(-1)! - full < MAX_GROWN_BYTES, `the heap: ${heaps}`)
  await page.getByText('were removed from the page').waitFor()
  await opened.close()
})
