import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { loadConfig as loadBrokerConfig } from '../../lib/config/index.ts'
import { configTable, loadConfig, redacted } from '../../wrangler-free-deploy/edge/config.ts'
import { fileWith, folder, refusalOf } from '../support/environment.ts'

const secret = 'a-secret-value-9d1f'
const BROKER_URL = 'http://broker:9090'
const load = (env: NodeJS.ProcessEnv) => loadConfig({ BROKER_URL, ...env })

/** The lines of the ConfigError for this environment. */
const refusal = (env: NodeJS.ProcessEnv) => refusalOf(() => load(env))

test('only the address of the broker is required', () => {
  assert.deepEqual(load({}), {
    nodeEnv: 'development',
    listen: [
      { host: '::', port: 8080 },
      { host: '0.0.0.0', port: 8080 },
    ],
    adminListen: [{ host: '127.0.0.1', port: 8081 }],
    brokerUrl: BROKER_URL,
    basePath: '/api',
    connectTimeoutMs: 5_000,
    firstByteTimeoutMs: 45_000,
    idleTimeoutMs: 45_000,
    consoleEnabled: false,
    logLevel: 'info',
    allowSharedToken: false,
    allowedHosts: [],
    tokenFiles: [],
    token: null,
    warnings: [],
  })
})

test('a blank value equals an unset one, for every variable except BROKER_URL', () => {
  const names = [...configTable().matchAll(/^\| `(\w+)`/gm)]
    .map(([, name]) => name!)
    .filter((name) => name !== 'BROKER_URL')
  assert.ok(names.length >= 13)
  assert.deepEqual(load(Object.fromEntries(names.map((name) => [name, ' \t']))), load({}))
})

test('BROKER_URL is required', () => {
  for (const url of ['', ' ', undefined]) assert.deepEqual(refusal({ BROKER_URL: url }), ['BROKER_URL is required'])
})

test('BROKER_URL is an http or https origin', () => {
  for (const [url, origin] of [
    ['http://broker:9090/', 'http://broker:9090'],
    [' HTTPS://Broker.ns.svc ', 'https://broker.ns.svc'],
    ['http://[fd00::1]:9090', 'http://[fd00::1]:9090'],
    ['http://10.0.0.1:80', 'http://10.0.0.1'],
  ])
    assert.equal(load({ BROKER_URL: url }).brokerUrl, origin)
  for (const url of [
    'broker:9090',
    'ftp://broker',
    'http://',
    'http://broker/api',
    'http://broker/?x',
    'http://broker/#x',
    `http://user:${secret}@broker`,
    `http://${secret}@broker`,
    '//broker',
    'http://broker:99999',
  ])
    assert.deepEqual(refusal({ BROKER_URL: url }), ['BROKER_URL: expected http://host:port or https://host:port'], url)
})

test('BASE_PATH is a path of plain segments, or none', () => {
  assert.equal(load({ BASE_PATH: '/ui/broker' }).basePath, '/ui/broker')
  assert.equal(load({ BASE_PATH: '/' }).basePath, '')
  for (const path of ['api', '/api/', '//', '/a//b', '/a%20b', '/..', '/a?b', '/a b'])
    assert.deepEqual(refusal({ BASE_PATH: path }), ['BASE_PATH: expected /segment/segment, or /'], path)
})

test('the default time limits are above those of the broker, so that it can answer with its own timeouts', () => {
  const broker = loadBrokerConfig({})
  const { firstByteTimeoutMs, idleTimeoutMs } = load({})
  const slowest = broker.dbStatementTimeoutMs + broker.readAcquireWaitMs
  assert.ok(firstByteTimeoutMs > slowest)
  assert.ok(idleTimeoutMs > slowest)
})

for (const [name, key] of [
  ['UPSTREAM_CONNECT_TIMEOUT_MS', 'connectTimeoutMs'],
  ['UPSTREAM_FIRST_BYTE_TIMEOUT_MS', 'firstByteTimeoutMs'],
  ['UPSTREAM_IDLE_TIMEOUT_MS', 'idleTimeoutMs'],
] as const) {
  test(`${name} is limited to its range, and an invalid value gives the default, each with a warning`, () => {
    const at = (text: string) => {
      const config = load({ [name]: text })
      return [config[key], config.warnings.length]
    }
    assert.deepEqual(at('1'), [1, 0])
    assert.deepEqual(at('110000'), [110_000, 0])
    assert.deepEqual(at('0'), [1, 1])
    assert.deepEqual(at('110001'), [110_000, 1])
    assert.deepEqual(at('soon'), [load({})[key], 1])
  })
}

test('every bad variable has a line of its own', () => {
  const lines = refusal({
    LISTEN_ADDR: 'x',
    ADMIN_ADDR: 'x',
    NODE_ENV: 'x',
    LOG_LEVEL: 'x',
    ALLOW_SHARED_TOKEN: 'x',
    BROKER_URL: 'x',
  })
  assert.deepEqual(
    lines.map((line) => line.split(':')[0]),
    ['NODE_ENV', 'LISTEN_ADDR', 'ADMIN_ADDR', 'BROKER_URL', 'LOG_LEVEL', 'ALLOW_SHARED_TOKEN'],
  )
})

