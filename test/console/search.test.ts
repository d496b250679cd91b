/** The search box and the page of all results, compared with the API. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { becomes } from '../support/until.ts'
import { type ConsoleBroker, startConsoleBroker } from './support/broker.ts'
import { axeViolations, launch, looksRight, noBrowser, openPage, screenshot } from './support/browser.ts'
import { type Front, startFront } from './support/front.ts'
import { seededDatabase } from './support/seeded.ts'

const skip = noBrowser
let browser: Browser
let broker: ConsoleBroker
let front: Front

after(() => broker?.stop())
before(async () => {
  if (skip) return
  browser = await launch()
  broker = await startConsoleBroker({ databaseUrl: await seededDatabase('cluster') })
  front = await startFront(broker.url)
})

interface Found {
  readonly hits: readonly { readonly type: string; readonly name?: string }[]
  readonly truncated: readonly string[]
  readonly notCovered: number
}
const search = async (query: string): Promise<Found> =>
  (await (await fetch(`${broker.url}/search?${query}`)).json()) as Found

test('a slash goes to the box, arrows to a hit, Enter to its page', { skip }, async () => {
  const opened = await openPage(browser, `${front.url}flows`)
  const { page } = opened
  await page.waitForSelector('.in-sight td a')
  await page.keyboard.press('/')
  await page.keyboard.type('checkout')
  const option = page.getByRole('option', { name: /shop\/checkout \(Deployment\)/ })
  await option.waitFor()
  const options = page.locator('.option')
  const index = (await options.allTextContents()).findIndex((text) => text.startsWith('shop/checkout (Deployment)'))
  for (let i = 0; i <= index; i++) await page.keyboard.press('ArrowDown')
  assert.equal(await option.getAttribute('aria-selected'), 'true')
  assert.deepEqual(await axeViolations(page), [])
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/workload\/shop\/Deployment\/checkout/)
  await opened.close()
})

test('all results by type, with the parts that the search could not cover', { skip }, async () => {
  const opened = await openPage(browser, `${front.url}flows`)
  const { page } = opened
  await page.waitForSelector('.in-sight td a')
  await page.keyboard.press('/')
  await page.keyboard.type('shop')
  await page.getByRole('option', { name: 'All results for “shop”' }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/search\?q=shop/)
  await page.getByRole('heading', { name: 'Results for “shop”', level: 1 }).waitFor()
  const found = await search('q=shop&limit=20')
  await becomes(() => page.locator('.hits li').count(), found.hits.length, 10_000)
  assert.equal(await page.locator('h2').count(), new Set(found.hits.map(({ type }) => type)).size)
  assert.equal(await page.getByText('There are more.').count(), found.truncated.length)
  assert.equal(await page.getByText('neither a report nor an').count(), found.notCovered > 0 ? 1 : 0)
  await screenshot(page, 'search')
  await page.goto(`${front.url}search?q=no-such-thing-anywhere`)
  await page.getByText('Nothing is stored that this could name').waitFor()
  await page.goto(`${front.url}search`)
  await page.getByText('Nothing is searched for').waitFor()
  await page.getByRole('searchbox', { name: 'Search for' }).fill('worker')
  await page.keyboard.press('Enter')
  await page.waitForURL(/q=worker/)
  await opened.close()
})

test('results are accessible and no wider than the window', { skip }, async () => {
  const opened = await openPage(browser, `${front.url}search?q=shop`)
  await opened.page.waitForSelector('.hits li')
  await looksRight(opened.page, 'search')
  await opened.close()
})
