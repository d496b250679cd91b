/** Exported documents against the official schema of CycloneDX 1.5. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { Ajv, type AnySchemaObject } from 'ajv'
import { startApp } from '../support/app.ts'
import { newDigest } from '../support/images.ts'
import { component, storeSbom } from '../support/supply-chain.ts'

const app = await startApp()

const schema = (name: string): AnySchemaObject =>
  JSON.parse(
    readFileSync(
      new URL(`../../node_modules/@cyclonedx/cyclonedx-library/res/schema/${name}.schema.json`, import.meta.url),
      'utf8',
    ),
  )

// The strict mode of ajv rejects parts of the schema. Our documents use none of its formats.
const ajv = new Ajv({ strict: false, validateFormats: false })
for (const name of ['spdx.SNAPSHOT', 'jsf-0.82.SNAPSHOT'])
  ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.schema.json`)
const isCycloneDx = ajv.compile(schema('bom-1.5.SNAPSHOT'))

function assertValid(document: unknown): void {
  assert.ok(isCycloneDx(document), JSON.stringify(isCycloneDx.errors?.slice(0, 3)))
}

type Components = {
  'bom-ref': string
  name: string
  licenses?: { license: { name: string } }[]
  properties?: { value: string }[]
}[]

async function documentOf(components: Record<string, unknown>[], fields: Record<string, unknown> = {}) {
  const digest = newDigest()
  await storeSbom(app, digest, 'operator-scanner', components, fields)
  const answer = await app.get(`/images/${digest}/sbom/cyclonedx`)
  assert.equal(answer.status, 200)
  assertValid(answer.json)
  return answer.json as { components: Components; metadata: Record<string, unknown> }
}

/** Texts that are hard to embed in JSON, and that ingest accepts. */
const HOSTILE = [
  ...[
    '"',
    '\\',
    '\\"',
    '"}],"x":[{"',
    '\\u0000',
    "'",
    '\u007f',
    '<script>',
    '{{',
    '%s',
    '$1',
    '||',
    'a,b',
    '💥',
    '\u2027\u202e',
  ],
  ...['\u{10ffff}', 'é'.normalize('NFD'), 'null', 'true', '[]', '{}', '-0', 'NaN'],
]

test('a document with all values of its components and its scan', async () => {
  const full = {
    version: '1',
    purl: 'pkg:deb/debian/a@1?arch=amd64',
    type: 'deb',
    class: 'os-pkgs',
    src_name: 'a',
    src_version: '1',
    licenses: ['MIT'],
    layer_digest: newDigest(),
    file_paths: ['usr/lib/a'],
  }
  await documentOf([component('a', full), component('debian', { type: 'operating-system' })], {
    scanner_name: 'scan',
    scanner_version: '2',
    image_ref: 'registry.test/a:v1',
    sbom_trust: 'verified',
    scanned_at: '0001-01-01T00:00:00',
  })
})

test('a document without optional values, and one without components', async () => {
  await documentOf([component('bare')])
  await documentOf([])
})

test('a document of 5 000 components, in order', async () => {
  const many = Array.from({ length: 5_000 }, (_, i) => component(`component-${i % 7}`, { purl: `pkg:generic/${i}` }))
  const { components } = await documentOf(many)
  assert.deepEqual(
    components.map(({ 'bom-ref': ref, name }) => `${ref} ${name}`),
    many.map(({ name }, i) => `c${i} ${name}`),
  )
})

test('texts that would end a string, an object or a format are escaped', async () => {
  const { components, metadata } = await documentOf(
    HOSTILE.map((text) =>
      component(text, {
        version: text,
        purl: text,
        type: text,
        class: text,
        src_name: text,
        src_version: text,
        layer_digest: text,
        licenses: [text, text],
      }),
    ),
    { scanner_name: HOSTILE.join(), scanner_version: '"', image_ref: HOSTILE.join() },
  )
  for (const [i, text] of HOSTILE.entries()) {
    const { 'bom-ref': ref, licenses, properties, ...rest } = components[i]!
    assert.deepEqual([ref, rest], [`c${i}`, { name: text, purl: text, type: 'library', version: text }])
    assert.deepEqual(licenses, [{ license: { name: text } }, { license: { name: text } }])
    assert.deepEqual(
      properties?.map(({ value }) => value),
      Array(5).fill(text),
    )
  }
  assert.deepEqual((metadata.component as { name: string }).name, HOSTILE.join())
})

test('licences that are not on the SPDX list, expressions and full texts', async () => {
  const licenses = [
    'GPL-2.0-or-later WITH Classpath-exception-2.0',
    '(MIT OR Apache-2.0)',
    'NOASSERTION',
    'see LICENSE.md',
    'ß'.repeat(64),
  ]
  const { components } = await documentOf([component('a', { licenses }), component('b', { licenses: ['MIT', 'MIT'] })])
  assert.deepEqual(
    components[0]!.licenses?.map(({ license }) => license.name),
    licenses,
  )
})

test('the schema detects faults', () => {
  const bare = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 }
  assertValid(bare)
  for (const bad of [
    { ...bare, specVersion: undefined },
    { ...bare, components: [{ name: 'a' }] },
    { ...bare, components: [{ name: 'a', type: 'deb' }] },
    { ...bare, components: [{ name: 'a', type: 'library', version: null }] },
    { ...bare, unknown: true },
  ])
    assert.equal(isCycloneDx(bad), false, JSON.stringify(bad))
})
