/** Records whose texts are all hostile, on all pages: they are shown as text, and no page gets wider. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { evaluate, noBrowser, overflowPx } from './support/browser.ts'
import { HOSTILE_TEXTS, hostileWorkloads } from './support/seed/hostile.ts'
import { seededDatabase } from './support/seeded.ts'
import { REFUSED, textOf, visits } from './support/visit.ts'

const skip = noBrowser
const site = visits(() => seededDatabase('hostile'))
const LISTS = ['', 'vulnerabilities', 'images', 'denials', 'findings', 'nodes', 'health']
const PARTS = ['images', 'containers', 'nodes', 'workloads']
const TABS = ['', '?tab=vulnerabilities', '?tab=sbom', '?tab=signatures', '?tab=files']
const DOSSIER = ['', 'flows', 'vulnerabilities', 'seccomp', 'runtime', 'compute', 'trust', 'changes']
const WIDTHS = depth([320], [1_280, 320])
/** The hostile texts that differ most. */
const LABELS = depth(['markup', 'bidi', 'long'], Object.keys(HOSTILE_TEXTS))
const segment = encodeURIComponent

/** Workloads with these texts as names. The broker refuses a slash in a name, as Kubernetes does. */
function workloads(): { label: string; namespace: string; path: string; from: string }[] {
  const labels = Object.keys(HOSTILE_TEXTS)
  return hostileWorkloads().flatMap(({ namespace, kind, name }, i) => {
    const isAsked = LABELS.includes(labels[i]!) && ![namespace, kind, name].some((one) => one.includes('/'))
    const path = [namespace, kind, name].map(segment).join('/')
    return isAsked ? [{ label: labels[i]!, namespace, path, from: segment(`${namespace}/${kind}/${name}`) }] : []
  })
}

async function isText(path: string): Promise<void> {
  for (const width of WIDTHS) {
    const { page, problems } = await site.visit(path, { width, allowed: REFUSED })
    assert.equal(await evaluate(page, 'typeof window.hostile'), 'undefined', path)
    assert.equal(await page.locator('main img, main script, main iframe').count(), 0, path)
    assert.equal(await page.locator('main a[href^="javascript:"]').count(), 0, path)
    assert.ok((await overflowPx(page)) <= 0, `${path} is wider than ${width} px`)
    assert.deepEqual([...problems], [], path)
    await page.context().close()
  }
}

test('workloads: the list, and all tabs of the dossier', { skip: skip || onlyFull }, async () => {
  await isText('workloads')
  const asked = workloads()
  assert.ok(asked.length >= LABELS.length - 2)
  for (const { path } of asked) for (const tab of DOSSIER) await isText(`workload/${path}${tab && `?tab=${tab}`}`)
})

test('flows with a row in detail, the map, the focus, policies and the search', {
  skip: skip || onlyFull,
}, async () => {
  const { items } = await site.get<JsonAnswer<'/flows'>>('/flows?limit=20')
  assert.ok(items.length > 5)
  await isText('flows')
  for (const { uuid, time_stamp } of items.slice(0, depth(3, 20))) await isText(`flows?flow=${uuid}&at=${time_stamp}`)
  for (const { namespace, path, from } of workloads()) {
    await isText(`map?open=${segment(namespace)}`)
    await isText(`focus/${path}`)
    await isText(`policy/${path}`)
    await isText(`flows?workload=${from}`)
  }
  for (const label of LABELS) await isText(`search?q=${segment(HOSTILE_TEXTS[label]!.slice(0, 200))}`)
})

test('the text itself is on the page, and does not reorder the text beside it', { skip }, async () => {
  const { page } = await site.visit('vulnerabilities', { allowed: REFUSED })
  assert.ok((await textOf(page, 'main')).includes('<img src=x onerror='))
  const bidi = await evaluate<string>(page, "getComputedStyle(document.querySelector('main td a')).unicodeBidi")
  assert.equal(bidi, 'isolate')
  await page.context().close()
})

test('lists', { skip }, async () => {
  for (const path of [...LISTS, ...PARTS.map((part) => `health?part=${part}`)]) await isText(path)
})

test('images, with all their parts, and two compared', { skip: skip || onlyFull }, async () => {
  const { items } = await site.get<JsonAnswer<'/images'>>('/images')
  assert.ok(items.length > 1)
  for (const { digest } of items.slice(0, depth(3, items.length)))
    for (const tab of TABS) await isText(`image/${digest}${tab}`)
  await isText(`image/${items[0]!.digest}/diff/${items[1]!.digest}`)
})

test('vulnerabilities, packages and nodes', { skip }, async () => {
  const vulnerabilities = await site.get<JsonAnswer<'/vulnerabilities'>>('/vulnerabilities')
  for (const { id } of vulnerabilities.items.slice(0, depth(2, 5)))
    await isText(`vulnerability/${encodeURIComponent(id)}`)
  const names = new Set(vulnerabilities.items.flatMap(({ packages }) => packages))
  for (const name of [...names].slice(0, depth(2, 5))) await isText(`packages?name=${encodeURIComponent(name)}`)
  const { nodes } = await site.get<JsonAnswer<'/node/status'>>('/node/status')
  assert.ok(nodes.length > 0)
  for (const { node } of nodes.slice(0, depth(2, 5)))
    for (const tab of ['', '?tab=pods']) await isText(`node/${encodeURIComponent(node)}${tab}`)
})
