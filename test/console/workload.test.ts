/** The list of workloads and the dossier, compared with the API, by mouse and by keyboard. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openPool } from '../../lib/db/open-pool.ts'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { type ConsoleBroker, startConsoleBroker } from './support/broker.ts'
import {
  axeViolations,
  evaluate,
  launch,
  looksRight,
  noBrowser,
  openPage,
  overflowPx,
  type PageOptions,
  settled,
} from './support/browser.ts'
import { freshen } from './support/fresh.ts'
import { seededDatabase } from './support/seeded.ts'

const CHECKOUT = 'shop/Deployment/checkout'
/** A workload that waits for CPU because of platform/Deployment/image-builder. */
const STOREFRONT = 'shop/Deployment/storefront'
/** A workload with an unsigned image. */
const CARD_VAULT = 'payments/Deployment/card-vault'
/** A workload with a partial syscall capture. */
const FX_RATES = 'payments/Deployment/fx-rates'
/** A workload whose connections are not answered. */
const LEDGER = 'payments/Deployment/ledger'
const LOG4SHELL = 'CVE-2021-44228'
const TABS = ['', 'flows', 'vulnerabilities', 'seccomp', 'runtime', 'compute', 'trust', 'changes'] as const
const REFUSED = [/^answer (404|409): /, /^console error: Failed to load resource/]
const MAX_REQUESTS = 6
const MAX_BYTES = 300_000
const MAX_TAB_KEYS = 80
const MAX_LOOKS = 100

type Profile = JsonAnswer<'/workloads/{namespace}/{kind}/{name}/profile'>
type Findings = JsonAnswer<'/images/{digest}/vulnerabilities'>

let browser: Browser
let broker: ConsoleBroker
let databaseUrl: string

before(async () => {
  if (noBrowser) return
  databaseUrl = await seededDatabase('cluster')
  broker = await startConsoleBroker({ databaseUrl })
  browser = await launch()
})
after(async () => {
  if (!noBrowser) await broker.stop()
})

