/** How `ctb` finds the broker, proves itself, waits and gives up. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import test, { after } from 'node:test'
import { type Heard, type StubAnswer, startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'
import { ctbOf, fileOf, PROGRAM, pathOf, TOKEN } from './support.ts'

const MADE: StubAnswer = { text: 'kind: NetworkPolicy\n', headers: { 'content-type': 'application/yaml' } }
const plain = (status: number, text: string, headers = {}): StubAnswer => ({
  ...{ status, text },
  headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
})

let answers: StubAnswer[] = []
const stub = await startStub(() => answers.shift() ?? MADE)
const ctb = ctbOf(stub.url)
const WORDS = ['policy', 'generate', 'shop/Deployment/api']

async function heardOf(words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Heard> {
  stub.heard.length = 0
  const done = await ctb([...WORDS, ...words], { env })
  assert.deepEqual(done, { code: 0, out: 'kind: NetworkPolicy\n', err: '' })
  assert.equal(stub.heard.length, 1)
  return stub.heard[0]!
}

test('the token comes from a file, CTB_TOKEN or KGUARDIAN_BROKER_TOKEN, in this order', async () => {
  const file = fileOf('token', 'of-the-file,of-the-file-next\n')
  const both = { CTB_TOKEN: 'of-ctb', KGUARDIAN_BROKER_TOKEN: 'of-kguardian' }
  const cases: readonly [words: string[], env: NodeJS.ProcessEnv, token: string | undefined][] = [
    [['--token-file', file], both, 'Bearer of-the-file'],
    [['--broker-token-file', file], both, 'Bearer of-the-file'],
    [[], both, 'Bearer of-ctb'],
    [[], { ...both, CTB_TOKEN: '' }, 'Bearer of-kguardian'],
    [[], { CTB_TOKEN: '' }, undefined],
  ]
  for (const [words, env, token] of cases) assert.equal((await heardOf(words, env)).headers.authorization, token)
})

test('the address may have a path in front of those of the API', async () => {
  const path = '/workloads/shop/Deployment/api/networkpolicy'
  assert.equal((await heardOf([])).path, path)
  assert.equal((await heardOf(['--server', `${stub.url}/base/`])).path, `/base${path}`)
})

test('names are encoded', async () => {
  stub.heard.length = 0
  await ctb(['policy', 'generate', '-n', 'a?b#c', 'Pod/d e'])
  assert.equal(stub.heard[0]!.path, '/workloads/a%3Fb%23c/Pod/d%20e/networkpolicy')
})

test('503 is asked again when the broker says so, three times, and said each time', async () => {
  const busy = plain(503, 'database busy', { 'retry-after': '0' })
  answers = [busy, busy, busy]
  const made = await ctb(WORDS)
  const said = [1, 2, 3].map((n) => `database busy: asked again in 0 s (${n} of 3)\n`)
  assert.deepEqual(made, { code: 0, out: 'kind: NetworkPolicy\n', err: said.join('') })
  answers = [busy, busy, busy, busy]
  const given = await ctb(WORDS)
  assert.deepEqual(given, { code: 6, out: '', err: `${said.join('')}database busy\n` })
  assert.deepEqual(answers, [])
})

test('a body is sent again as well', async () => {
  answers = [plain(503, 'busy', { 'retry-after': '0' }), plain(409, 'no')]
  stub.heard.length = 0
  const { code } = await ctb(['policy', 'try', '-f', '-'], { input: 'kind: A\n' })
  assert.equal(code, 5)
  assert.deepEqual(
    stub.heard.map(({ method, path, body, headers }) => [method, path, body, headers['content-type']]),
    Array(2).fill(['POST', '/networkpolicy/try', 'kind: A\n', 'application/yaml']),
  )
})

test('what is no answer of a broker is 6, and no token goes elsewhere', async () => {
  const elsewhere = await startStub(() => MADE)
  const page = { text: '<html>sign in</html>', headers: { 'content-type': 'text/html' } }
  const cases: readonly [answer: StubAnswer, says: RegExp][] = [
    [page, /answered, but not as the broker does/],
    [{ ...page, status: 502 }, /answered 502$/m],
    [{ status: 302, headers: { location: `${elsewhere.url}/` } }, /answered 302$/m],
    ['reset', /cannot be reached/],
    ['cut', /cannot be reached|not as the broker|arrive whole/],
  ]
  for (const [answer, says] of cases) {
    answers = [answer]
    const { code, out, err } = await ctb(WORDS)
    assert.deepEqual([code, out], [6, ''], err)
    assert.match(err, says)
    assert.doesNotMatch(err, /sign in|^ {4}at /m)
  }
  assert.equal(elsewhere.heard.length, 0)
  answers = [{ json: { items: [] } }]
  const tried = await ctb(['policy', 'try', '-f', '-'], { input: 'kind: A\n' })
  assert.deepEqual([tried.code, tried.err], [6, 'the answer is not that of a broker\n'])
})

test('an answer that ends early is 6, and nothing of it is written', async () => {
  const early = http.createServer((_, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/yaml', 'content-length': '100' })
    outgoing.write('kind: ', () => outgoing.destroy())
  })
  await once(early.listen(0, '127.0.0.1'), 'listening')
  after(() => early.close())
  const { code, out, err } = await ctbOf(`http://127.0.0.1:${(early.address() as AddressInfo).port}`)(WORDS)
  assert.deepEqual([code, out], [6, ''])
  assert.match(err, /^the answer did not arrive whole: /)
})

test('a broker that is not there is 6, by address and by a name of several addresses', async () => {
  const gone = await startStub(() => MADE)
  await gone.close()
  for (const server of [gone.url, gone.url.replace('127.0.0.1', 'localhost')]) {
    const { code, err } = await ctbOf(server)(WORDS)
    assert.equal(code, 6)
    assert.match(err, /^http:\S+ cannot be reached \(--server, CTB_SERVER\): .*ECONNREFUSED/)
  }
})

test('an address that is none is 2; secrets in addresses, tokens and arguments are never shown', async () => {
  const secret = 'dont-show-me'
  const cases: readonly [words: string[], env: NodeJS.ProcessEnv, code: number, says: RegExp][] = [
    [['--server', 'broker'], {}, 2, /^--server: expected an address/],
    [[], { CTB_SERVER: 'ftp://broker' }, 2, /^CTB_SERVER: expected an address/],
    [['--server', `http://user:${secret}@127.0.0.1:1`], {}, 2, /no user and password/],
    [[], { CTB_TOKEN: `${secret}\u0001` }, 4, /^CTB_TOKEN: no header can carry the token/],
    [['--token-file', fileOf('bad', `${secret}\n${secret}`)], {}, 4, /no header can carry the token/],
    [['--token-file', fileOf('empty', '\n')], {}, 4, /empty: expected a token/],
    [['--token-file', pathOf('nowhere')], {}, 2, /there is no such file/],
    [['--token', secret], {}, 2, /No flag registered for --token/],
    [[`--token=${secret}`], {}, 2, /No flag registered for --token/],
    [['--ca', fileOf('ca.pem', 'none')], {}, 2, /expected certificates as PEM/],
  ]
  for (const [words, env, code, says] of cases) {
    const done = await ctb([...WORDS, ...words], { env })
    assert.deepEqual([done.code, done.out], [code, ''], done.err)
    assert.match(done.err, says)
    assert.ok(!done.err.includes(secret), done.err)
  }
  answers = [plain(401, 'missing or invalid bearer token')]
  const { err } = await ctb(WORDS)
  assert.equal(err, 'missing or invalid bearer token\n')
  assert.ok(!err.includes(TOKEN))
})

const noOpenssl = spawnSync('openssl', ['version']).status === 0 ? false : 'needs openssl'

test('--ca trusts a certificate that the machine does not', { skip: noOpenssl }, async () => {
  const [key, cert] = [pathOf('key.pem'), pathOf('cert.pem')]
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=broker', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
  ])
  assert.equal(made.status, 0, String(made.stderr))
  const server = https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, outgoing) =>
    outgoing.writeHead(200, { 'content-type': 'application/yaml' }).end('kind: NetworkPolicy\n'),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  after(() => server.close())
  const secure = ctbOf(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const refused = await secure(WORDS)
  assert.equal(refused.code, 6)
  assert.match(refused.err, /self-signed certificate/)
  assert.deepEqual(await secure([...WORDS, '--ca', cert]), { code: 0, out: 'kind: NetworkPolicy\n', err: '' })
})

test('Ctrl-C ends a wait with 130', async () => {
  answers = ['hang']
  stub.heard.length = 0
  const child = spawn(process.execPath, [...PROGRAM, ...WORDS], { env: { CTB_SERVER: stub.url }, stdio: 'ignore' })
  const exited = once(child, 'exit')
  await until('it has asked', () => stub.heard.length > 0)
  child.kill('SIGINT')
  assert.deepEqual(await exited, [130, null])
})
