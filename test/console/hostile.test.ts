/** Records of which every text is hostile, on all pages: all of it is shown as text, and no page gets wider. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { depth } from '../support/depth.ts'
import { evaluate, noBrowser } from './support/browser.ts'
import { HOSTILE_TEXTS, hostileWorkloads, idOf, nameTextOf } from './support/seed/hostile.ts'
import { seededDatabase } from './support/seeded.ts'
import { visits, type Walk } from './support/visit.ts'

const skip = noBrowser
const site = visits(() => seededDatabase('hostile'))
const LISTS = ['flows', 'workloads', 'vulnerabilities', 'images', 'nodes', 'denials', 'findings', '', 'map']
/** These show no name by themselves. */
const OTHERS = ['packages', 'focus', 'policy', 'health', 'search']
const HEALTH = ['images', 'containers', 'nodes', 'workloads']
const IMAGE = ['', 'vulnerabilities', 'sbom', 'signatures', 'files']
const DOSSIER = ['', 'flows', 'vulnerabilities', 'seccomp', 'runtime', 'compute', 'trust', 'changes']
const NODE = ['', 'pods']
const WIDTHS_PX = depth([320], [320, 1_280])
const ALL_LABELS = Object.keys(HOSTILE_TEXTS)
const LABELS = depth(['markup', 'long'], ALL_LABELS)
/** This much of a long text is surely in view. */
const BEGINNING_CHARS = 30
const segment = encodeURIComponent
const tabbed = (path: string, tab: string) => `${path}${tab && `?tab=${tab}`}`
/** The workloads whose pages are visited. */
const workloads = () => hostileWorkloads().filter(({ label }) => LABELS.includes(label))

/** The part of a name that a field accepts. */
const firstLine = (label: string) => nameTextOf(label).split('\n')[0]!.slice(0, BEGINNING_CHARS)

interface Visit {
  readonly path: string
  /** Labels of which the name, or else the whole text, is on the page. */
  readonly shows?: readonly string[]
  /** The status with which the broker refuses what the page asks; no other refusal, and no failure, may come. */
  readonly refusal?: number | null
}

/**
 * In the page: elements, handlers and addresses that others have put into it, and names that turn around what stands
 * beside them, since no element isolates them alone. A sentence that is one text may turn around itself.
 */
const INSPECT = `(() => {
  const FOREIGN = 'img, picture, svg, math, iframe, frame, object, embed, applet, audio, video, base, style, script'
  const OWN = 'head > script[type=module][src^="/console/assets/"]'
  const ADDRESSES = ['href', 'src', 'action', 'formaction', 'xlink:href', 'data', 'srcdoc', 'poster', 'background']
  const SAFE = ['http:', 'https:', 'blob:']
  const faults = []
  const short = (text) => text.trim().slice(0, 80)
  const isSafe = (url) => URL.canParse(url, document.baseURI) && SAFE.includes(new URL(url, document.baseURI).protocol)
  for (const element of document.querySelectorAll('*')) {
    if (element.matches(FOREIGN) && !element.matches(OWN)) faults.push('foreign ' + short(element.outerHTML))
    for (const { name, value } of element.attributes) {
      if (name.startsWith('on')) faults.push('handler ' + short(element.outerHTML))
      if (ADDRESSES.includes(name) && !isSafe(value)) faults.push('address ' + short(value))
    }
  }
  if (typeof window.hostile !== 'undefined') faults.push('a text was run')
  const root = document.documentElement
  if (root.scrollWidth > root.clientWidth) faults.push((root.scrollWidth - root.clientWidth) + ' px too wide')

  const isIsolated = ({ display, unicodeBidi }) =>
    !['inline', 'contents'].includes(display) || /isolate|plaintext/.test(unicodeBidi)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
    if (!/[\\u202e\\u2066]/.test(text.data) || !text.parentElement.checkVisibility()) continue
    let around = text.parentElement
    while (!isIsolated(getComputedStyle(around))) around = around.parentElement
    if (around.textContent.trim() !== text.data.trim()) faults.push('not isolated in ' + short(around.outerHTML))
  }
  const fields = [...document.querySelectorAll('input, textarea')].map(({ value }) => value)
  return { faults, text: [document.body.innerText, ...fields].join('\\n') }
})()`

interface Inspected {
  readonly faults: readonly string[]
  /** As it is rendered, and what is in fields. */
  readonly text: string
}

/** Pages, fields and the broker keep different blanks and control characters. */
const withoutBlanks = (text: string) => text.replaceAll(/[\s\p{Cc}]+/gu, '')
const isShown = (text: string, label: string) =>
  [nameTextOf(label), HOSTILE_TEXTS[label]!].some((one) =>
    withoutBlanks(text).includes(withoutBlanks(one.slice(0, BEGINNING_CHARS))),
  )

async function faultsOf({ page }: Walk, shows: readonly string[]): Promise<string[]> {
  const { faults, text } = await evaluate<Inspected>(page, INSPECT)
  return [...faults, ...shows.filter((label) => !isShown(text, label)).map((label) => `does not show ${label}`)]
}

const walks = new Map<number, Promise<Walk>>()
after(async () => {
  for (const walk of walks.values()) await (await walk).close()
})
function walkAt(width: number): Promise<Walk> {
  const walk = walks.get(width) ?? site.walk({ width })
  walks.set(width, walk)
  return walk
}

