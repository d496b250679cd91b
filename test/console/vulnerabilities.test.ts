/** Vulnerabilities: the list and its filters, and whether one runs anywhere. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { noBrowser, settled } from './support/browser.ts'
import { LOG4SHELL } from './support/seed/story.ts'
import { REFUSED, rowsOf, textOf, textsOf, visits } from './support/visit.ts'

const skip = noBrowser
const site = visits()
const list = (query: string) => site.get<JsonAnswer<'/vulnerabilities'>>(`/vulnerabilities?limit=500&${query}`)

test('the list has the rows of the API, and its numbers', { skip }, async () => {
  const { items } = await list('')
  const { page, close } = await site.visit('vulnerabilities')
  assert.equal(await rowsOf(page, 'Vulnerabilities'), items.length)
  const first = await textsOf(page, '.table-frame tbody tr:first-child td')
  const [worst] = items
  assert.deepEqual(first.slice(0, 3), [worst!.id, worst!.tier, worst!.severity.toLowerCase()])
  assert.equal(first[7], String(worst!.runningWorkloads))
  await close()
})

test('typed filters are in the address', { skip }, async () => {
  const { items } = await list('severity=CRITICAL,HIGH&in_use=loaded')
  const { page, close } = await site.visit('vulnerabilities')
  const field = page.getByRole('combobox', { name: 'Filter' })
  for (const word of ['severity:CRITICAL', 'severity:HIGH', 'in_use:loaded']) {
    await field.fill(word)
    await field.press('Enter')
  }
  await settled(page)
  const { searchParams } = new URL(page.url())
  assert.deepEqual(searchParams.getAll('severity'), ['CRITICAL', 'HIGH'])
  assert.equal(searchParams.get('in_use'), 'loaded')
  assert.equal(await rowsOf(page, 'Vulnerabilities'), items.length)
  assert.ok(items.length > 0)
  await close()
})

test('does it run anywhere: by the keyboard alone, from the search to the answer', { skip }, async () => {
  const { page, close } = await site.visit('')
  await page.keyboard.press('/')
  await page.keyboard.type(LOG4SHELL.id.toLowerCase())
  await page.getByRole('option', { name: LOG4SHELL.id }).first().waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: LOG4SHELL.id }).waitFor()
  await settled(page)
  const { images } = await site.get<JsonAnswer<'/coverage'>>('/coverage?part=images&limit=1')
  const gaps = images!.totals!.missing.no_report
  assert.match(
    await textOf(page, '.verdict'),
    new RegExp(`^Running\\s+1 workload runs a container of an image that has it\\. It may be in more: ${gaps} running`),
  )
  // Tab continues in the page, not in the search box.
  assert.equal(await page.locator('main:focus').count(), 1)
  await page.keyboard.press('Tab')
  assert.equal(await textOf(page, 'main :focus'), 'Which images these are')
  await close()
})

test('a vulnerability: where it runs, its decisions, and its link to another site', { skip }, async () => {
  const exposure = await site.get<JsonAnswer<'/vulnerabilities/{id}/exposure'>>(
    `/vulnerabilities/${LOG4SHELL.id}/exposure`,
  )
  const { page, close } = await site.visit(`vulnerability/${LOG4SHELL.id}`)
  const text = await textOf(page, 'main')
  assert.ok(text.includes(LOG4SHELL.title))
  assert.ok(text.includes(LOG4SHELL.aliases[0]!))
  assert.match(text, /Upgrade to 2\.17\.1 is in review/)
  assert.equal(await rowsOf(page, 'Where it runs'), exposure.workloads.length)
  assert.equal(await rowsOf(page, 'Images that have it'), exposure.images.length)
  assert.equal(await page.locator('a[href*="aquasec"]').count(), 0)
  await page.getByRole('button', { name: 'avd.aquasec.com…' }).click()
  assert.equal(await textOf(page, '.outside code'), LOG4SHELL.primary_url)
  assert.equal(await page.getByRole('link', { name: 'Open it' }).getAttribute('rel'), 'noopener noreferrer')
  await page.getByLabel('Flows of the last').selectOption('24')
  await settled(page)
  assert.equal(new URL(page.url()).searchParams.get('window_hours'), '24')
  await close()
})

test('a vulnerability that no report names is not called absent', { skip }, async () => {
  const { page } = await site.visit('vulnerability/CVE-1999-0001', { allowed: REFUSED })
  const verdict = await textOf(page, '.verdict')
  assert.match(verdict, /^Not known\s+No report of an image in the inventory names it\. It may run in them: /)
  assert.match(verdict, / in them: \d+ running images have no report/)
  await page.context().close()
})

test('a failed answer does not affect the other parts', { skip }, async () => {
  const { page } = await site.visit('vulnerabilities', { allowed: REFUSED })
  await page.route('**/exposure*', (route) => route.fulfill({ status: 500, body: 'internal error, request 1' }))
  await page.getByRole('link', { name: LOG4SHELL.id }).click()
  await page.getByRole('heading', { level: 1, name: LOG4SHELL.id }).waitFor()
  await settled(page)
  const text = await textOf(page, 'main')
  assert.match(text, /internal error, request 1/)
  assert.match(text, /Upgrade to 2\.17\.1 is in review/)
  assert.equal(await page.locator('.verdict').count(), 0)
  await page.context().close()
})

test('a namespace whose containers were left out is not called free of it', { skip }, async () => {
  const { page, close } = await site.visit('')
  await page.route('**/exposure*', async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, json: { ...(await answer.json()), truncatedLists: ['workloads'] } })
  })
  await page.goto(`${site.broker.url}/console/vulnerability/${LOG4SHELL.id}?namespace=elsewhere`)
  await settled(page)
  assert.match(await textOf(page, 'main'), /No container of elsewhere is among these 200/)
  await page.getByRole('link', { name: 'The list', exact: true }).click()
  await page.waitForURL(`**/vulnerabilities?namespace=elsewhere&vuln_id=${LOG4SHELL.id}`)
  await settled(page)
  assert.match(await textOf(page, '.lead'), /^No running image is known in elsewhere\.$/)
  await close()
})

test('few requests and bytes', { skip }, async () => {
  for (const path of ['vulnerabilities', `vulnerability/${LOG4SHELL.id}`, 'vulnerability/CVE-2024-5535'])
    await site.keepsBounds(path)
})

test('looks right', { skip }, async () => {
  for (const path of ['vulnerabilities', `vulnerability/${LOG4SHELL.id}`]) await site.looksRight(path)
})
