/** Records of which every text is hostile, on all pages: all of it is shown as text, and no page gets wider. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { depth } from '../support/depth.ts'
import { evaluate, noBrowser } from './support/browser.ts'
import { HOSTILE_TEXTS, hostileWorkloads, nameTextOf, SLASH } from './support/seed/hostile.ts'
import { seededDatabase } from './support/seeded.ts'
import { visits, type Walk } from './support/visit.ts'

const skip = noBrowser
const site = visits(() => seededDatabase('hostile'))
const LISTS = ['flows', 'workloads', 'vulnerabilities', 'images', 'packages', 'nodes', 'denials', 'findings']
const OTHER_LISTS = ['', 'map', 'focus', 'policy', 'health', 'search']
const PARTS = ['images', 'containers', 'nodes', 'workloads']
const IMAGE = ['', 'vulnerabilities', 'sbom', 'signatures', 'files']
const DOSSIER = ['', 'flows', 'vulnerabilities', 'seccomp', 'runtime', 'compute', 'trust', 'changes']
const POLICY = ['', 'admission', 'seccomp', 'export']
const WIDTHS_PX = depth([320], [320, 1_280])
const ALL_LABELS = Object.keys(HOSTILE_TEXTS)
const LABELS = depth(['markup', 'long'], ALL_LABELS)
/** What of a long text is surely in view. */
const BEGINNING_CHARS = 30
const segment = encodeURIComponent
const tabbed = (path: string, tab: string) => `${path}${tab && `?tab=${tab}`}`

/** In the page: what others have put into it, and names that turn around what stands beside them. */
const INSPECT = `(() => {
  const FOREIGN = 'img, picture, svg, math, iframe, frame, object, embed, applet, audio, video, base, style, script'
  const OWN = 'head > script[type=module][src^="/console/assets/"]'
  const SAFE = ['http:', 'https:', 'blob:']
  const ADDRESSES = ['href', 'src', 'action', 'formaction', 'xlink:href', 'data', 'srcdoc', 'poster', 'background']
  const found = []
  const short = (text) => text.trim().slice(0, 60)
  for (const element of document.querySelectorAll(FOREIGN))
    if (!element.matches(OWN)) found.push('foreign element ' + short(element.outerHTML))
  for (const element of document.querySelectorAll('*'))
    for (const { name, value } of element.attributes) {
      if (name.startsWith('on')) found.push('handler ' + short(element.outerHTML))
      if (!ADDRESSES.includes(name)) continue
      if (!URL.canParse(value, document.baseURI) || !SAFE.includes(new URL(value, document.baseURI).protocol))
        found.push('address ' + short(value))
    }
  if (typeof window.hostile !== 'undefined') found.push('a hostile text was run')
  const px = document.documentElement.scrollWidth - document.documentElement.clientWidth
  if (px > 0) found.push(px + ' px wider than the window')

  const isolates = (element) => {
    const { display, unicodeBidi } = getComputedStyle(element)
    return !['inline', 'contents'].includes(display) || /isolate|plaintext/.test(unicodeBidi)
  }
  const isInline = (element) => ['inline', 'contents'].includes(getComputedStyle(element).display)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (!/[\\u202e\\u2066]/.test(node.data) || !node.parentElement.checkVisibility()) continue
    let around = node.parentElement
    while (!isolates(around)) around = around.parentElement
    const isAlone = around.textContent.trim() === node.data.trim()
    if (!isAlone) found.push((isInline(around) ? 'loose in inline ' : 'not isolated in ') + around.tagName + '.' + around.className + ' ' + short(around.outerHTML) + ' ::: ' + short(node.data) + ' ::: ' + short(around.textContent))
  }
  return { found, text: document.body.innerText }
})()`

interface Inspected {
  readonly found: readonly string[]
  readonly text: string
}

interface Expected {
  /** Labels of which the name, or else the whole text, is on the page. */
  readonly shows?: readonly string[]
  /** The status with which the broker refuses what the page asks. */
  readonly refusal?: 400 | 404
}