const STATUS = /^answer (\d+): /
const FAILED = /^console error: Failed to load resource: the server responded with a status of (\d+) /

/** What went wrong beside the refusal of this status, which has to come. */
function unexpected(problems: readonly string[], refusal: number | null): string[] {
  const isRefusal = (problem: string) => Number((STATUS.exec(problem) ?? FAILED.exec(problem))?.[1]) === refusal
  const others = problems.filter((problem) => !isRefusal(problem))
  return refusal === null || problems.some(isRefusal) ? others : [...others, `was not refused with ${refusal}`]
}

async function areText(pages: readonly Visit[]): Promise<void> {
  assert.ok(pages.length > 0)
  const faults: string[] = []
  for (const width of WIDTHS_PX)
    for (const { path, shows = [], refusal = null } of pages) {
      const walk = await walkAt(width)
      const problems = unexpected(await walk.to(path), refusal)
      const found = new Set([...problems, ...(await faultsOf(walk, shows))])
      faults.push(...[...found].map((fault) => `${path} at ${width} px: ${fault}`))
    }
  assert.deepEqual(faults, [])
}

test('lists', { skip }, () =>
  areText([
    ...LISTS.map((path) => ({ path, shows: ALL_LABELS })),
    ...OTHERS.map((path) => ({ path })),
    ...HEALTH.map((part) => ({ path: `health?part=${part}` })),
  ]),
)

test('workloads: the dossier, policies, the focus, the map, flows and the search', { skip }, () =>
  areText(
    workloads().flatMap(({ label, namespace, kind, name }) => {
      const path = [namespace, kind, name].map(segment).join('/')
      const shows = [label]
      // The broker refuses a slash in most addresses, and policies for names that Kubernetes does not have.
      const refusal = name.includes('/') ? 400 : null
      const policies = [
        { path: `policy/${path}`, refusal: 409 },
        { path: `policy/${segment(namespace)}`, refusal: 409 },
        { path: `policy/${path}?tab=admission` },
        { path: `policy/${path}?tab=seccomp` },
        { path: `policy/${path}?tab=export`, refusal },
      ]
      return [
        ...DOSSIER.map((tab) => ({ path: tabbed(`workload/${path}`, tab), shows, refusal })),
        ...policies.map((policy) => ({ ...policy, shows })),
        { path: `focus/${path}`, shows, refusal },
        { path: `map?open=${segment(namespace)}`, shows },
        { path: `flows?workload=${segment(`${namespace}/${kind}/${name}`)}`, shows, refusal },
        { path: `search?q=${segment(nameTextOf(label).slice(0, 200))}`, shows },
      ]
    }),
  ),
)

test('suggestions of the search', { skip }, async () => {
  for (const width of WIDTHS_PX) {
    const walk = await walkAt(width)
    for (const label of LABELS) {
      await walk.to('nodes')
      await walk.page.getByRole('combobox', { name: 'Search' }).fill(firstLine(label))
      await walk.page.locator('.search-box [role=option]').first().waitFor()
      assert.deepEqual(await faultsOf(walk, [label]), [], `${label} at ${width} px`)
    }
  }
})

test('flows in detail', { skip }, async () => {
  const { items } = await site.get<JsonAnswer<'/flows'>>('/flows?limit=100')
  const ofLabel = (label: string) => items.filter(({ uuid }) => uuid?.startsWith(`${ALL_LABELS.indexOf(label)}-`))
  await areText(
    LABELS.flatMap((label) =>
      ofLabel(label)
        .slice(0, depth(1, 3))
        .map(({ uuid, time_stamp: at, pod_name: pod }) => ({
          refusal: pod?.includes('/') ? 400 : null,
          path: `flows?flow=${segment(uuid!)}&at=${at}`,
          shows: [label],
        })),
    ),
  )
})

test('images, with all their parts, and two compared', { skip }, () => {
  const images = workloads()
  const [one, other] = images
  return areText([
    ...images.flatMap(({ label, digest }) =>
      IMAGE.map((tab) => ({ path: tabbed(`image/${digest}`, tab), shows: [label] })),
    ),
    { path: `image/${one!.digest}/diff/${other!.digest}`, shows: [one!.label, other!.label] },
  ])
})

test('vulnerabilities and packages', { skip }, async () => {
  const { items } = await site.get<JsonAnswer<'/vulnerabilities'>>('/vulnerabilities')
  await areText(
    LABELS.flatMap((label) => {
      const n = ALL_LABELS.indexOf(label)
      const found = items.find(({ id }) => id.startsWith(`${idOf(n, 0)} `))
      assert.ok(found, `a vulnerability of ${label}`)
      const shows = [label]
      return [
        { path: `vulnerability/${segment(found.id)}`, shows, refusal: 400 },
        { path: `vulnerability/${idOf(n, 1)}`, shows },
        { path: `packages?name=${segment(found.packages[0]!)}`, shows },
      ]
    }),
  )
})

test('nodes', { skip }, () =>
  areText(
    workloads().flatMap(({ label, node }) =>
      NODE.map((tab) => ({ path: tabbed(`node/${segment(node)}`, tab), shows: [label] })),
    ),
  ),
)
