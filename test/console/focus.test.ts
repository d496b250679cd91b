/** The focus page: the edges of a workload on both sides, compared with the API. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import type { Edge } from '../../wrangler-free-deploy/console/api/edge.ts'
import { type ConsoleBroker, startConsoleBroker } from './support/broker.ts'
import { launch, looksRight, noBrowser, openPage, screenshot } from './support/browser.ts'
import { seededDatabase } from './support/seeded.ts'

const WORKLOAD = 'shop/Deployment/checkout'
const DROPPING = 'payments/Deployment/ledger'
const skip = noBrowser

let broker: ConsoleBroker
let browser: Browser
before(async () => {
  if (noBrowser) return
  broker = await startConsoleBroker({ databaseUrl: await seededDatabase('cluster') })
  browser = await launch()
})
after(async () => {
  if (!noBrowser) await broker.stop()
})

const open = (path: string, options = {}) => openPage(browser, `${broker.url}/console/${path}`, options)
const edgesOf = async (query: string): Promise<Edge[]> =>
  ((await (await fetch(`${broker.url}/flows/edges?${query}`)).json()) as { items: Edge[] }).items

test('callers and callees are those of the API, with their flows', { skip }, async () => {
  const opened = await open(`focus/${WORKLOAD}`)
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'checkout' }).waitFor()
  for (const [side, parameter, peer] of [
    ['Callers', 'to_workload', 'from'],
    ['Callees', 'from_workload', 'to'],
  ] as const) {
    const edges = await edgesOf(`${parameter}=${WORKLOAD}&order=flows&limit=100`)
    assert.ok(edges.length > 0)
    const rows = page.getByRole('region', { name: side }).getByRole('listitem')
    await rows.first().waitFor()
    assert.equal(await rows.count(), edges.length)
    const texts = await rows.allInnerTexts()
    for (const [i, { port, protocol, flows, pods, verdict, ...ends }] of edges.entries()) {
      const { workload, ip, name } = ends[peer]
      assert.ok(texts[i]!.includes(workload?.split('/')[1] ?? ip ?? name ?? ''), texts[i])
      assert.ok(texts[i]!.includes(`${port}/${protocol}`))
      assert.match(texts[i]!.replaceAll(',', ''), new RegExp(`${flows} flows? of ${pods} pods?`))
      assert.ok(texts[i]!.includes(verdict === 'DROP' ? 'dropped' : 'allowed'))
    }
  }
  await opened.close()
})

test('dropped edges, unresolved peers and one-sided reports are said in words', { skip }, async () => {
  const opened = await open(`focus/${DROPPING}`)
  const { page } = opened
  const callees = page.getByRole('region', { name: 'Callees' })
  await callees.getByRole('listitem').first().waitFor()
  const edges = await edgesOf(`from_workload=${DROPPING}&limit=100`)
  const isDropped = edges.filter(({ verdict }) => verdict === 'DROP').length
  assert.ok(isDropped > 0)
  assert.equal(await callees.getByText('dropped', { exact: true }).count(), isDropped)
  const unresolved = edges.filter(({ to }) => to.kind === 'unresolved').length
  assert.ok(unresolved > 0)
  assert.equal(await callees.getByText('unresolved', { exact: true }).count(), unresolved)
  const oneSided = edges.filter(({ seenBy }) => seenBy.length === 1).length
  assert.equal(await callees.getByText('reported only by').count(), oneSided)
  await screenshot(page, 'focus-dropped')
  await opened.close()
})

test('rows lead to the focus of the peer and to the flows of the edge', { skip }, async () => {
  const opened = await open(`focus/${WORKLOAD}?since=30d`)
  const { page } = opened
  const row = page
    .getByRole('region', { name: 'Callers' })
    .getByRole('listitem')
    .filter({ has: page.locator('.kind') })
  const [edge] = (await edgesOf(`to_workload=${WORKLOAD}&order=flows&since=30d`)).filter(
    ({ from }) => from.kind === 'workload',
  )
  const links = row.first().getByRole('link')
  const flows = new URL((await links.nth(1).getAttribute('href'))!, broker.url)
  assert.equal(flows.pathname, '/console/flows')
  const { from, port, protocol, verdict } = edge!
  assert.deepEqual(Object.fromEntries(flows.searchParams), {
    since: '30d',
    from_workload: `${from.namespace}/${from.workload}`,
    to_workload: WORKLOAD,
    ...{ port, protocol, verdict },
  })
  await links.first().click()
  await page.waitForURL(`**/console/focus/${from.namespace}/${from.workload}?since=30d`)
  await page.getByRole('heading', { level: 1, name: from.workload!.split('/')[1]! }).waitFor()
  await opened.close()
})

test('a workload is chosen by the keyboard', { skip }, async () => {
  const opened = await open('focus')
  const { page } = opened
  await page.getByRole('combobox', { name: 'Workload' }).focus()
  await page.keyboard.type('shop/Deployment/check')
  await page.getByRole('option', { name: WORKLOAD }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'Callers' }).waitFor()
  assert.ok(page.url().endsWith(`/console/focus/${WORKLOAD}`))
  await opened.close()
})

test('a workload without edges says so', { skip }, async () => {
  const opened = await open('focus/shop/Deployment/nobody')
  await opened.page.getByText('No caller was seen').waitFor()
  await opened.page.getByText('No callee was seen').waitFor()
  await opened.close()
})

for (const [name, path, role] of [
  ['focus', `focus/${DROPPING}`, 'listitem'],
  ['focus-choose', 'focus', 'combobox'],
] as const)
  test(`it is accessible and fits: ${name}`, { skip }, async () => {
    const opened = await open(path)
    await opened.page.getByRole(role).last().waitFor({ state: 'attached' })
    await looksRight(opened.page, name)
    await opened.close()
  })