/** A sample is shown for little more than a minute, which the earlier tests take, so it is posted again. */
async function sampleAgain(): Promise<void> {
  const sql = openPool(databaseUrl, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  await freshen(sql)
  await sql.end({ timeout: 1 })
}

const get = async <T>(path: string): Promise<T> => (await fetch(`${broker.url}${path}`)).json() as Promise<T>

/** Opens a page of the console and waits until all of its reads are answered. */
async function open(path: string, options: PageOptions = {}) {
  const opened = await openPage(browser, `${broker.url}/console/${path}`, options)
  await settled(opened.page)
  return opened
}

const workload = (name: string, tab: string, query = '') => `workload/${name}?tab=${tab}${query}`

/** The texts of a column, by the names of the table and the column. */
async function column(page: Page, table: string, title: string): Promise<string[]> {
  const frame = page.locator(`section.table-frame[aria-label="${table}"]`)
  const titles = await frame.locator('thead th').allInnerTexts()
  const index = titles.findIndex((one) => one.trim() === title)
  assert.notEqual(index, -1, `${title} is none of ${titles}`)
  const texts = await frame.locator(`tbody tr td:nth-child(${index + 1})`).allInnerTexts()
  return texts.map((text) => text.replaceAll(/\s+/g, ' ').trim())
}

const runningDigest = async (name: string): Promise<string> =>
  (await get<Profile>(`/workloads/${name}/profile`)).dimensions.images.containers[0]!.running[0]!.digest

async function tabTo(page: Page, wanted: RegExp): Promise<void> {
  for (let i = 0; i < MAX_TAB_KEYS; i++) {
    await page.keyboard.press('Tab')
    const text = await evaluate<string>(page, `document.activeElement.textContent.trim()`)
    if (wanted.test(text)) return
  }
  assert.fail(`the Tab key never came to ${wanted}`)
}

describe('workloads in the browser', { skip: noBrowser }, () => {
  it('are listed as the API lists them, by the filter of the address', async () => {
    const opened = await open('workloads?namespace=shop')
    const { page } = opened
    const { items } = await get<JsonAnswer<'/workloads'>>('/workloads?namespace=shop&limit=100')
    assert.ok(items.length > 1)
    assert.deepEqual(
      await column(page, 'Workloads', 'Workload'),
      items.map(({ namespace, kind, name }) => `${namespace}/${name} ${kind}`),
    )
    assert.deepEqual(
      await column(page, 'Workloads', 'Posture'),
      items.map(({ posture }) => posture.status),
    )
    await page.getByRole('combobox', { name: 'Filter' }).fill('checkout')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/workloads?namespace=shop&search=checkout')
    await settled(page)
    assert.deepEqual(await column(page, 'Workloads', 'Workload'), ['shop/checkout Deployment'])
    await page.getByRole('button', { name: 'Remove the filter search checkout' }).click()
    await page.getByRole('combobox', { name: 'Filter' }).fill('search:no-such-name')
    await page.keyboard.press('Enter')
    await page.getByText('No workload matches').waitFor()
    await opened.close()
  })

  for (const tab of ['list', ...TABS] as const)
    it(`have pages that are small and accessible: ${tab || 'overview'}`, async () => {
      const path = tab === 'list' ? 'workloads' : workload(tab === 'compute' ? STOREFRONT : CHECKOUT, tab)
      const asked: { url: string; bytes: number }[] = []
      const opened = await openPage(browser, 'about:blank', { origins: [broker.url] })
      const { page } = opened
      page.on('requestfinished', async (request) => {
        const { pathname } = new URL(request.url())
        const { responseBodySize } = await request.sizes()
        if (!pathname.startsWith('/console/')) asked.push({ url: pathname, bytes: responseBodySize })
      })
      await page.goto(`${broker.url}/console/${path}`)
      await settled(page)
      const bytes = asked.reduce((sum, one) => sum + one.bytes, 0)
      assert.ok(asked.length <= MAX_REQUESTS, `${asked.length} requests: ${asked.map(({ url }) => url)}`)
      assert.ok(bytes <= MAX_BYTES, `${bytes} bytes`)
      await looksRight(page, `workload-${tab || 'overview'}`)
      await opened.close()
    })

  it('show the most urgent dimension first, and lead to its rows by keyboard alone', async () => {
    const opened = await open(`workload/${CHECKOUT}`)
    const { page } = opened
    const { attention, posture } = await get<Profile>(`/workloads/${CHECKOUT}/profile`)
    const listed = await page.locator('.finding-list').first().locator('li p:first-child').allInnerTexts()
    assert.deepEqual(
      listed.map((text) => attention.some(({ title }) => text.startsWith(title))),
      attention.map(() => true),
    )
    assert.equal(await page.locator('.dimension-strip dd').first().textContent(), posture.status)
    await tabTo(page, new RegExp(`^${attention[0]!.title}$`))
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/${CHECKOUT}?tab=vulnerabilities`)
    await settled(page)
    await tabTo(page, new RegExp(`^${LOG4SHELL}$`))
    await page.keyboard.press('Enter')
    const sheet = page.getByRole('dialog', { name: LOG4SHELL })
    await sheet.waitFor()
    assert.match(page.url(), /finding=CVE-2021-44228/)
    await page.keyboard.press('Escape')
    await sheet.waitFor({ state: 'detached' })
    await page.waitForURL(({ searchParams }) => !searchParams.has('finding'))
    await opened.close()
  })

  it('show vulnerabilities with their use and why, and no foreign address before a click', async () => {
    const digest = await runningDigest(CHECKOUT)
    const { items } = await get<Findings>(`/images/${digest}/vulnerabilities?tier=P0,P1&limit=100`)
    const opened = await open(workload(CHECKOUT, 'vulnerabilities', '&tier=P0&tier=P1'))
    const { page } = opened
    const table = await page.locator('section.table-frame').getAttribute('aria-label')
    assert.deepEqual(
      (await column(page, table!, 'Vulnerability')).map((text) => text.replace(' KEV', '')),
      items.map(({ id }) => id),
    )
    const finding = items.find(({ id }) => id === LOG4SHELL)!
    await page.getByRole('link', { name: LOG4SHELL, exact: true }).click()
    const sheet = page.getByRole('dialog')
    await sheet.getByText('known to be exploited').first().waitFor()
    await sheet.getByText(`${finding.inUseDetail.containers} container`).waitFor()
    assert.deepEqual(await axeViolations(page), [])
    assert.equal(await sheet.locator('a[target=_blank]').count(), 0)
    await sheet.getByRole('button', { name: /…$/ }).click()
    assert.equal(await sheet.locator('a[target=_blank]').getAttribute('href'), finding.primaryUrl)
    await opened.close()
  })

  it('say that the finding of an old link no longer exists', async () => {
    const opened = await open(workload(CHECKOUT, 'vulnerabilities', '&finding=CVE-1999-0001+nothing+1'))
    await opened.page.getByText('is not among those that were read').waitFor()
    await opened.close()
  })

  it('offer the export of a seccomp profile, and enforce a partial one only if told', async () => {
    const opened = await open(workload(FX_RATES, 'seccomp', '&defaultAction=SCMP_ACT_ERRNO'), { allowed: REFUSED })
    const { page } = opened
    await page.getByText('is partial, and a profile that enforces would block what it missed').waitFor()
    await page.getByRole('checkbox').click()
    const text = page.getByRole('textbox', { name: /Seccomp profile as/ })
    await text.waitFor()
    const query = 'defaultAction=SCMP_ACT_ERRNO&acknowledgePartial=true'
    const answer = await fetch(`${broker.url}/seccomp/profiles/${FX_RATES}/export?${query}`)
    assert.equal(await text.inputValue(), await answer.text())
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    assert.equal(readFileSync(await file.path(), 'utf8'), await text.inputValue())
    await opened.close()
  })

  it('show the culprits of their waits, chart each minute, and have the same as a table', async () => {
    await sampleAgain()
    const opened = await open(workload(STOREFRONT, 'compute'))
    const { page } = opened
    const pod = await page.getByRole('combobox', { name: 'Pod', exact: true }).inputValue()
    const { rows } = await get<JsonAnswer<'/compute/history/{pod_uid}'>>(`/compute/history/${pod}?minutes=60`)
    assert.equal(await page.getByRole('img', { name: /^CPU of container storefront/ }).count(), 1)
    assert.equal(await page.locator('.chart canvas').count(), 5)
    await page.getByText('CPU as a table').click()
    assert.equal((await column(page, 'CPU of container storefront', 'mean')).length, rows.length)
    const culprits = await column(page, 'Who made it wait', 'Waited for')
    assert.match(culprits[0]!, /^platform\/image-builder-/)
    const pods = page.getByRole('combobox', { name: 'Pod', exact: true }).locator('option')
    await page.getByRole('combobox', { name: 'Pod', exact: true }).selectOption({ index: 1 })
    await page.waitForURL(`**pod_uid=${await pods.nth(1).getAttribute('value')}`)
    await page.getByLabel('Span').selectOption('360')
    await page.waitForURL('**minutes=360')
    await settled(page)
    await opened.close()
  })

  it('draw charts anew in the other theme and in a narrow window', async () => {
    await sampleAgain()
    const opened = await open(workload(STOREFRONT, 'compute'))
    const { page } = opened
    await page.locator('.chart canvas').first().waitFor()
    const pixels = () => evaluate<string>(page, `document.querySelector('.chart canvas').toDataURL()`)
    const light = await pixels()
    await page.getByLabel('Theme').selectOption('dark')
    for (let look = 0; look < MAX_LOOKS && (await pixels()) === light; look++) await page.waitForTimeout(60)
    assert.notEqual(await pixels(), light)
    await page.setViewportSize({ width: 320, height: 800 })
    await page.waitForTimeout(200)
    assert.ok((await overflowPx(page)) <= 0)
    await opened.close()
  })

  it('show executed files, whether the list is complete, and refused capabilities', async () => {
    const opened = await open(workload(CHECKOUT, 'runtime', '&kind=exec'))
    const { page } = opened
    const runtime = await get<JsonAnswer<'/workloads/{namespace}/{kind}/{name}/runtime'>>(
      `/workloads/${CHECKOUT}/runtime?kind=exec`,
    )
    const paths = runtime.containers.flatMap(({ entries }) => entries.map(({ path }) => path))
    assert.deepEqual((await column(page, 'Files that ran', 'File')).sort(), paths.sort())
    assert.equal((await column(page, 'Coverage of containers', 'List')).length, runtime.coverage.length)
    const { capabilities } = await get<Profile>(`/workloads/${CHECKOUT}/profile`)
    const [container] = capabilities.containers
    const denied = container!.denied.map(({ capability }) => capability)
    const shown = await column(page, `Capabilities of ${container!.container}`, 'Capability')
    assert.deepEqual(
      denied.filter((one) => !shown.includes(one)),
      [],
    )
    await opened.close()
  })

  it('show callers, callees and unanswered connections', async () => {
    const opened = await open(workload(LEDGER, 'flows'))
    const { page } = opened
    const edges = await get<JsonAnswer<'/flows/edges'>>(`/flows/edges?workload=${LEDGER}&verdict=DROP`)
    const shown = await column(page, 'Connections that were not answered', 'Flows')
    assert.deepEqual(
      shown.map(Number),
      edges.items.map(({ flows }) => flows),
    )
    const link = page.locator('section[aria-label="Connections that were not answered"] td.right a').first()
    assert.match((await link.getAttribute('href'))!, /\/flows\?.*from_workload=payments.*verdict=DROP/)
    await opened.close()
  })

  it('say that an image is unsigned, and that policies are not judged', async () => {
    const opened = await open(workload(CARD_VAULT, 'trust'))
    const { page } = opened
    await page.getByText('No signature was found, and every look-up answered.').waitFor()
    await page.getByText('That is not “nothing would be denied”.').waitFor()
    await opened.close()
  })

  it('show changes between two dates, and parts that were not recorded then', async () => {
    const opened = await open(workload(CHECKOUT, 'changes'))
    const { page } = opened
    const diff = await get<JsonAnswer<'/workloads/{namespace}/{kind}/{name}/diff'>>(
      `/workloads/${CHECKOUT}/diff?from=7d`,
    )
    const edges = await column(page, 'Connections that changed', 'Change')
    assert.equal(edges.length, diff.edges!.firstSeen.total + diff.edges!.goneQuiet.total)
    const badge = (title: string) =>
      page
        .locator('.change-part')
        .filter({ has: page.getByRole('heading', { name: title }) })
        .first()
    const unrecorded = diff.notKnown.filter(({ reason }) => reason === 'not_recorded_then').map(({ part }) => part)
    if (unrecorded.includes('confinement'))
      assert.match((await badge('Confinement').textContent()) ?? '', /not recorded then/)
    await page.getByRole('link', { name: '1 day', exact: true }).click()
    await page.waitForURL('**from=24h')
    await settled(page)
    const versions = await column(page, 'Versions of the profile', 'Revision')
    await page.getByRole('link', { name: versions[0]!, exact: true }).click()
    await page.getByText(`Revision ${versions[0]}`, { exact: true }).waitFor()
    assert.match(page.url(), new RegExp(`to_revision=${versions[0]}`))
    await opened.close()
  })

  it('take dates of the two fields into the address', async () => {
    const opened = await open(workload(CHECKOUT, 'changes'))
    const { page } = opened
    await page.getByLabel('From', { exact: true }).fill('2026-01-02T03:04')
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.waitForURL('**from=2026-01-02T03%3A04%3A00Z')
    await settled(page)
    assert.equal((await page.getByText('not recorded then').count()) > 0, true)
    await opened.close()
  })

  it('that are unknown are not found', async () => {
    const opened = await open('workload/shop/Deployment/no-such-name', { allowed: REFUSED })
    await opened.page.getByText('Not found').waitFor()
    await opened.close()
    const incomplete = await open('workload/shop')
    await incomplete.page.getByText('The address names no workload').waitFor()
    await incomplete.close()
  })
})
