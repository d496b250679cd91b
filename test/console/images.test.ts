/** Images, their contents, the differences between two, and the places of a package. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { noBrowser, settled } from './support/browser.ts'
import { IMAGES, LOG4J } from './support/seed/story.ts'
import { REFUSED, rowsOf, textOf, textsOf, visits } from './support/visit.ts'

const skip = noBrowser
const site = visits()
const { checkout, earlierCheckout, cardVault } = IMAGES

test('the list has the rows of the API, and a filter in the address', { skip }, async () => {
  const { items } = await site.get<JsonAnswer<'/images'>>('/images?namespace=shop&limit=500')
  const { page, close } = await site.visit('images?namespace=shop')
  assert.equal(await rowsOf(page, 'Images'), items.length)
  const shown = await textsOf(page, '.table-frame tbody tr td:first-child')
  assert.ok(shown.includes(`${checkout.repository}:${checkout.tag}`), shown.join())
  await close()
})

test('an image: its parts have the rows of the API', { skip }, async () => {
  const { digest } = checkout
  const findings = await site.get<JsonAnswer<'/images/{digest}/vulnerabilities'>>(
    `/images/${digest}/vulnerabilities?limit=500`,
  )
  const sbom = await site.get<JsonAnswer<'/images/{digest}/sbom'>>(`/images/${digest}/sbom?limit=500`)
  const runtime = await site.get<JsonAnswer<'/images/{digest}/runtime'>>(`/images/${digest}/runtime?limit=500`)
  const { page, close } = await site.visit(`image/${digest}`)
  assert.equal(await textOf(page, 'h1'), `${checkout.repository}:${checkout.tag}`)
  for (const [tab, table, rows] of [
    ['Vulnerabilities', 'Findings', findings.items.length],
    ['SBOM', 'Components', sbom.items.length],
    ['Files that ran', 'Files that ran', runtime.entries.length],
  ] as const) {
    await page.getByRole('navigation', { name: 'Parts of the image' }).getByRole('link', { name: tab }).click()
    await settled(page)
    assert.equal(await rowsOf(page, table), rows, table)
    assert.ok(rows > 0, table)
  }
  await close()
})

test('components can be searched, and documents downloaded', { skip }, async () => {
  const { page, close } = await site.visit(`image/${checkout.digest}?tab=sbom`)
  await page.getByLabel('Search in it').fill('log4j')
  assert.equal(await rowsOf(page, 'Components'), 1)
  assert.equal(new URL(page.url()).searchParams.get('q'), 'log4j')
  const [sbom] = await Promise.all([
    page.waitForEvent('download'),
    page.getByText('CycloneDX', { exact: true }).click(),
  ])
  assert.match(sbom.suggestedFilename(), /^sha256_[0-9a-f]{64}\.cdx\.json$/)
  const document = JSON.parse(readFileSync(await sbom.path(), 'utf8'))
  assert.equal(document.bomFormat, 'CycloneDX')
  assert.ok(document.components.some(({ version }: { version: string }) => version === LOG4J.version))
  await close()
})

test('decisions can be downloaded as VEX, and a refusal is shown beside the button', { skip }, async () => {
  const { page } = await site.visit(`image/${checkout.digest}?tab=vulnerabilities`, { allowed: REFUSED })
  const [vex] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'VEX as OpenVEX' }).click(),
  ])
  const { statements } = JSON.parse(readFileSync(await vex.path(), 'utf8'))
  assert.ok(statements.length > 0)
  await page.route('**/vex?*', (route) => route.fulfill({ status: 404, body: 'No decision holds for this image' }))
  await page.getByRole('button', { name: 'VEX as CycloneDX' }).click()
  await page.getByText('No decision holds for this image').waitFor()
  await page.context().close()
})

test('signatures show the signer, and images without a signature', { skip }, async () => {
  const signed = await site.visit(`image/${checkout.digest}?tab=signatures`)
  assert.match(await textOf(signed.page, 'main'), /verified[\s\S]*Issuer\s+https:\/\/token\.actions/)
  await signed.close()
  const unsigned = await site.visit(`image/${cardVault.digest}?tab=signatures`)
  assert.match(await textOf(unsigned.page, 'main'), /unsigned/)
  await unsigned.close()
})

test('two images are compared, from the older to the newer', { skip }, async () => {
  const diff = await site.get<JsonAnswer<'/images/{digest}/diff/{other}'>>(
    `/images/${earlierCheckout.digest}/diff/${checkout.digest}`,
  )
  const { page, close } = await site.visit(`image/${checkout.digest}`)
  await page.getByRole('button', { name: 'Compare…' }).click()
  await page.getByLabel('Compare with').selectOption(earlierCheckout.digest)
  await page.getByRole('heading', { name: 'Compare two images' }).waitFor()
  await settled(page)
  assert.ok(page.url().endsWith(`/image/${earlierCheckout.digest}/diff/${checkout.digest}`))
  const { came, went, changed } = diff.findings!
  const text = await textOf(page, 'main')
  assert.ok(text.includes(`${came.total} came, ${went.total} went, ${changed.total} changed`))
  assert.ok(text.includes(`${earlierCheckout.repository}:${earlierCheckout.tag}`))
  if (diff.files === null) assert.ok(text.includes('Not known, which is not unchanged'))
  await close()
})

test('an image without a report, and an unknown image', { skip }, async () => {
  const { images } = await site.get<JsonAnswer<'/coverage'>>('/coverage?part=images&limit=500')
  const { digest } = images!.items.find(({ missing }) => missing.includes('no_report'))!
  const unscanned = await site.visit(`image/${digest}?tab=vulnerabilities`)
  assert.match(await textOf(unscanned.page, 'main'), /not known\. That is not clean/)
  await unscanned.close()
  const absent = await site.visit(`image/sha256:${'0'.repeat(64)}`, { allowed: REFUSED })
  assert.match(await textOf(absent.page, 'main'), /Not in the inventory/)
  await absent.page.context().close()
  const broken = await site.visit('image/latest')
  assert.match(await textOf(broken.page, 'main'), /This is no digest/)
  await broken.close()
})

test('a package: the images that contain it, and the images without an SBOM', { skip }, async () => {
  const answer = await site.get<JsonAnswer<'/components'>>(
    `/components?name=${encodeURIComponent(LOG4J.name)}&limit=100`,
  )
  const { page, close } = await site.visit(`packages?name=${encodeURIComponent(LOG4J.name)}`)
  assert.equal(await rowsOf(page, 'Where the package is'), answer.items.length)
  const verdict = await textOf(page, '.verdict')
  assert.match(verdict, /^Running/)
  assert.ok(verdict.includes(`What ${answer.notCovered} running images contain is not known`), verdict)
  // Packages that a filter leaves out may run.
  await page.goto(`${page.url()}&running=false`)
  await settled(page)
  const narrowed = await textOf(page, '.verdict')
  assert.match(narrowed, /^Only what the filter matches counts here/)
  assert.doesNotMatch(narrowed, /Not seen running|Not known/)
  await close()
})

const PATHS = [
  'images',
  ...['', '?tab=vulnerabilities', '?tab=sbom', '?tab=signatures', '?tab=files'].map(
    (q) => `image/${checkout.digest}${q}`,
  ),
  `image/${earlierCheckout.digest}/diff/${checkout.digest}`,
  'packages?name=openssl',
]

test('few requests and bytes', { skip }, async () => {
  for (const path of PATHS) await site.keepsBounds(path)
})

test('looks right', { skip }, async () => {
  for (const path of PATHS) await site.looksRight(path)
})