const plain = (text: string) => text.replaceAll(/\s+/g, ' ').trim()
const beginning = (text: string) => plain(plain(text).slice(0, BEGINNING_CHARS))
const isShown = (text: string, label: string) =>
  [nameTextOf(label), HOSTILE_TEXTS[label]!].some((one) => plain(text).includes(beginning(one)))

const walks = new Map<number, Promise<Walk>>()
const wrong: string[] = []
after(async () => {
  for (const walk of walks.values()) await (await walk).close()
})

async function isText(path: string, { shows = [], refusal }: Expected = {}): Promise<void> {
  for (const width of WIDTHS_PX) {
    if (!walks.has(width)) walks.set(width, site.walk({ width }))
    const walk = await walks.get(width)!
    const t = performance.now()
    const problems = await walk.to(path)
    const t2 = performance.now()
    const { found, text } = await evaluate<Inspected>(walk.page, INSPECT)
    process.stderr.write(`${Math.round(t2 - t)} ${Math.round(performance.now() - t2)} ${width} ${path.slice(0, 100)}\n`)
    const hidden = shows.filter((label) => !isShown(text, label)).map((label) => `does not show ${label}`)
    for (const one of new Set([...problems, ...found, ...hidden]))
      process.stderr.write(`    ${one}\n`)
  }
}

test('lists', { skip }, async () => {
  for (const path of [...LISTS, ...OTHER_LISTS]) await isText(path, { shows: ALL_LABELS })
  for (const part of PARTS) await isText(`health?part=${part}`, { shows: ALL_LABELS })
})

test('workloads', { skip }, async () => {
  for (const { label, namespace, kind, name } of hostileWorkloads()) {
    if (!LABELS.includes(label)) continue
    const path = [namespace, kind, name].map(segment).join('/')
    const shows = [label]
    for (const tab of DOSSIER) await isText(tabbed(`workload/${path}`, tab), { shows })
    for (const tab of POLICY) await isText(tabbed(`policy/${path}`, tab), { shows })
    await isText(`policy/${segment(namespace)}`, { shows })
    await isText(`focus/${path}`, { shows })
    await isText(`map?open=${segment(namespace)}`, { shows })
    await isText(`flows?workload=${segment(`${namespace}/${kind}/${name}`)}`, { shows })
    await isText(`search?q=${segment(HOSTILE_TEXTS[label]!.slice(0, 200))}`, { shows })
  }
})

test('flows', { skip }, async () => {
  const { items } = await site.get<JsonAnswer<'/flows'>>('/flows?limit=100')
  assert.ok(items.length > 5)
  for (const { uuid, time_stamp } of items)
    await isText(`flows?flow=${uuid}&at=${time_stamp}`)
})

test('images', { skip }, async () => {
  const { items } = await site.get<JsonAnswer<'/images'>>('/images')
  assert.ok(items.length > 1)
  for (const image of items) {
    process.stderr.write(`${JSON.stringify(image).slice(0, 300)}\n`)
    for (const tab of IMAGE) await isText(tabbed(`image/${image.digest}`, tab), { shows: ALL_LABELS })
  }
  await isText(`image/${items[0]!.digest}/diff/${items[1]!.digest}`)
})

test('vulnerabilities, packages and nodes', { skip }, async () => {
  const vulnerabilities = await site.get<JsonAnswer<'/vulnerabilities'>>('/vulnerabilities')
  for (const { id } of vulnerabilities.items) await isText(`vulnerability/${segment(id)}`)
  const names = new Set(vulnerabilities.items.flatMap(({ packages }) => packages))
  for (const name of names) await isText(`packages?name=${segment(name)}`)
  const { nodes } = await site.get<JsonAnswer<'/node/status'>>('/node/status')
  assert.ok(nodes.length > 0)
  for (const { node } of nodes) for (const tab of ['', 'pods']) await isText(tabbed(`node/${segment(node)}`, tab))
})
