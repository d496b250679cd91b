/** Debian's Chromium, driven by playwright-core. Any fault on a page fails its test. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { AxeResults } from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core'
import { depth } from '../../support/depth.ts'

/**
 * The headless shell is the same engine without the browser around it: a page in a profile of its own takes 0.6 s of
 * processor time, not 1.5.
 */
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']
const LAUNCH_MS = 60_000
const HEIGHT_PX = 900
const DEFAULT_WIDTH_PX = 1_280
/** The default width at a zoom of 200 %. */
const ZOOMED_PX = DEFAULT_WIDTH_PX / 2
const NARROW_PX = 320
const LONGEST_MS = 30_000
const QUIET_LOOKS = 4
const SCREENSHOTS = process.env.SCREENSHOTS ?? fileURLToPath(new URL('../screenshots', import.meta.url))

const ARGS = [
  // Chromium's sandbox does not run as root, the user of tests in a container.
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
  ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--hide-scrollbars'],
]

/** The Chromium of this machine: CHROMIUM, else the first of `NAMES` on the PATH. */
export function findChromium(): string | null {
  const { CHROMIUM } = process.env
  if (CHROMIUM !== undefined && CHROMIUM !== '') return existsSync(CHROMIUM) ? CHROMIUM : null
  for (const name of NAMES) {
    const { status, stdout } = spawnSync('which', [name], { encoding: 'utf8' })
    if (status === 0) return stdout.trim()
  }
  return null
}

/** The reason why browser tests cannot run here, for the option `skip`; false if they can. */
export const noBrowser: string | false =
  findChromium() === null
    ? 'no Chromium: install the package chromium-headless-shell or chromium, or set CHROMIUM'
    : false

/** Starts the browser; it ends with the test file. */
export async function launch(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === null) throw new Error(String(noBrowser))
  const browser = await chromium.launch({ executablePath, args: ARGS, timeout: LAUNCH_MS })
  opened.add(browser)
  return browser
}

const opened = new Set<Browser>()
// Registered here, since a hook inside a test would close the browser with that test.
after(async () => {
  for (const browser of opened) await browser.close()
  opened.clear()
})

export interface PageOptions {
  readonly theme?: 'light' | 'dark'
  /** In CSS pixels. */
  readonly width?: number
  readonly height?: number
  readonly reducedMotion?: boolean
  readonly forcedColors?: boolean
  /** 2 shows the page as a zoom of 200 % does: half as many CSS pixels, each twice as wide. */
  readonly zoom?: number
  /** UTC by default, so that screenshots are reproducible. */
  readonly timezone?: string
  /** Patterns of expected faults, which are ignored. */
  readonly allowed?: readonly RegExp[]
  /** Other origins that the page may request, for tests of the harness. */
  readonly origins?: readonly string[]
}

export interface OpenPage {
  readonly page: Page
  /** The faults so far, one per line. */
  readonly problems: readonly string[]
  /** Fails if there was a fault. Call it at the end of a test, before the page is closed. */
  check(): void
  /** Checks, and closes the page with its storage. */
  close(): Promise<void>
}

/** Requests of each page without an answer. The answer of a live follow does not end. */
const unanswered = new WeakMap<Page, Set<Request>>()

const REPORT_VIOLATIONS = `
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
    noteViolation({ directive: effectiveDirective, blocked: blockedURI }))`

interface Violation {
  readonly directive: string
  readonly blocked: string
}

/**
 * Opens a page in a browser profile of its own. `check` then finds every console error and warning, uncaught error,
 * violation of the content security policy, failed request, answer from 400 on, and request to another origin.
 */
export async function openPage(browser: Browser, url: string, options: PageOptions = {}): Promise<OpenPage> {
  const { theme = 'light', width = DEFAULT_WIDTH_PX, height = HEIGHT_PX, zoom = 1, timezone = 'UTC' } = options
  const context = await browser.newContext({
    viewport: { width: Math.round(width / zoom), height: Math.round(height / zoom) },
    deviceScaleFactor: zoom,
    ...{ colorScheme: theme, timezoneId: timezone, locale: 'en-GB', serviceWorkers: 'block', acceptDownloads: true },
    reducedMotion: options.reducedMotion ? 'reduce' : 'no-preference',
    forcedColors: options.forcedColors ? 'active' : 'none',
  })
  const page = await context.newPage()
  const problems: string[] = []
  const note = (problem: string) => {
    if (!options.allowed?.some((pattern) => pattern.test(problem))) problems.push(problem)
  }
  await watch(context, page, [new URL(url).origin, ...(options.origins ?? [])], note)
  await page.goto(url)
  const check = () => assert.deepEqual(problems, [], `problems on ${page.url()}`)
  return {
    page,
    problems,
    check,
    async close() {
      await context.close()
      check()
    },
  }
}

