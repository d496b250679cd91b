/** Rotation of tokens: two tokens of a scope at once, and files that are read again. */
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { loadConfig } from '../../lib/config/index.ts'
import { CHECK_INTERVAL_MS, tokenFileCheck, watchTokenFiles } from '../../lib/config/token-files.ts'
import { ConfigError } from '../../lib/errors.ts'
import { createTokens } from '../../lib/http/tokens.ts'
import { fileWith, folder, refusalOf } from '../support/environment.ts'
import { until } from '../support/until.ts'

const OLD = 'tok-old-5b1c0f9a7e2100'
const NEW = 'tok-new-c2d84e6f0b3500'
const THIRD = 'tok-third-90ad3f7712'

const may = (tokens: ReturnType<typeof createTokens>, token: string) =>
  [...(tokens.authenticate(`Bearer ${token}`) ?? [])].sort()

/** A program with the token files of its environment; `look` checks them once. */
function program(env: NodeJS.ProcessEnv) {
  const config = loadConfig(env)
  const tokens = createTokens(config)
  const lines: string[] = []
  const say = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const look = tokenFileCheck({
    files: config.tokenFiles,
    tokens,
    log: { debug: say, info: say, warn: say, error: say },
  })
  return { tokens, lines, look }
}

test('a variable may hold two tokens separated by a comma, and each grants its scopes', () => {
  const tokens = createTokens(loadConfig({ BROKER_TOKEN_READ: ` ${OLD} , ${NEW} `, BROKER_TOKEN_INGEST: THIRD }))
  assert.deepEqual(
    [may(tokens, OLD), may(tokens, NEW)],
    [
      ['open', 'read'],
      ['open', 'read'],
    ],
  )
  assert.deepEqual(may(tokens, THIRD), ['ingest', 'open', 'read'])
  assert.deepEqual(may(tokens, `${OLD},${NEW}`), [])
  assert.deepEqual(tokens.sources, ['BROKER_TOKEN_READ', 'BROKER_TOKEN_INGEST'])
})

test('three tokens of a scope are refused, and so is an empty list', () => {
  for (const [value, why] of [
    [`${OLD},${NEW},${THIRD}`, /^BROKER_TOKEN_READ: 3 tokens; at most 2/],
    [' , ', /^BROKER_TOKEN_READ: .*no token/],
  ] as const) {
    const lines = refusalOf(() => loadConfig({ BROKER_TOKEN_READ: value }))
    assert.equal(lines.length, 1)
    assert.match(lines[0]!, why)
    assert.ok(!lines[0]!.includes(OLD))
  }
})

test('a token repeated in one list counts once; one token in two variables is refused', () => {
  assert.equal(loadConfig({ BROKER_TOKEN_READ: `${OLD},${OLD}` }).tokens.length, 1)
  const config = loadConfig({ BROKER_TOKEN_READ: `${OLD},${NEW}`, BROKER_TOKEN_INGEST: `${THIRD},${NEW}` })
  assert.throws(
    () => createTokens(config),
    (error) =>
      error instanceof ConfigError &&
      /BROKER_TOKEN_READ and BROKER_TOKEN_INGEST/.test(error.message) &&
      !error.message.includes(NEW),
  )
})

test('files are checked at least every 30 seconds', () => assert.ok(CHECK_INTERVAL_MS <= 30_000))

test('tokens of a changed file are used without a restart, and the log does not contain them', async () => {
  const path = fileWith('rotated', `${OLD}\n`)
  const { tokens, lines, look } = program({ BROKER_TOKEN_READ_FILE: path })
  await look()
  assert.deepEqual([may(tokens, OLD), may(tokens, NEW), lines], [['open', 'read'], [], []])
  writeFileSync(path, `${OLD},${NEW}`)
  await look()
  assert.deepEqual(
    [may(tokens, OLD), may(tokens, NEW)],
    [
      ['open', 'read'],
      ['open', 'read'],
    ],
  )
  writeFileSync(path, `${NEW}\r\n`)
  await look()
  assert.deepEqual([may(tokens, OLD), may(tokens, NEW)], [[], ['open', 'read']])
  assert.equal(lines.length, 2)
  for (const line of lines) {
    assert.match(line, /BROKER_TOKEN_READ_FILE/)
    assert.ok(!line.includes(OLD) && !line.includes(NEW))
  }
})

