/** A seeded cluster with a broker and a browser, for tests of the pages with lists. */
import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import type { Browser, Page, Request } from 'playwright-core'
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

/** Limits for a page, on large clusters too. */
const MAX_REQUESTS = 6
const MAX_BYTES = 300_000
const NARROW_PX = 320
const QUIET_LOOKS = 4
const LOOK_MS = 60
const LONGEST_MS = 15_000

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
      const asked = new Set<Request>()
      page.on('request', (request) => asked.add(request))
      const answered = (request: Request) => void asked.delete(request)
      page.on('requestfinished', answered).on('requestfailed', answered)
      return {
        page,
        async to(path) {
          const before = problems.length
          await page.goto(`${broker.url}/console/${path}`)
          const isQuiet = await quiet(page, () => asked.size === 0)
          return [...problems.slice(before), ...(isQuiet ? [] : [`loads for more than ${LONGEST_MS} ms`])]
        },
        close: () => page.context().close(),
      }
    },
    async looksRight(path, options = {}) {
      for (const [theme, width] of [
        ['light', 1_280],
        ['dark', NARROW_PX],
      ] as const) {
        const opened = await visit(path, { theme, width, ...options })
        const short = path.replaceAll(/sha256:([0-9a-f]{8})[0-9a-f]+/g, '$1').replaceAll(/[^\w.-]+/g, '-')
        await screenshot(opened.page, `${short || 'start'}-${theme}-${width}`)
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

/** Waits until nothing is loading. A loaded part may start to load another one. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor()
  await page.waitForLoadState('networkidle')
  for (let quiet = 0; quiet < QUIET_LOOKS; ) {
    await page.waitForTimeout(LOOK_MS)
    const isLoading = await evaluate<boolean>(page, `document.querySelector('.loading') !== null`)
    quiet = isLoading ? 0 : quiet + 1
  }
}

/** Whether a page in view has a heading, and no part that is loading, after two frames. */
const IS_DRAWN = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  done(document.querySelector('h1') !== null && document.querySelector('.loading') === null))))`

/**
 * As `settled`, sooner: for pages of which all requests are known. Each look waits until the page has drawn twice.
 * False if it loads for too long.
 */
async function quiet(page: Page, isAnswered: () => boolean): Promise<boolean> {
  const until = performance.now() + LONGEST_MS
  for (let looks = 0; looks < QUIET_LOOKS; ) {
    const isDrawn = await evaluate<boolean>(page, IS_DRAWN)
    looks = isDrawn && isAnswered() ? looks + 1 : 0
    if (performance.now() > until) return false
  }
  return true
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