async function watch(
  context: BrowserContext,
  page: Page,
  origins: readonly string[],
  note: (problem: string) => void,
): Promise<void> {
  await context.exposeBinding('noteViolation', (_source, { directive, blocked }: Violation) =>
    note(`content security policy: ${directive} blocked ${blocked}`),
  )
  await context.addInitScript({ content: REPORT_VIOLATIONS })
  const asked = new Set<Request>()
  unanswered.set(page, asked)
  page.on('request', (request) => asked.add(request))
  page.on('response', (response) => asked.delete(response.request()))
  page.on('requestfailed', (request) => asked.delete(request))
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) note(`console ${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => note(`uncaught: ${error.message}`))
  page.on('crash', () => note('the page crashed'))
  context.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (!['data:', 'blob:'].includes(protocol) && !origins.includes(origin))
      note(`request to another origin: ${request.url()}`)
  })
  context.on('requestfailed', (request) => {
    // The page aborted its own request, for example when it was left.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED')
      note(`request failed: ${request.url()} ${request.failure()?.errorText}`)
  })
  context.on('response', (response) => {
    if (response.status() >= 400) note(`answer ${response.status()}: ${response.url()}`)
  })
}

const TWO_FRAMES = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))'
/** Whether the page has a heading, and no part that is loading. */
const IS_LOADED = `document.querySelector('h1') !== null && document.querySelector('.loading') === null`

/**
 * Waits until a page has loaded: a few times in a row, it was drawn and all requests were answered. A loaded part may
 * start to load another one. Fails after half a minute.
 */
export async function settled(page: Page): Promise<void> {
  const until = performance.now() + LONGEST_MS
  for (let looks = 0; looks < QUIET_LOOKS; ) {
    const isLoaded = await evaluate<boolean>(page, `${TWO_FRAMES}.then(() => ${IS_LOADED})`)
    looks = isLoaded && unanswered.get(page)!.size === 0 ? looks + 1 : 0
    if (performance.now() > until) throw new Error(`${page.url()} loads for more than ${LONGEST_MS} ms`)
  }
}

let axeSource: string | undefined

/** The rules that a page must follow. A disabled rule needs a reason. */
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/**
 * The value of an expression in the page, evaluated by the debugger: `page.evaluate` of playwright uses `eval`, which
 * the content security policy of the console may refuse.
 */
export async function evaluate<T>(page: Page, expression: string): Promise<T> {
  const session = await page.context().newCDPSession(page)
  try {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      ...{ expression, awaitPromise: true, returnByValue: true },
    })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value as T
  } finally {
    await session.detach()
  }
}

/** The violations that axe-core finds, one line per element. */
export async function axeViolations(page: Page): Promise<string[]> {
  axeSource ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await evaluate(page, `${axeSource}; undefined`)
  const options = { runOnly: { type: 'tag', values: AXE_TAGS }, resultTypes: ['violations'] }
  const found = await evaluate<string>(
    page,
    `axe.run(document, ${JSON.stringify(options)}).then((results) => JSON.stringify(results.violations))`,
  )
  const violations = JSON.parse(found) as AxeResults['violations']
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary ?? ''}`),
  )
}

/** Overflow of the page beyond its window, in CSS pixels. */
export const overflowPx = (page: Page): Promise<number> =>
  evaluate(page, 'document.documentElement.scrollWidth - document.documentElement.clientWidth')

/** Each theme and each width at least once; with TEST_DEPTH=full, each width in each theme. */
const LOOKS: readonly { theme: 'light' | 'dark'; width: number }[] = depth(
  [
    { theme: 'light', width: DEFAULT_WIDTH_PX },
    { theme: 'dark', width: NARROW_PX },
  ],
  (['light', 'dark'] as const).flatMap((theme) => [DEFAULT_WIDTH_PX, NARROW_PX].map((width) => ({ theme, width }))),
)

/**
 * Shows a loaded page in both themes, wide and narrow: axe-core finds no violation, and nothing is wider than the
 * window. Stores screenshots that begin with the name.
 */
export async function looksRight(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()!
  for (const { theme, width } of LOOKS) {
    const look = `${name}-${theme}-${width}`
    await page.emulateMedia({ colorScheme: theme })
    await page.setViewportSize({ ...size, width })
    await evaluate(page, `${TWO_FRAMES}.then(() => undefined)`)
    await screenshot(page, look)
    assert.deepEqual(await axeViolations(page), [], look)
    assert.ok((await overflowPx(page)) <= 0, `${look} is wider than the window`)
  }
  await page.setViewportSize({ ...size, width: ZOOMED_PX })
  await evaluate(page, `${TWO_FRAMES}.then(() => undefined)`)
  assert.ok((await overflowPx(page)) <= 0, `${name} is wider than the window at a zoom of 200 %`)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(size)
}

/** Stores a picture of the window as `<name>.png` in test/console/screenshots, or in the folder SCREENSHOTS. */
export async function screenshot(page: Page, name: string, { fullPage = false } = {}): Promise<string> {
  mkdirSync(SCREENSHOTS, { recursive: true })
  const path = join(SCREENSHOTS, `${name}.png`)
  await page.screenshot({ path, fullPage, animations: 'disabled', caret: 'hide' })
  return path
}
