/**
 * The start page: its numbers are those of the API, one failed part does not affect others, and an empty broker says
 * how data arrives.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { noBrowser, settled } from './support/browser.ts'
import { emptyDatabase } from './support/empty.ts'
import { REFUSED, textOf, textsOf, visits } from './support/visit.ts'

const skip = noBrowser
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOON = Date.parse('2026-11-20T12:57:00Z')
const URGENT = 'tier=P0,P1&in_use=executed,loaded&running=true'

describe('a cluster in which something needs a look', () => {
  const site = visits()

  test('counts are those of the API, the most urgent first', { skip }, async () => {
    const { items } = await site.get<JsonAnswer<'/vulnerabilities'>>(`/vulnerabilities?${URGENT}&limit=500`)
    const coverage = await site.get<JsonAnswer<'/coverage'>>('/coverage?limit=1')
    const denials = await site.get<JsonAnswer<'/seccomp/denials'>>('/seccomp/denials?limit=500')
    const { page, close } = await site.visit('')
    const titles = await textsOf(page, '.look h2')
    const workloads = new Set(denials.map((one) => `${one.podNamespace}/${one.workloadName ?? one.podName}`))
    assert.equal(titles[0], `${items.length} vulnerabilities of tier P0 or P1 in use`)
    assert.equal(titles[1], `${workloads.size} workloads with syscalls that the kernel denied`)
    assert.ok(titles.includes(`${coverage.nodes!.totals!.missing.silent} silent nodes`))
    assert.ok(titles.includes(`${coverage.images!.totals!.missing.no_report} running images that nobody scanned`))
    assert.ok(
      titles.includes(`${coverage.workloads!.totals!.missing.capture_incomplete} partial seccomp profiles`),
      titles.join('\n'),
    )
    assert.ok(titles.some((title) => /^\d+ new drops? in 24 hours$/.test(title)))
    await close()
  })

  test('a line leads to its rows', { skip }, async () => {
    const { items } = await site.get<JsonAnswer<'/vulnerabilities'>>(`/vulnerabilities?${URGENT}&limit=500`)
    const { page, close } = await site.visit('')
    await page.locator('.look h2 a').first().click()
    await page.getByRole('heading', { level: 1, name: 'Vulnerabilities' }).waitFor()
    await settled(page)
    assert.equal(await page.locator('.table-frame tbody tr').count(), items.length)
    assert.deepEqual(new URL(page.url()).searchParams.getAll('tier'), ['P0', 'P1'])
    await close()
  })

  test('a line leads to its own window, without the end of another', { skip }, async () => {
    const { page, close } = await site.visit('?since=15m&until=2026-01-01T00:00:00Z')
    const drops = await page.locator('.look h2 a', { hasText: 'new drop' }).getAttribute('href')
    assert.equal(new URL(drops!, site.broker.url).search, '?since=24h&verdict=DROP')
    await close()
  })

  test('a failed part says so, and the others are shown', { skip }, async () => {
    const opened = await site.visit('nodes', { allowed: REFUSED })
    const { page } = opened
    await page.route('**/seccomp/denials*', (route) => route.fulfill({ status: 500, body: 'internal error' }))
    await page.route('**/coverage*', (route) => route.fulfill({ status: 503, body: 'database busy: x' }))
    await page.getByRole('link', { name: 'Start' }).click()
    await page.getByRole('heading', { name: 'Could not be asked' }).waitFor()
    // A busy broker is asked three times before the failure is shown.
    await page.getByText('Silent nodes, Images without a report').waitFor()
    const failed = await textsOf(page, '[role=alert]')
    assert.ok(
      failed.some((text) => /Silent nodes, Images without a report.*database busy/.test(text)),
      failed.join(),
    )
    assert.ok((await textsOf(page, '.look h2'))[0]!.endsWith('vulnerabilities of tier P0 or P1 in use'))
    assert.ok(!(await textOf(page, 'main')).includes('Nothing needs a look'))
    await page.context().close()
  })

  test('few requests and bytes', { skip }, async () => void (await site.keepsBounds('')))
  test('looks right', { skip }, () => site.looksRight(''))
  test('denials and findings look right', { skip }, async () => {
    for (const path of ['denials', 'findings']) await site.looksRight(path)
  })

  test('denials are those of the API', { skip }, async () => {
    const denials = await site.get<JsonAnswer<'/seccomp/denials'>>('/seccomp/denials?namespace=payments&limit=500')
    const { page, close } = await site.visit('denials?namespace=payments')
    assert.equal(await page.locator('.table-frame tbody tr').count(), denials.length)
    assert.ok(denials.length > 0)
    await close()
  })

  test('a filter that cannot leave values out says so, and hides no row', { skip }, async () => {
    const denials = await site.get<JsonAnswer<'/seccomp/denials'>>('/seccomp/denials?limit=500')
    const { page, close } = await site.visit('denials')
    const field = page.getByRole('combobox', { name: 'Filter' })
    await field.fill('namespace:!kube-system')
    await field.press('Enter')
    await page.getByRole('alert').getByText('A value of namespace cannot be left out here.').waitFor()
    assert.equal(new URL(page.url()).search, '')
    await page.goto(`${site.broker.url}/console/denials?namespace=!kube-system`)
    await settled(page)
    assert.match(await textOf(page, '[role=alert]'), /left out here, so !kube-system is ignored/)
    assert.equal(await page.locator('.chip.excluded').count(), 0)
    assert.equal(await page.locator('.table-frame tbody tr').count(), denials.length)
    await close()
  })

  test('the day of denials moves on while the page is open', { skip }, async () => {
    const { page, close } = await site.visit('')
    const asked = (nowMs: number) => {
      const since = new Date(Math.floor(nowMs / HOUR_MS) * HOUR_MS - DAY_MS).toISOString().replace('.000', '')
      return page.waitForRequest((request) => new URL(request.url()).searchParams.get('since') === since)
    }
    await page.clock.install({ time: NOON })
    await Promise.all([asked(NOON), page.reload()])
    await settled(page)
    await Promise.all([asked(NOON + 10 * HOUR_MS), page.clock.fastForward('10:00:00')])
    await close()
  })

  test('denials say that the end of the window does not count, and refuse what is no time', { skip }, async () => {
    const { page } = await site.visit('denials?since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z', {
      allowed: REFUSED,
    })
    assert.match(await textOf(page, 'main'), /Only the beginning of the time window counts here/)
    await page.goto(`${site.broker.url}/console/denials?since=bogus`)
    await page.getByText(/The broker refused.*since/).waitFor()
    await page.context().close()
  })

  test('the fields of the time window show distances and times without a zone', { skip }, async () => {
    const { page, close } = await site.visit('', { timezone: 'Asia/Kolkata' })
    const shown = async (query: string) => {
      await page.goto(`${site.broker.url}/console/denials?${query}`)
      await settled(page)
      return page.getByLabel('From', { exact: true }).inputValue()
    }
    assert.equal(await shown('since=2026-11-29T10:00:00'), '2026-11-29T15:30')
    assert.match(await shown('since=36h'), /^\d{4}-\d\d-\d\dT\d\d:\d\d$/)
    await page.getByLabel('Time window').selectOption('24h')
    await page.getByLabel('Time window').selectOption('custom')
    assert.match(await page.getByLabel('From', { exact: true }).inputValue(), /^\d{4}-/)
    await close()
  })

  test('a time that is typed into the window counts once', { skip }, async () => {
    const { page, close } = await site.visit('denials?since=2026-11-29T10:00:00Z')
    const before = await page.evaluate(() => history.length)
    const from = page.getByLabel('From', { exact: true })
    await from.focus()
    // Month and day are the same in either order.
    await page.keyboard.type('11112025')
    assert.equal(new URL(page.url()).searchParams.get('since'), '2026-11-29T10:00:00Z')
    await page.keyboard.press('Enter')
    await page.waitForURL('**since=2025-11-11T10%3A00%3A00Z')
    await page.getByLabel('To', { exact: true }).focus()
    assert.equal(await page.evaluate(() => history.length), before + 1)
    await close()
  })
})

describe('a broker without any data', () => {
  const site = visits(emptyDatabase)

  test('the start says how data arrives', { skip }, async () => {
    const { page, close } = await site.visit('')
    assert.equal(await textOf(page, 'h1'), 'No data has arrived yet')
    assert.match(await textOf(page, 'main'), /docs\/clients\.md/)
    assert.equal(await page.locator('main a[href^="http"]').count(), 0)
    await close()
    await site.looksRight('')
  })

  test('lists say why they are empty', { skip }, async () => {
    for (const [path, words] of [
      ['vulnerabilities', /Nothing is counted yet/],
      ['images', /No image is known/],
      ['packages?name=openssl', /Nothing that is stored names it/],
      ['vulnerability/CVE-2021-44228', /Not known.*No running image is known: agents have posted no containers/],
      ['nodes', /No node has reported/],
      ['node/worker-1', /Not known.*it never reported/],
      ['denials', /No node has reported: whether anything is denied is not known/],
      ['findings', /Not watched/],
      ['health?part=images', /No images are known/],
    ] as const) {
      const { page } = await site.visit(path, { allowed: REFUSED })
      assert.match((await textOf(page, 'main')).replaceAll(/\s+/g, ' '), words, path)
      await page.context().close()
    }
  })
})
