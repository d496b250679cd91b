/** The SBOM, the licences, and the packages of the lock file that the image contains. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Ajv, type AnySchemaObject } from 'ajv'
import { type Allowed, pageWithTable, readAllowed, refusals } from '../../scripts/release/licences.ts'
import { notices } from '../../scripts/release/notices.ts'
import { dependenciesOf, type Lock, packagesOf, readJson, readLock } from '../../scripts/release/packages.ts'
import { sbom } from '../../scripts/release/sbom.ts'
import { isAllowed, NoExpression } from '../../scripts/release/spdx.ts'
import { newImage, sbomOf } from '../supply-chain/payloads.ts'
import { startApp, TOKENS } from '../support/app.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const lock = readLock()
const packages = packagesOf(lock)
const inImage = packages.filter(({ isInImage }) => isInImage)
const manifest = readJson('package.json')
const document = sbom(lock, manifest)

const SCHEMAS = 'node_modules/@cyclonedx/cyclonedx-library/res/schema'
const schema = (name: string): AnySchemaObject => readJson(`${SCHEMAS}/${name}.schema.json`)
const spdx = schema('spdx.SNAPSHOT')

interface Tree {
  /** None for an optional peer that nobody installed. */
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, Tree>>
}

test('the SBOM is a CycloneDX 1.6 document by the official schema, with and without a time', () => {
  // The strict mode of ajv rejects parts of the schema.
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const [name, json] of [
    ['spdx', spdx],
    ['jsf-0.82', schema('jsf-0.82.SNAPSHOT')],
  ] as const)
    ajv.addSchema(json, `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`)
  const isCycloneDx = ajv.compile(schema('bom-1.6.SNAPSHOT'))
  for (const one of [document, sbom(lock, manifest, '0')])
    assert.ok(isCycloneDx(one), JSON.stringify(isCycloneDx.errors?.slice(0, 3)))
  assert.ok(
    !isCycloneDx({
      ...document,
      components: [{ ...document.components[0], hashes: [{ alg: 'SHA-512', content: 'x' }] }],
    }),
  )
})

