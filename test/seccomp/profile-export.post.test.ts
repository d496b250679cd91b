import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import test, { after } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { listen } from '../../lib/http/server/listen.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { observe } from '../support/observed-workload.ts'
import { commentsOf, readPolicies } from '../support/policies.ts'
import { assertDatabaseBusy, assertUnauthorized, refusedBodies, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)
const { server } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

/** The resource for a body, which every parser reads alike, and its comments. */
async function edited(path: string, body: unknown) {
  const answer = await app.post(path, body)
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers.get('content-type'), 'application/yaml')
  const [resource] = readPolicies(answer.text)
  const { syscalls } = resource.spec
  assert.ok(syscalls.length <= 1)
  return { ...answer, resource, names: syscalls[0]?.names ?? [], comments: commentsOf(answer.text) }
}

/** The status and text of the answer to a raw request. */
async function sent(text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk
  })
  socket.write(text)
  await once(socket, 'close')
  return answer
}

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: without edits the answer equals that of the GET', async () => {
  const { path } = await observe(app)
  const { text, headers } = await app.get(path)
  for (const body of [
    {},
    { add: [], remove: [] },
    { add: null, remove: null, name: null, defaultAction: null, format: null, unknown: 1 },
  ]) {
    const answer = await edited(path, body)
    assert.equal(answer.text, text)
    for (const header of ['x-kguardian-capture-level', 'x-kguardian-capture-complete'])
      assert.equal(answer.headers.get(header), headers.get(header))
    assert.ok(!answer.comments.some((line) => line.includes('+[')))
  }
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: a missing body counts as an empty one', async () => {
  const { path } = await observe(app)
  const { text } = await app.get(path)
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n`
  const nothing = {
    'no header of a body': '\r\n',
    'a length of 0': 'content-length: 0\r\n\r\n',
    'a length of 0 of JSON': 'content-type: application/json\r\ncontent-length: 0\r\n\r\n',
    'a length of 0 of text': 'content-type: text/plain\r\ncontent-length: 0\r\n\r\n',
    'a length of 0 of gzip': 'content-encoding: gzip\r\ncontent-length: 0\r\n\r\n',
    'no chunks': 'transfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  }
  for (const [what, rest] of Object.entries(nothing)) {
    const answer = await sent(head + rest)
    assert.match(answer, /^HTTP\/1\.1 200 /, what)
    assert.ok(answer.endsWith(text), what)
  }
  const packed = await app.post(path, gzipSync(''), { headers: { 'content-encoding': 'gzip' } })
  assert.deepEqual([packed.status, packed.text], [200, text])
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: the observed syscalls, plus the added and without the removed ones', async () => {
  const { path, namespace } = await observe(app)
  const stored = () =>
    app.sql`select *, xmin::text, ctid::text from workload_syscalls where pod_namespace = ${namespace}`
  const was = await stored()
  const { names, comments } = await edited(path, {
    add: ['openat', 'read', 'brk', 'brk'],
    remove: ['futex', 'ptrace', 'futex'],
  })
  assert.deepEqual(names, ['brk', 'openat', 'read', 'write'])
  assert.ok(comments.includes('Edits: +[brk, openat, read] -[futex, ptrace]'))
  assert.deepEqual(
    (await edited(path, { remove: ['write'] })).comments.filter((line) => line.startsWith('Edits')),
    ['Edits: +[] -[write]'],
  )
  assert.deepEqual(await stored(), was)
  assert.deepEqual((await edited(path, {})).names, ['futex', 'read', 'write'])
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: removing all names leaves an empty list', async () => {
  const { path } = await observe(app)
  const remove = ['read', 'write', 'futex']
  assert.deepEqual((await edited(path, { remove })).resource.spec.syscalls, [])
  assert.deepEqual((await app.post(path, { remove, format: 'json' })).json.spec.syscalls, [])
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: a name that was left out can be added', async () => {
  const { path } = await observe(app, { names: ['435', 'read'] })
  assert.deepEqual((await edited(path, { add: ['clone3'] })).names, ['clone3', 'read'])
})

const syscall = fc.constantFrom(
  'read',
  'write',
  'on',
  'no',
  'y',
  'null',
  'true',
  'e1',
  'futex',
  'openat2',
  'a'.repeat(64),
)

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: random edits are set operations, in JSON and in YAML for every parser', async () => {
  const observed = ['futex', 'no', 'read']
  const { path } = await observe(app, { names: observed })
  await fc.assert(
    fc.asyncProperty(fc.array(syscall), fc.array(syscall), async (add, removed) => {
      const remove = removed.filter((one) => !add.includes(one))
      const { names, resource } = await edited(path, { add, remove })
      const model = new Set(observed)
      for (const one of add) model.add(one)
      for (const one of remove) model.delete(one)
      assert.deepEqual(names, [...model].sort())
      assert.deepEqual((await app.post(path, { add, remove, format: 'json' })).json, resource)
    }),
    { numRuns: depth(10, 50) },
  )
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: the other options are read from the body too, and the query is ignored', async () => {
  const { path } = await observe(app)
  const body = { name: 'edited', defaultAction: 'SCMP_ACT_KILL_PROCESS', format: 'json', add: ['brk'] }
  const { status, headers, json } = await app.post(`${path}?name=other&format=yaml&defaultAction=SCMP_ACT_ERRNO`, body)
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/json'])
  assert.deepEqual(
    [json.metadata.name, json.spec.defaultAction, json.spec.syscalls[0].names],
    ['edited', 'SCMP_ACT_KILL_PROCESS', ['brk', 'futex', 'read', 'write']],
  )
  const blank = await edited(path, { name: '', defaultAction: ' ', format: '' })
  assert.deepEqual(
    [blank.resource.metadata.name, blank.resource.spec.defaultAction],
    ['deployment-web', 'SCMP_ACT_LOG'],
  )
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: lists of 512 names of the greatest length', async () => {
  const { path } = await observe(app)
  const name = (letter: string) => (_: unknown, i: number) => `${letter}${i}_`.padEnd(64, letter)
  const { names } = await edited(path, {
    add: Array.from({ length: 512 }, name('a')),
    remove: Array.from({ length: 512 }, name('b')),
  })
  assert.equal(names.length, 515)
  // The limit counts the names as sent.
  assert.deepEqual((await edited(path, { add: Array(512).fill('brk') })).names, ['brk', 'futex', 'read', 'write'])
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 200: an acknowledgement is true or an affirmative word', async () => {
  const { path } = await observe(app, { pods: { 'half-seen': 'medium' } })
  for (const acknowledgePartial of [true, 'true', '1', 'yes', 'ON'])
    assert.equal((await app.post(path, { defaultAction: 'SCMP_ACT_ERRNO', acknowledgePartial })).status, 200)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 400: invalid fields', async () => {
  const { path } = await observe(app)
  const many = Array.from({ length: 513 }, (_, i) => `sys_${i}`)
  const bad: [body: unknown, says: RegExp][] = [
    ...[
      '',
      ' ',
      'Read',
      '9lives',
      '_x',
      'a-b',
      'a b',
      'a.b',
      ' read',
      'read ',
      'r\n',
      'é',
      `a${'b'.repeat(64)}`,
    ].flatMap((name): [unknown, RegExp][] => [
      [{ add: ['brk', name] }, /^Json deserialize error: add\[1\]: expected \^\[a-z\]/],
      [{ remove: [name] }, /^Json deserialize error: remove\[0\]: expected /],
    ]),
    [{ add: many }, /^Json deserialize error: add: .*512/],
    [{ remove: many }, /^Json deserialize error: remove: .*512/],
    // The count is checked before the names.
    [{ add: Array(513).fill(7) }, /^Json deserialize error: add: .*512/],
    [
      { add: ['brk', 'read'], remove: ['futex', 'read', 'brk'] },
      /^Json deserialize error: remove\[1\]: read is also in add$/,
    ],
    [{ add: 'brk' }, /add: .*expected array/],
    [{ add: [7] }, /add\[0\]: .*expected string/],
    [{ remove: {} }, /remove: .*expected array/],
    [{ format: 'xml' }, /^Json deserialize error: format: expected one of yaml, yml, json$/],
    [{ format: 7 }, /format: .*expected string/],
    [{ name: 'Upper' }, /^Json deserialize error: name: expected a DNS subdomain/],
    [{ defaultAction: 'SCMP_ACT_ALLOW' }, /^Json deserialize error: defaultAction: expected one of SCMP_ACT_LOG, /],
    ...[1, 0, [], {}].map((acknowledgePartial): [unknown, RegExp] => [
      { acknowledgePartial },
      /^Json deserialize error: acknowledgePartial: expected true, false or a string$/,
    ]),
  ]
  for (const [body, says] of bad) {
    const { status, text } = await app.post(path, body)
    assert.equal(status, 400, JSON.stringify(body).slice(0, 80))
    assert.match(text, says)
  }
  assert.equal((await app.post('/seccomp/profiles/no/such/one/export', { format: 'xml' })).status, 400)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 400: bodies that are not JSON objects', async () => {
  const { path } = await observe(app)
  // An empty body counts as missing; a name that is not valid text is reported by its position.
  const refused = refusedBodies({ name: 'a' }, 'name').filter(
    ({ what }) => what !== 'an empty body' && !/2 MiB|million deep/.test(what),
  )
  for (const { what, status, says, body, headers } of refused) {
    const answer = await app.post(path, body, headers ? { headers } : {})
    assert.equal(answer.status, status, what)
    assert.match(answer.text, says, what)
  }
  assert.equal((await app.post(path, ' ')).status, 400)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 401: no token', async () => {
  assertUnauthorized(await guarded.post('/seccomp/profiles/a/b/c/export', {}))
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 404: nothing was observed of the workload', async () => {
  const { status, text } = await app.post('/seccomp/profiles/no/such/one/export', { defaultAction: 'SCMP_ACT_KILL' })
  assert.deepEqual([status, text], [404, 'there is no seccomp profile for that workload'])
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 409: an enforcing action on a partial capture', async () => {
  const { path } = await observe(app, { pods: { 'half-seen-too': 'medium' } })
  for (const acknowledgePartial of [undefined, false, null, 'false', 'nope', '', '0']) {
    const { status, headers, text } = await app.post(path, {
      defaultAction: 'SCMP_ACT_ERRNO',
      acknowledgePartial,
      add: ['brk'],
    })
    assert.equal(status, 409, String(acknowledgePartial))
    assert.match(text, /half-seen-too at medium/)
    assert.deepEqual(
      [headers.get('x-kguardian-capture-level'), headers.get('x-kguardian-capture-complete')],
      ['medium', 'false'],
    )
  }
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 413: a body of more than a mebibyte', async () => {
  const { path } = await observe(app)
  assert.equal((await app.post(path, `{${' '.repeat(1024 * 1024 - 2)}}`)).status, 200)
  const { status, text } = await app.post(path, `{${' '.repeat(1024 * 1024 - 1)}}`)
  assert.equal(status, 413)
  assert.match(text, /1048576 bytes/)
  assert.equal(
    (await app.post(path, gzipSync(`{${' '.repeat(1024 * 1024)}}`), { headers: { 'content-encoding': 'gzip' } }))
      .status,
    413,
  )
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/export 503: the database takes too long', async () => {
  await whileRefused(guarded.sql, 'workload_syscalls', async () => {
    assertDatabaseBusy(await guarded.post('/seccomp/profiles/a/b/c/export', {}, { token: TOKENS.BROKER_TOKEN_READ }))
  })
})
