/** Records of which every text is hostile, on the pages that list things: all of it is text, and no page gets wider. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { evaluate, noBrowser, overflowPx } from './support/browser.ts'
import { seededDatabase } from './support/seeded.ts'
import { REFUSED, visits } from './support/visit.ts'

const skip = noBrowser
const site = visits(() => seededDatabase('hostile'))
const LISTS = ['', 'vulnerabilities', 'images', 'denials', 'findings', 'nodes', 'health']
const PARTS = ['images', 'containers', 'nodes', 'workloads']
const TABS = ['', '?tab=vulnerabilities', '?tab=sbom', '?tab=signatures', '?tab=files']

async function isText(path: string): Promise<void> {
  for (const width of [1_280, 320]) {
    const { page, problems } = await site.visit(path, { width, allowed: REFUSED })
    assert.equal(await evaluate(page, 'typeof window.hostile'), 'undefined', path)
    assert.equal(await page.locator('main img, main script, main iframe').count(), 0, path)
    assert.equal(await page.locator('main a[href^="javascript:"]').count(), 0, path)
    assert.ok((await overflowPx(page)) <= 0, `${path} is wider than ${width} px`)
    assert.deepEqual([...problems], [], path)
    await page.context().close()
  }
}

test('lists', { skip }, async () => {
  for (const path of [...LISTS, ...PARTS.map((part) => `health?part=${part}`)]) await isText(path)
})

test('images, with all their parts, and two compared', { skip }, async () => {
  const { items } = await site.get<JsonAnswer<'/images'>>('/images')
  assert.ok(items.length > 1)
  for (const { digest } of items) for (const tab of TABS) await isText(`image/${digest}${tab}`)
  await isText(`image/${items[0]!.digest}/diff/${items[1]!.digest}`)
})

test('vulnerabilities, packages and nodes', { skip }, async () => {
  const vulnerabilities = await site.get<JsonAnswer<'/vulnerabilities'>>('/vulnerabilities')
  for (const { id } of vulnerabilities.items.slice(0, 5)) await isText(`vulnerability/${encodeURIComponent(id)}`)
  const names = new Set(vulnerabilities.items.flatMap(({ packages }) => packages))
  for (const name of [...names].slice(0, 5)) await isText(`packages?name=${encodeURIComponent(name)}`)
  const { nodes } = await site.get<JsonAnswer<'/node/status'>>('/node/status')
  assert.ok(nodes.length > 0)
  for (const { node } of nodes.slice(0, 5))
    for (const tab of ['', '?tab=pods']) await isText(`node/${encodeURIComponent(node)}${tab}`)
})
