/** A seeded cluster with a broker and a browser, for tests of the pages with lists. */
import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { type ConsoleBroker, startConsoleBroker } from './broker.ts'
import {
  evaluate,
  launch,
  looksRight,
  noBrowser,
  type OpenPage,
  openPage,
  type PageOptions,
  settled,
} from './browser.ts'
import { seededDatabase } from './seeded.ts'

/** Limits for a page, on large clusters too. */
const MAX_REQUESTS = 6
const MAX_BYTES = 300_000
const LOOK_MS = 60

/** Console messages after an error answer of the broker. */
export const REFUSED = [/^answer \d+: /, /^console error: Failed to load resource/]

export interface Visits {
  readonly broker: ConsoleBroker
  readonly browser: Browser
  /** An answer of the broker. */
  get<T>(path: string): Promise<T>
  /** Opens a page of the console, and waits until it has loaded. */
  visit(path: string, options?: PageOptions): Promise<OpenPage>
  /** Opens one page that goes from address to address: as `visit`, but the code of the console is loaded once. */
  walk(options?: PageOptions): Promise<Walk>
  /** Visits the page in both themes and two widths; fails on any fault or violation of axe-core. */
  looksRight(path: string, options?: PageOptions): Promise<void>
  /**
   * Visits the page, and fails if it needs more requests or bytes than allowed, or shows fewer than `minRows` rows
   * (elements that match `rows`). Returns the measurements. Repeated requests of pages that poll count for bytes only.
   */
  keepsBounds(path: string, minRows?: number, rows?: string): Promise<Taken>
}

export interface Walk {
  readonly page: Page
  /** Loads a page of the console, waits until it has loaded, and returns its problems, a line each. */
  to(path: string): Promise<string[]>
  close(): Promise<void>
}

export interface Taken {
  readonly requests: number
  /** Of the answers, compressed. */
  readonly bytes: number
  /** Time until the page shows more than placeholders. */
  readonly firstContentMs: number
  /** Rendered rows: long tables render those in sight. */
  readonly rows: number
}

/** Something to read below the heading: a table, a list, a line of text. */
const HAS_CONTENT = `document.querySelector('main h1') !== null &&
  document.querySelector('main :is(table, canvas, ul, ol, dl, .empty, .card, .lead, .looks, .verdict)') !== null`

/** Rows of tables. */
const ROWS = 'main tbody tr[data-index]'

/** Starts the broker and the browser before the tests of a file, and stops them after it. */
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
    async walk(options = {}) {
      const origins = [broker.url, ...(options.origins ?? [])]
      const { page, problems } = await openPage(browser, 'about:blank', { ...options, origins })
      return {
        page,
        async to(path) {
          const before = problems.length
          await page.goto(`${broker.url}/console/${path}`)
          const late = await settled(page).then(
            () => [],
            ({ message }: Error) => [message],
          )
          return [...problems.slice(before), ...late]
        },
        close: () => page.context().close(),
      }
    },
    async looksRight(path, options = {}) {
      const opened = await visit(path, options)
      const short = path.replaceAll(/sha256:([0-9a-f]{8})[0-9a-f]+/g, '$1').replaceAll(/[^\w.-]+/g, '-')
      await looksRight(opened.page, short || 'start')
      await opened.close()
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

/** The trimmed texts of all matching elements. */
export const textsOf = async (page: Page, selector: string): Promise<string[]> =>
  (await page.locator(selector).allInnerTexts()).map((text) => text.trim())

/** The rendered text of an element. */
export const textOf = (page: Page, selector: string): Promise<string> =>
  evaluate(page, `document.querySelector(${JSON.stringify(selector)}).innerText`)

/** The number of rows of a table, as written above it. */
export async function rowsOf(page: Page, table: string): Promise<number> {
  const text = await page.getByLabel(table, { exact: true }).locator('.table-tools').first().textContent()
  return Number(/^([\d,]+) row/.exec(text!.trim())![1]!.replaceAll(',', ''))
}
