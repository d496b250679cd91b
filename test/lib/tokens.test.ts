import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../lib/config/index.ts'
import { ConfigError } from '../../lib/errors.ts'
import { createTokens } from '../../lib/http/tokens.ts'

const read = 'tok-read-5b1c0f9a7e21'
const ingest = 'tok-ingest-c2d84e6f0b35'
const supplychain = 'tok-supply-90ad3f7712ce'
const admin = 'tok-admin-1f6e0c9b3a72'
const catalog = 'tok-catalog-7d20b85e4c19'
const shared = 'tok-shared-e4471b8d6a0f'
const all = {
  BROKER_TOKEN_READ: read,
  BROKER_TOKEN_INGEST: ingest,
  BROKER_TOKEN_SUPPLYCHAIN: supplychain,
  BROKER_TOKEN_ADMIN: admin,
  BROKER_TOKEN_CATALOG: catalog,
  BROKER_AUTH_TOKEN: shared,
}

const tokens = (env: NodeJS.ProcessEnv) => createTokens(loadConfig(env))
const granted = (env: NodeJS.ProcessEnv, header?: string) => {
  const scopes = tokens(env).authenticate(header)
  return scopes && [...scopes].sort()
}

test('each variable grants its scopes', () => {
  assert.deepEqual(granted(all, `Bearer ${read}`), ['open', 'read'])
  assert.deepEqual(granted(all, `Bearer ${ingest}`), ['ingest', 'open', 'read'])
  assert.deepEqual(granted(all, `Bearer ${supplychain}`), ['open', 'read', 'supplychain'])
  assert.deepEqual(granted(all, `Bearer ${admin}`), ['admin', 'ingest', 'open', 'read', 'supplychain'])
  assert.deepEqual(granted(all, `Bearer ${catalog}`), ['open'])
  assert.deepEqual(granted(all, `Bearer ${shared}`), ['ingest', 'open', 'read'])
})

test('with no token configured everyone may read, ingest and administer, and nobody may write supply-chain data', () => {
  for (const header of [undefined, '', 'Bearer whatever', 'Basic x'])
    assert.deepEqual(granted({}, header), ['admin', 'ingest', 'open', 'read'])
  assert.equal(tokens({}).enabled, false)
  assert.equal(tokens({ BROKER_TOKEN_READ: '  ' }).enabled, false)
})

for (const [variable, value] of Object.entries(all)) {
  test(`${variable} alone turns authentication on`, () => {
    const one = tokens({ [variable]: value })
    assert.equal(one.enabled, true)
    assert.deepEqual(one.sources, [variable])
    assert.equal(one.authenticate(undefined), null)
    assert.ok(one.authenticate(`Bearer ${value}`))
    for (const other of Object.values(all)) if (other !== value) assert.equal(one.authenticate(`Bearer ${other}`), null)
  })
}

test('the scheme Bearer is accepted in any case, and the token is trimmed', () => {
  for (const header of [
    `Bearer ${read}`,
    `bearer ${read}`,
    `BEARER ${read}`,
    `BeareR ${read}`,
    `Bearer    ${read}  `,
    `bearer \t${read}`,
  ])
    assert.ok(granted(all, header), header)
  for (const header of [
    '',
    ' ',
    'Bearer',
    'Bearer ',
    'bearer  ',
    read,
    ` Bearer ${read}`,
    `Bearer${read}`,
    `Bearer\t${read}`,
    `Basic ${read}`,
    `Bearer ${read} x`,
    `Bearer ${read},Bearer ${read}`,
    `Bearer ${read.slice(0, -1)}`,
    `Bearer ${read.slice(1)}`,
    `Bearer ${read}x`,
    `Bearer ${read.toUpperCase()}`,
    `Bearer ${'x'.repeat(100_000)}`,
  ]) {
    assert.equal(granted(all, header), null, header.slice(0, 40))
  }
})

test('a short token works, with a warning', () => {
  assert.deepEqual(granted({ BROKER_AUTH_TOKEN: 'short' }, 'Bearer short'), ['ingest', 'open', 'read'])
  assert.equal(loadConfig({ BROKER_AUTH_TOKEN: 'short', METRICS_WORKLOAD_LABELS: 'off' }).warnings.length, 1)
})

test('one value in two variables is refused: both are named, the value is not', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tokens-'))
  const path = join(folder, 'token')
  writeFileSync(path, `${read}\n`)
  const variables = Object.keys(all)
  const sources = variables.flatMap((variable) => [
    { name: variable, value: ` ${read}` },
    { name: `${variable}_FILE`, value: path },
  ])
  for (const one of sources) {
    for (const two of sources) {
      if (one.name.replace('_FILE', '') >= two.name.replace('_FILE', '')) continue
      const config = loadConfig({ [one.name]: one.value, [two.name]: two.value })
      assert.throws(
        () => createTokens(config),
        (error) => {
          assert.ok(error instanceof ConfigError)
          assert.ok(error.message.includes(`${one.name} `) || error.message.includes(`and ${one.name} `))
          assert.ok(error.message.split(' ').includes(two.name))
          return !error.message.includes(read)
        },
      )
    }
  }
  rmSync(folder, { recursive: true })
})

test('the sources are the names of the variables as set, each once', (t) => {
  assert.deepEqual(tokens(all).sources, Object.keys(all))
  const folder = mkdtempSync(join(tmpdir(), 'tokens-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'token')
  writeFileSync(path, `${read}\n`)
  assert.deepEqual(
    tokens({ BROKER_TOKEN_READ_FILE: path, BROKER_TOKEN_INGEST: `${ingest},${supplychain}`, BROKER_AUTH_TOKEN: shared })
      .sources,
    ['BROKER_TOKEN_READ_FILE', 'BROKER_TOKEN_INGEST', 'BROKER_AUTH_TOKEN'],
  )
})
