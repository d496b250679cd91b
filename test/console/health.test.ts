/** Single nodes, the health of the broker, and the coverage gaps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { depth } from '../support/depth.ts'
import { evaluate, noBrowser, settled } from './support/browser.ts'
import { SILENT_NODES } from './support/seed/story.ts'
import { REFUSED, rowsOf, textOf, visits } from './support/visit.ts'

const skip = noBrowser
const site = visits()
const BUSY_NODE = 'worker-eu-1b-01'
const PARTS = ['images', 'containers', 'nodes', 'workloads'] as const
/** The metrics are polled every ten seconds. */
const RATES_MS = 20_000

test('a node: its pods are those of the API, and its gaps are listed', { skip }, async () => {
  const pods = await site.get<JsonAnswer<'/pod/list/{node}'>>(`/pod/list/${BUSY_NODE}`)
  const { page, close } = await site.visit(`node/${BUSY_NODE}`)
  assert.match(await textOf(page, '.verdict'), new RegExp(`^Reports\\s+${pods.length} live pods`))
  await page.getByRole('link', { name: 'Pods', exact: true }).click()
  await settled(page)
  assert.equal(await rowsOf(page, 'Pods of the node'), pods.length)
  await close()
})

test('a silent node is marked as silent', { skip }, async () => {
  const [node] = [...SILENT_NODES.keys()]
  const { page, close } = await site.visit(`node/${node}`)
  assert.match(await textOf(page, '.verdict'), /^Silent\s+No post of its pods came for/)
  assert.match(await textOf(page, 'main'), /silent/)
  await close()
})

test('health: version, stored data, coverage', { skip }, async () => {
  const { broker } = await site.get<JsonAnswer<'/version'>>('/version')
  const coverage = await site.get<JsonAnswer<'/coverage'>>('/coverage?limit=1')
  const { page, close } = await site.visit('health')
  assert.match(await textOf(page, '.verdict'), new RegExp(`^works\\s+Version ${broker.replaceAll('.', '\\.')}`))
  const known = await textOf(page, '[aria-label="What is known"] table')
  for (const part of PARTS) assert.ok(known.includes(coverage[part]!.totals!.total.toLocaleString('en-GB')), part)
  await close()
})

test('health: jobs, and rates after the second poll', { skip }, async () => {
  const { page, close } = await site.visit('health')
  assert.ok((await rowsOf(page, 'Jobs')) > 0)
  const rate = page
    .locator('tr', { has: page.locator('code', { hasText: /^\/metrics$/ }) })
    .locator('td')
    .nth(1)
  assert.equal(await rate.textContent(), '…')
  await page
    .locator('tr', { has: page.locator('code', { hasText: /^\/metrics$/ }) })
    .locator('td', { hasText: /^[\d.]+\/s$/ })
    .waitFor({ timeout: RATES_MS })
  await close()
})

test('health without metrics shows the rest', { skip }, async () => {
  const { page } = await site.visit('nodes', { allowed: REFUSED })
  await page.route('**/metrics', (route) => route.fulfill({ status: 404, body: '' }))
  await page.getByRole('link', { name: 'Health' }).click()
  await page.getByText('cannot be read here').waitFor()
  await settled(page)
  assert.match(await textOf(page, '.verdict'), /^works/)
  assert.equal(await rowsOf(page, 'What is known'), PARTS.length)
  await page.context().close()
})

test('connections of the database that were not counted yet are not known', { skip }, async () => {
  const { page, close } = await site.visit('nodes')
  await page.route('**/metrics', (route) =>
    route.fulfill({
      contentType: 'text/plain',
      body: 'broker_db_server_connections 0\nbroker_db_server_connections_max 0\n',
    }),
  )
  await page.getByRole('link', { name: 'Health' }).click()
  await page.getByText('Connections of the database').waitFor()
  assert.match(await textOf(page, 'main'), /Connections of the database\s+\? of \?/)
  await close()
})

test('gaps: all rows, page by page', { skip }, async () => {
  const report = await site.get<JsonAnswer<'/coverage'>>('/coverage?limit=1')
  for (const part of ['images', 'nodes'] as const) {
    const { total, known } = report[part]!.totals!
    const { page, close } = await site.visit(`health?part=${part}`)
    assert.equal(await rowsOf(page, `Not known of ${part}`), total - known, part)
    await close()
  }
  const { total, known } = report.containers!.totals!
  const { page, close } = await site.visit('health?part=containers')
  while ((await page.getByRole('button', { name: 'Read more' }).count()) > 0) {
    await page.getByRole('button', { name: 'Read more' }).click()
    await settled(page)
  }
  await evaluate(page, `document.querySelector('.in-sight')?.scrollTo(0, 1_000_000)`)
  await settled(page)
  assert.ok((await rowsOf(page, 'Not known of containers')) > 100)
  assert.ok((await rowsOf(page, 'Not known of containers')) <= total - known)
  await close()
})

const PATHS = ['nodes', `node/${BUSY_NODE}`, `node/${BUSY_NODE}?tab=pods`, `node/${BUSY_NODE}?tab=contention`, 'health']

test('few requests and bytes', { skip }, async () => {
  for (const path of [...PATHS, ...PARTS.map((part) => `health?part=${part}`)]) await site.keepsBounds(path)
})

test('looks right', { skip }, async () => {
  for (const path of [...PATHS, ...depth(PARTS.slice(0, 1), [...PARTS]).map((part) => `health?part=${part}`)])
    await site.looksRight(path)
})