test('the read token comes from its variable or from a file, whose line end is not part of it', () => {
  assert.deepEqual(load({ BROKER_TOKEN_READ: ` ${secret} ` }).token, {
    variable: 'BROKER_TOKEN_READ',
    source: 'BROKER_TOKEN_READ',
    value: secret,
  })
  const path = fileWith('read', `${secret}\r\n`)
  const { token, warnings } = load({ BROKER_TOKEN_READ_FILE: path })
  assert.deepEqual([token?.source, token?.value, warnings], ['BROKER_TOKEN_READ_FILE', secret, []])
})

test('an unreadable or empty token file is refused with its variable and path', () => {
  for (const path of [join(folder, 'absent'), folder, fileWith('empty', ''), fileWith('blank', ' \n')]) {
    const lines = refusal({ BROKER_TOKEN_READ_FILE: path })
    assert.equal(lines.length, 1)
    assert.ok(lines[0]!.includes('BROKER_TOKEN_READ_FILE') && lines[0]!.includes(path), lines[0])
  }
})

test('a token with a value and a file is refused, and so are both kinds of token together', () => {
  const path = fileWith('other', `${secret}-2`)
  for (const [env, names] of [
    [{ BROKER_TOKEN_READ: secret, BROKER_TOKEN_READ_FILE: path }, /BROKER_TOKEN_READ and BROKER_TOKEN_READ_FILE/],
    [
      { BROKER_TOKEN_READ: secret, BROKER_AUTH_TOKEN: `${secret}-2` },
      /BROKER_TOKEN_READ and BROKER_AUTH_TOKEN are both set/,
    ],
    [
      { BROKER_TOKEN_READ_FILE: path, BROKER_AUTH_TOKEN_FILE: path, ALLOW_SHARED_TOKEN: 'true' },
      /BROKER_TOKEN_READ_FILE and BROKER_AUTH_TOKEN_FILE/,
    ],
  ] as const) {
    const lines = refusal(env)
    assert.equal(lines.length, 1)
    assert.match(lines[0]!, names)
    assert.ok(!lines[0]!.includes(secret))
  }
})

test('the shared token is refused in one sentence, unless it is allowed', () => {
  const path = fileWith('shared', secret)
  for (const [env, source] of [
    [{ BROKER_AUTH_TOKEN: secret }, 'BROKER_AUTH_TOKEN'],
    [{ BROKER_AUTH_TOKEN_FILE: path }, 'BROKER_AUTH_TOKEN_FILE'],
  ] as const) {
    for (const allow of [undefined, 'false', '0']) {
      const lines = refusal({ ...env, ALLOW_SHARED_TOKEN: allow })
      assert.equal(lines.length, 1)
      assert.ok(lines[0]!.startsWith(`${source}: `) && lines[0]!.includes('ALLOW_SHARED_TOKEN=true'), lines[0])
      assert.ok(!lines[0]!.includes(secret))
    }
    const { token } = load({ ...env, ALLOW_SHARED_TOKEN: 'true' })
    assert.deepEqual([token?.source, token?.value], [source, secret])
  }
})

test('a token with characters that a header cannot have is refused', () => {
  for (const value of [`${secret}\n${secret}`, `${secret}\u00e9`, `${secret}\u0001`]) {
    const lines = refusal({ BROKER_TOKEN_READ: value })
    assert.equal(lines.length, 1)
    assert.match(lines[0]!, /^BROKER_TOKEN_READ: no header can carry/)
  }
})

test('a token of fewer than 16 characters gives a warning', () => {
  assert.equal(load({ BROKER_TOKEN_READ: 'x'.repeat(15) }).warnings.length, 1)
  assert.equal(load({ BROKER_TOKEN_READ: 'x'.repeat(16) }).warnings.length, 0)
})

test('the printed configuration does not contain the token', () => {
  const printed = redacted(load({ BROKER_TOKEN_READ_FILE: fileWith('printed', secret) }))
  assert.ok(!JSON.stringify(printed).includes(secret))
  assert.equal(printed.token, 'BROKER_TOKEN_READ_FILE')
  assert.equal(printed.BROKER_URL, BROKER_URL)
  assert.equal(printed.LISTEN_ADDR, '[::]:8080, 0.0.0.0:8080')
  assert.equal(redacted(load({})).token, null)
})

test('README contains the table of variables', () => {
  const readme = readFileSync(new URL('../../wrangler-free-deploy/edge/README.md', import.meta.url), 'utf8')
  assert.ok(
    readme.includes(`<!-- config:start -->\n${configTable()}\n<!-- config:end -->`),
    'wrangler-free-deploy/edge/README.md drifted: run `npm run docs`',
  )
})