test('its components and their graph are the ones that npm installs into the image', () => {
  const words = ['ls', '--omit=dev', '--omit=optional', '--all', '--json', '--package-lock-only']
  const listed = spawnSync('npm', words, { cwd: ROOT, encoding: 'utf8' })
  assert.equal(listed.status, 0, listed.stderr)
  const purl = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`
  const graph = new Map<string, string[]>()
  const walk = (ref: string, { dependencies = {} }: Tree): void => {
    const installed = Object.entries(dependencies).flatMap(([name, tree]) =>
      tree.version === undefined ? [] : [{ ref: purl(name, tree.version), tree }],
    )
    const on = installed.map((one) => one.ref)
    // A package that occurs again in the tree is listed there without its dependencies.
    if (!graph.has(ref) || on.length > 0) graph.set(ref, on.sort())
    for (const one of installed) walk(one.ref, one.tree)
  }
  walk(document.metadata.component['bom-ref'], JSON.parse(listed.stdout))
  assert.deepEqual(new Map(document.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn])), graph)
  assert.deepEqual(document.components.map(({ purl }) => purl).sort(), [...graph.keys()].slice(1).sort())
  assert.ok(document.components.length > Object.keys(manifest.dependencies).length)
})

test('a component has name, version, licence and the hash of its archive', () => {
  const { integrity, version } = lock['node_modules/@hono/node-server']!
  const ref = `pkg:npm/%40hono/node-server@${version}`
  assert.deepEqual(
    document.components.find(({ purl }) => purl === ref),
    {
      type: 'library',
      'bom-ref': ref,
      group: '@hono',
      name: 'node-server',
      version,
      hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity!.slice('sha512-'.length), 'base64').toString('hex') }],
      licenses: [{ license: { id: 'MIT' } }],
      purl: ref,
    },
  )
})

const integrity = `sha512-${Buffer.alloc(64, 7).toString('base64')}`
const example: Lock = {
  '': { dependencies: { a: '^1', b: '^1' } },
  'node_modules/a': {
    version: '1.0.0+build',
    integrity,
    license: '(MIT OR Apache-2.0)',
    dependencies: { c: '^2', gone: '*' },
  },
  'node_modules/a/node_modules/c': { version: '2.0.0', integrity, license: 'MIT' },
  'node_modules/b': { version: '1.0.0', integrity, peerDependencies: { c: '^1' }, dependencies: { d: '^2' } },
  'node_modules/b/node_modules/d': { version: '2.0.0', integrity, license: 'MIT', dependencies: { c: '^1' } },
  'node_modules/c': { version: '1.0.0', integrity, license: 'GPL-3.0-only' },
  'node_modules/e': { version: '1.0.0', integrity, license: 'GPL-3.0-only', dev: true },
  'node_modules/gone': { version: '1.0.0', integrity, license: 'MIT', optional: true },
}

test('a dependency resolves to the nearest folder; packages outside the image are left out', () => {
  assert.deepEqual(dependenciesOf(example, 'node_modules/a'), ['node_modules/a/node_modules/c', 'node_modules/gone'])
  assert.deepEqual(dependenciesOf(example, 'node_modules/b/node_modules/d'), ['node_modules/c'])
  const { components, dependencies } = sbom(example, { name: 'x', version: '1.0.0', description: '', license: 'MIT' })
  const a = 'pkg:npm/a@1.0.0%2Bbuild'
  assert.deepEqual(Object.fromEntries(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn])), {
    'pkg:npm/x@1.0.0': [a, 'pkg:npm/b@1.0.0'],
    [a]: ['pkg:npm/c@2.0.0'],
    'pkg:npm/b@1.0.0': ['pkg:npm/c@1.0.0', 'pkg:npm/d@2.0.0'],
    'pkg:npm/c@1.0.0': [],
    'pkg:npm/c@2.0.0': [],
    'pkg:npm/d@2.0.0': ['pkg:npm/c@1.0.0'],
  })
  assert.deepEqual(components[0]!.licenses, [{ expression: '(MIT OR Apache-2.0)' }])
})

test('a package without a version, a hash or a registry is refused', () => {
  const only = (fields: object) => sbom({ '': {}, 'node_modules/a': { version: '1.0.0', ...fields } }, manifest)
  for (const bad of [undefined, 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=', `${integrity} ${integrity}`])
    assert.throws(() => only(bad === undefined ? {} : { integrity: bad }), /node_modules\/a has no SHA-512/)
  assert.throws(() => only({ integrity, link: true }), /is no package of a registry/)
  assert.throws(() => sbom(lock, manifest, 'today'), /SOURCE_DATE_EPOCH/)
})

test('the same lock file gives the same bytes; the time is included only on request', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sbom-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const { SOURCE_DATE_EPOCH: _, ...env } = process.env
  const written = (added: Record<string, string> = {}) => {
    const file = join(folder, 'sbom.json')
    const words = ['--import', 'tsx', 'scripts/release/sbom.ts', file]
    assert.equal(spawnSync(process.execPath, words, { cwd: ROOT, env: { ...env, ...added } }).status, 0)
    return readFileSync(file, 'utf8')
  }
  assert.equal(written(), `${JSON.stringify(document, null, 2)}\n`)
  assert.equal(JSON.parse(written({ SOURCE_DATE_EPOCH: '86400' })).metadata.timestamp, '1970-01-02T00:00:00Z')
})

test('the broker accepts the SBOM as one of an image, and lists its components', async () => {
  const app = await startApp(TOKENS)
  const digest = newImage()
  const sent = document.components.map(({ name, version, purl, licenses }) => ({
    name,
    version,
    purl,
    type: 'npm',
    licenses: licenses?.map((one) => ('expression' in one ? one.expression : one.license.id)),
  }))
  const token = TOKENS.BROKER_TOKEN_SUPPLYCHAIN
  const stored = await app.post(`/images/${digest}/sbom`, sbomOf(digest, sent), { token })
  assert.deepEqual([stored.status, stored.json], [200, { status: 'stored', items: sent.length }], stored.text)
  const answer = await app.get(`/images/${digest}/sbom/cyclonedx`, { token })
  const listed = (answer.json as { components: { purl: string; version: string }[] }).components
  const key = ({ purl, version }: { purl: string; version: string }) => `${purl} ${version}`
  assert.deepEqual(listed.map(key).sort(), document.components.map(key).sort())
})

test('a licence expression needs one allowed side of OR and both sides of AND, which binds tighter', () => {
  const allowed = new Set(['MIT', 'ISC', 'GPL-2.0-only WITH Classpath-exception-2.0'])
  const is = (expression: string) => isAllowed(expression, allowed)
  for (const good of [
    'MIT',
    '(MIT)',
    '(MIT OR GPL-3.0-only)',
    'GPL-3.0-only OR MIT',
    'MIT AND ISC',
    '(MIT AND (GPL-3.0-only OR ISC))',
    'MIT OR GPL-3.0-only AND X',
    'GPL-2.0-only WITH Classpath-exception-2.0 AND MIT',
  ])
    assert.ok(is(good), good)
  for (const bad of [
    'GPL-3.0-only',
    'mit',
    'MIT+',
    'MIT AND GPL-3.0-only',
    '(MIT OR X) AND Y',
    'GPL-2.0-only',
    'MIT WITH Classpath-exception-2.0',
    'UNLICENSED',
    'LicenseRef-own',
  ])
    assert.ok(!is(bad), bad)
  for (const none of [
    '',
    '()',
    '(MIT',
    'MIT)',
    'MIT ISC',
    'MIT OR',
    'AND MIT',
    'MIT WITH',
    'MIT or ISC',
    'SEE LICENSE IN file',
    'MIT/ISC',
  ])
    assert.throws(() => is(none), NoExpression, none)
})

test('each of our packages has an allowed licence; the lists contain SPDX licences', () => {
  const allowed = readAllowed()
  assert.deepEqual(refusals(packages, allowed), [])
  for (const id of [...allowed.image, ...allowed.development]) assert.ok((spdx.enum as string[]).includes(id), id)
})

test('a forbidden, missing or malformed licence is refused with the name of its package', () => {
  const rules: Allowed = { image: ['MIT'], development: ['GPL-3.0-only'], stated: {} }
  assert.deepEqual(refusals(packagesOf(example), rules), [
    'node_modules/b 1.0.0 states no licence',
    'node_modules/c 1.0.0: GPL-3.0-only is not allowed in the image',
  ])
  assert.deepEqual(
    refusals(packagesOf(example), { ...rules, image: ['MIT', 'GPL-3.0-only'], stated: { b: 'X', a: 'MIT' } }),
    ['node_modules/b 1.0.0: X is not allowed in the image', 'a needs no stated licence any more'],
  )
  const odd: Lock = { 'node_modules/o': { version: '1.0.0', license: 'SEE LICENSE IN LICENSE.txt', dev: true } }
  assert.deepEqual(refusals(packagesOf(odd), rules), [
    'node_modules/o 1.0.0: SEE LICENSE IN LICENSE.txt is no SPDX expression',
  ])
})

test('LICENCES.md lists the packages of the image; `npm run licences` writes it', () => {
  assert.equal(readFileSync(join(ROOT, 'LICENCES.md'), 'utf8'), pageWithTable(packages))
  assert.ok(pageWithTable(packages).includes(`| pino | ${manifest.dependencies.pino} | MIT |`))
})

test('every package of the image is included with its licence text, or the licence it states', () => {
  const parts = notices(packages, ROOT).split(`\n${'-'.repeat(80)}\n\n`)
  assert.deepEqual(
    parts.map((part) => part.split('\n')[0]),
    inImage.map(({ name, version, license }) => `${name} ${version} (${license})`),
  )
  const zod = parts.find((part) => part.startsWith('zod '))!
  assert.ok(zod.includes(readFileSync(join(ROOT, 'node_modules/zod/LICENSE'), 'utf8').trim()))
  for (const part of parts)
    assert.ok(part.length > 500 || /holds no text of its licence. By .+; it states: \S+\.\n$/.test(part), part)
  const other = packages.map((one) => ({ ...one, version: '0.0.0' }))
  assert.throws(() => notices(other, ROOT), /0\.0\.0 is locked, and .* installed/)
})