test('a file that is unreadable, empty or has too many tokens keeps the previous tokens, and is logged once', async () => {
  const path = fileWith('broken', OLD)
  const { tokens, lines, look } = program({ BROKER_TOKEN_INGEST_FILE: path })
  const faults: readonly (readonly [what: string, make: () => void, why: RegExp])[] = [
    ['gone', () => rmSync(path), /cannot be read \(ENOENT\)/],
    ['empty', () => writeFileSync(path, ' \n'), /is empty/],
    ['too many', () => writeFileSync(path, `${OLD},${NEW},${THIRD}`), /at most 2/],
    ['a folder', () => void [rmSync(path), mkdirSync(path)], /cannot be read \(EISDIR\)/],
  ]
  for (const [what, make, why] of faults) {
    make()
    await look()
    await look()
    assert.deepEqual(may(tokens, OLD), ['ingest', 'open', 'read'], what)
    assert.match(lines.at(-1)!, why)
    assert.match(lines.at(-1)!, /BROKER_TOKEN_INGEST_FILE.*kept/)
  }
  assert.equal(lines.length, faults.length)
  rmSync(path, { recursive: true })
  writeFileSync(path, NEW)
  await look()
  assert.deepEqual([may(tokens, OLD), may(tokens, NEW)], [[], ['ingest', 'open', 'read']])
  const before = lines.length
  faults.at(-1)![1]()
  await look()
  assert.equal(lines.length, before + 1, 'the last fault again, after the file was usable')
})

test('the files are checked at every interval, until the checks are stopped', async (t) => {
  const path = fileWith('watched', OLD)
  const config = loadConfig({ BROKER_TOKEN_READ_FILE: path })
  const tokens = createTokens(config)
  const say = () => {}
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const watch = watchTokenFiles({
    files: config.tokenFiles,
    tokens,
    log: { debug: say, info: say, warn: say, error: say },
  })
  for (const token of [NEW, THIRD]) {
    writeFileSync(path, token)
    await until('the new token is in force', () => {
      mock.timers.tick(CHECK_INTERVAL_MS)
      return may(tokens, token).length > 0
    })
  }
  watch.stop()
  assert.deepEqual([may(tokens, OLD), may(tokens, NEW)], [[], []])
})

test('a changed file with the token of another scope is ignored', async () => {
  const [read, ingest] = [fileWith('scope-a', OLD), fileWith('scope-b', NEW)]
  const { tokens, lines, look } = program({ BROKER_TOKEN_READ_FILE: read, BROKER_TOKEN_INGEST_FILE: ingest })
  writeFileSync(read, NEW)
  await look()
  assert.deepEqual(
    [may(tokens, OLD), may(tokens, NEW)],
    [
      ['open', 'read'],
      ['ingest', 'open', 'read'],
    ],
  )
  assert.match(lines[0]!, /hold the same token/)
})

test('the second of two files may appear later and disappear again', async () => {
  const first = fileWith('first', OLD)
  const second = join(folder, 'second')
  const { tokens, look } = program({ BROKER_TOKEN_READ_FILE: `${first}, ${second}` })
  assert.deepEqual(may(tokens, OLD), ['open', 'read'])
  writeFileSync(second, NEW)
  await look()
  assert.deepEqual(
    [may(tokens, OLD), may(tokens, NEW)],
    [
      ['open', 'read'],
      ['open', 'read'],
    ],
  )
  // The end of a rotation: the new file replaces the old one.
  renameSync(second, first)
  await look()
  assert.deepEqual([may(tokens, OLD), may(tokens, NEW)], [[], ['open', 'read']])
})

test('a missing first file is refused at the start', () => {
  const lines = refusalOf(() =>
    loadConfig({ BROKER_TOKEN_READ_FILE: `${join(folder, 'nowhere')},${fileWith('other', OLD)}` }),
  )
  assert.match(lines[0]!, /^BROKER_TOKEN_READ_FILE: .*nowhere cannot be read \(ENOENT\)/)
})
