/** The seeded cluster with a broker and a browser, for tests of the pages that list things. */
import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { type ConsoleBroker, startConsoleBroker } from './broker.ts'
import {
  axeViolations,
  evaluate,
  launch,
  noBrowser,
  type OpenPage,
  openPage,
  overflowPx,
  type PageOptions,
  screenshot,
} from './browser.ts'
import { seededDatabase } from './seeded.ts'

/** Bounds of a page, on large clusters too. */
const MAX_REQUESTS = 6
const MAX_BYTES = 300_000
const NARROW_PX = 320
const QUIET_LOOKS = 4
const LOOK_MS = 60

/** What a page says of itself when an answer of the broker is an error. */
export const REFUSED = [/^answer \d+: /, /^console error: Failed to load resource/]

export interface Visits {
  readonly broker: ConsoleBroker
  readonly browser: Browser
  /** An answer of the broker. */
  get<T>(path: string): Promise<T>
  /** Opens a page of the console, and waits until it reads nothing. */
  visit(path: string, options?: PageOptions): Promise<OpenPage>
  /** Visits it in both themes, wide and narrow: nothing goes wrong, and axe-core finds nothing. */
  looksRight(path: string, options?: PageOptions): Promise<void>
  /**
   * Visits it, fails if it asks more often or for more bytes than a page may, or shows fewer rows than it should, and
   * returns what it took. `rows` selects what counts as one. What is asked again once it was answered, as pages do from
   * time to time, counts for the bytes only.
   */
  keepsBounds(path: string, minRows?: number, rows?: string): Promise<Taken>
}

export interface Taken {
  readonly requests: number
  /** Of answers, as sent. */
  readonly bytes: number
  /** Until the page shows more than placeholders. */
  readonly firstContentMs: number
  /** Those that are rendered: of long tables, the ones in sight. */
  readonly rows: number
}

/** A table, a list, a line of text below the heading: something to read. */
const HAS_CONTENT = `document.querySelector('main h1') !== null &&
  document.querySelector('main :is(table, canvas, ul, ol, dl, .empty, .card, .lead, .looks, .verdict)') !== null`

/** The rows of tables. */
const ROWS = 'main tbody tr[data-index]'

/** Starts all that at the start of a test file, and ends it with the file. */
export function visits(databaseUrl: () => Promise<string> = () => seededDatabase('cluster')): Visits {
  let broker: ConsoleBroker
  let browser: Browser
  before(async () => {
    if (noBrowser) return
    broker = await startConsoleBroker({ databaseUrl: await databaseUrl() })
    browser = await launch()
  })
  after(async () => {
    if (!noBrowser) await broker.stop()
  })
  const visit = async (path: string, options: PageOptions = {}) => {
    const opened = await openPage(browser, `${broker.url}/console/${path}`, options)
    await settled(opened.page)
    return opened
  }
  return {
    get broker() {
      return broker
    },
    get browser() {
      return browser
    },
    get: async <T>(path: string) => (await fetch(`${broker.url}${path}`)).json() as Promise<T>,
    visit,
    async looksRight(path, options = {}) {
      for (const [theme, width] of [
        ['light', 1_280],
        ['dark', NARROW_PX],
      ] as const) {
        const opened = await visit(path, { theme, width, ...options })
        const name = `${path.replaceAll(/sha256:([0-9a-f]{8})[0-9a-f]+/g, '$1').replaceAll(/[^\w.-]+/g, '-') || 'start'}`
        await screenshot(opened.page, `${name}-${theme}-${width}`)
        assert.deepEqual(await axeViolations(opened.page), [], `${path} ${theme} ${width}`)
        assert.ok((await overflowPx(opened.page)) <= 0, `${path} is wider than ${width} px`)
        await opened.close()
      }
    },
    async keepsBounds(path, minRows = 0, rowSelector = ROWS) {
      const opened = await openPage(browser, 'about:blank')
      const { page } = opened
      const asked: string[] = []
      let bytes = 0
      const session = await page.context().newCDPSession(page)
      await session.send('Network.enable')
      const own = new Map<string, string>()
      const answered = new Set<string>()
      session.on('Network.requestWillBeSent', ({ requestId, request }) => {
        if (new URL(request.url).pathname.startsWith('/console/')) return
        own.set(requestId, request.url)
        if (!answered.has(request.url)) asked.push(request.url)
      })
      session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
        const url = own.get(requestId)
        if (url === undefined) return
        bytes += encodedDataLength
        answered.add(url)
      })
      const startedAt = performance.now()
      await page.goto(`${broker.url}/console/${path}`, { waitUntil: 'commit' })
      while (!(await evaluate<boolean>(page, HAS_CONTENT))) await page.waitForTimeout(LOOK_MS / 3)
      const firstContentMs = Math.round(performance.now() - startedAt)
      await settled(page)
      const rows = await page.locator(rowSelector).count()
      const said = minRows > rows ? await textOf(page, 'main') : ''
      await page.context().close()
      assert.ok(asked.length <= MAX_REQUESTS, `${path} asked ${asked.join('\n')}`)
      assert.ok(bytes <= MAX_BYTES, `${path} read ${bytes} bytes`)
      assert.ok(rows >= minRows, `${path} shows ${rows} rows, not ${minRows} or more: ${said}`)
      return { requests: asked.length, bytes, firstContentMs, rows }
    },
  }
}

/** Waits until nothing is loading: a part that was loaded may begin to load another one. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor()
  await page.waitForLoadState('networkidle')
  for (let quiet = 0; quiet < QUIET_LOOKS; ) {
    await page.waitForTimeout(LOOK_MS)
    const isLoading = await evaluate<boolean>(page, `document.querySelector('.loading') !== null`)
    quiet = isLoading ? 0 : quiet + 1
  }
}

/** The texts of all elements, without blanks around them. */
export const textsOf = async (page: Page, selector: string): Promise<string[]> =>
  (await page.locator(selector).allInnerTexts()).map((text) => text.trim())

/** The text of an element as it is rendered. */
export const textOf = (page: Page, selector: string): Promise<string> =>
  evaluate(page, `document.querySelector(${JSON.stringify(selector)}).innerText`)

/** How many rows a table has, by the words above it. */
export async function rowsOf(page: Page, table: string): Promise<number> {
  const text = await page.getByLabel(table, { exact: true }).locator('.table-tools').first().textContent()
  return Number(/^([\d,]+) row/.exec(text!.trim())![1]!.replaceAll(',', ''))
}
