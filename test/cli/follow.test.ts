/** Following flows over ends, breaks and restarts of both sides. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import test, { after } from 'node:test'
import { lateResolve } from '../../jobs/late-resolve.ts'
import { runPass } from '../../jobs/pass.ts'
import { close, listen } from '../../lib/http/server/listen.ts'
import { open, partsOf } from '../../wrangler-free-deploy/cli/connection/ask.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { becomes, until } from '../support/until.ts'
import { inProcess } from './in-process.ts'
import { type Asked, send, startStreaming } from './streaming.ts'
import { fileOf, PROGRAM, pathOf, TOKEN } from './support.ts'

// Followers wait for the oldest transaction of the server, so no other test may run one: a server of our own.
delete process.env.BROKER_TEST_URL
const broker = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '14', ...TOKENS })
let { server, address } = await listen(broker.app.fetch, [{ host: '127.0.0.1', port: 0 }])
after(() => close(server, 0))
const url = `http://127.0.0.1:${address.port}`
const real = inProcess(url)

const naiveNow = () => new Date().toISOString().slice(0, 19)

let n = 0
/** Stores flows, and returns their names. */
async function store(count: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => `flow-${++n}`)
  const flows = names.map((uuid, i) => ({
    ...{ uuid, pod_name: 'web-1', pod_namespace: 'shop', pod_ip: '10.0.0.1', pod_port: '0', ip_protocol: 'TCP' },
    ...{ traffic_type: 'EGRESS', traffic_in_out_ip: '192.0.2.1', traffic_in_out_port: String(n - count + i + 1) },
    ...{ decision: 'ALLOW', time_stamp: naiveNow() },
  }))
  const answer = await broker.post('/pod/traffic/batch', flows, { token: TOKENS.BROKER_TOKEN_INGEST })
  assert.equal(answer.status, 200, answer.text)
  return names
}

const running = new Set<ChildProcess>()
after(() => {
  for (const child of running) child.kill('SIGKILL')
})

/** A follow as a process. */
function start(words: readonly string[], server = url) {
  const env = { PATH: process.env.PATH, CTB_SERVER: server, CTB_TOKEN: TOKEN }
  const child = spawn(process.execPath, [...PROGRAM, 'flows', '-f', ...words], { env })
  running.add(child)
  const seen = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    seen.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    seen.err += text
    assert.ok(!text.includes(TOKEN))
  })
  const closed = once(child, 'close').then(([code, signal]) => {
    running.delete(child)
    return { code, signal }
  })
  return {
    seen,
    closed,
    stopReading: () => child.stdout.destroy(),
    rows: () => seen.out.split('\n').slice(0, -1),
    async end(signal: NodeJS.Signals) {
      child.kill(signal)
      return closed
    },
  }
}

test('a follow goes on over the end of its stream, a break and a restart of the broker', async () => {
  const file = pathOf('place')
  const follow = start(['-o', 'name', '--resume-file', file])
  await until('it has a place', () => existsSync(file))
  const stored = await store(3)
  await becomes(follow.rows, [...stored])

  broker.deps.followers.longestMs = 0
  await until('the stream ended', () => follow.seen.err.includes('the stream ended: goes on at once'))
  broker.deps.followers.longestMs = 9 * 60_000
  stored.push(...(await store(2)))
  await becomes(follow.rows, stored)

  server.closeAllConnections()
  await until('the stream broke', () => follow.seen.err.includes('the stream broke: '))
  stored.push(...(await store(2)))
  await becomes(follow.rows, stored)

  await close(server, 0)
  stored.push(...(await store(2)))
  await until('it asks in vain', () => follow.seen.err.includes('cannot be reached'))
  ;({ server } = await listen(broker.app.fetch, [{ host: '127.0.0.1', port: address.port }]))
  stored.push(...(await store(2)))
  await becomes(follow.rows, stored)

  assert.deepEqual(await follow.end('SIGINT'), { code: 130, signal: null })
  stored.push(...(await store(2)))
  const next = start(['-o', 'name', '--resume-file', file])
  await becomes(next.rows, stored.slice(-2))
  assert.equal(next.seen.err, `goes on from ${file}\n`)
  await next.end('SIGINT')
})

test('a flow of which more becomes known comes again, as an update', async () => {
  const file = pathOf('updates')
  const follow = start(['--utc', '--resume-file', file])
  await until('it has a place', () => existsSync(file))
  await store(1)
  await until('the flow', () => follow.rows().length === 2)
  const svc = { svc_ip: '192.0.2.1', svc_name: 'db', svc_namespace: 'shop', time_stamp: naiveNow() }
  assert.equal((await broker.post('/svc/spec', svc, { token: TOKENS.BROKER_TOKEN_INGEST })).status, 200)
  const { config, log } = broker.deps
  await runPass(lateResolve, { config, db: broker.db, log, signal: AbortSignal.timeout(60_000) })
  await until('the update', () => follow.rows().some((row) => row.includes('update')))
  await follow.end('SIGINT')
  assert.match(follow.rows()[1]!, /^\S+Z {2}new {5}ALLOW {4}shop\/web-1 +unresolved 192\.0\.2\.1 +\d+ +TCP {4}from$/)
  assert.match(follow.rows()[2]!, /^\S+Z {2}update {2}ALLOW {4}shop\/web-1 +shop\/Service\/db +\d+ +TCP {4}from$/)
})

test('over kill -9 no flow is missing, and each that was kept comes once', async () => {
  const [file, rows] = [pathOf('killed'), [] as string[]]
  const begin = await store(1)
  const stored = [...begin]
  for (let round = 0; round < 3; round++) {
    const follow = start(['-o', 'name', '--last', '1h', '--resume-file', file])
    const place = existsSync(file) ? readFileSync(file, 'utf8') : ''
    stored.push(...(await store(5)))
    await until('it has the flows', () => follow.rows().includes(stored.at(-1)!))
    await until('it has kept its place', () => readFileSync(file, 'utf8') !== place)
    assert.deepEqual(await follow.end('SIGKILL'), { code: null, signal: 'SIGKILL' })
    rows.push(...follow.rows())
  }
  assert.deepEqual(rows.filter((row) => stored.includes(row)).sort(), stored.sort())
  assert.equal(new Set(rows).size, rows.length)
})

test('killed at any moment, only flows of the last group may come twice', async () => {
  const [file, rounds] = [pathOf('any-moment'), [] as string[][]]
  const stored: string[] = []
  let isStoring = true
  const storing = (async () => {
    while (isStoring) stored.push(...(await store(3)))
  })()
  for (let round = 0; round < 3; round++) {
    const follow = start(['-o', 'name', '--last', '1h', '--resume-file', file])
    await until('it has more', () => follow.rows().length > 3)
    await follow.end('SIGKILL')
    rounds.push(follow.rows())
  }
  isStoring = false
  await storing
  const last = start(['-o', 'name', '--last', '1h', '--resume-file', file])
  await until('it has all', () => [...rounds.flat(), ...last.rows()].includes(stored.at(-1)!))
  await last.end('SIGKILL')
  const seen = new Set<string>()
  let before: readonly string[] = []
  for (const rows of [...rounds, last.rows()]) {
    const again = rows.filter((row) => seen.has(row))
    assert.deepEqual(again, again.length === 0 ? [] : before.slice(-again.length))
    for (const row of rows) seen.add(row)
    before = rows
  }
  assert.deepEqual(
    stored.filter((name) => !seen.has(name)),
    [],
  )
})

test('a place that the broker does not know is 7, with what to do; one of other filters is 2', async () => {
  const file = pathOf('of-another')
  const follow = start(['-o', 'name', '--resume-file', file])
  await until('it has a place', () => existsSync(file))
  await follow.end('SIGINT')
  const token = readFileSync(file, 'utf8').trim()
  const keys = JSON.parse(Buffer.from(token, 'base64url').toString())
  const changed = (index: number, value: unknown) =>
    Buffer.from(JSON.stringify(keys.with(index, value))).toString('base64url')
  for (const [place, says] of [
    [changed(1, 'another'), /the token is of another database or time line/],
    [changed(3, 0), /flows are kept for 14 days, and the token is older/],
  ] as const) {
    const old = fileOf('old', `${place}\n`)
    const { code, out, err } = await real(['flows', '-f', '--resume-file', old])
    assert.deepEqual([code, out], [7, ''])
    assert.match(err, says)
    assert.ok(err.endsWith(`remove ${old} and follow again with --since or --last\n`), err)
    assert.equal(readFileSync(old, 'utf8'), `${place}\n`)
  }
  const other = await real(['flows', '-f', '-n', 'shop', '--resume-file', file])
  assert.deepEqual([other.code, other.out], [2, ''])
  assert.match(other.err, /^--resume-file \S+: .*resume: it belongs to another filter$/m)
})

const FLOW = {
  ...{ uuid: 'a', time_stamp: '2026-01-31T09:00:00', decision: 'DROP', traffic_type: 'EGRESS', ip_protocol: 'TCP' },
  ...{ pod_namespace: 'shop', pod_name: 'web-1', drop_cause: null, syn_retries: null, update: false },
  from: { kind: 'pod', namespace: 'shop', name: 'web-1', workload: 'Deployment/web', ip: '10.0.0.1', port: '0' },
  to: { kind: 'external', namespace: null, name: null, workload: null, ip: '192.0.2.1', port: '443' },
}
const lines = (...all: object[]) => all.map((line) => `${JSON.stringify(line)}\n`).join('')

type Reply = (outgoing: ServerResponse) => unknown
const streamOf =
  (text: string, isCut = false): Reply =>
  async (outgoing) => {
    await send(outgoing.writeHead(200, { 'content-type': 'application/x-ndjson' }), text)
    if (isCut) outgoing.destroy()
    else outgoing.end()
  }
const refusal =
  (status: number, text: string, headers = {}): Reply =>
  (outgoing) =>
    outgoing.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(text)
const GONE = refusal(410, 'resume: too old')

let replies: Reply[] = []
const stub = await startStreaming((_: Asked, outgoing) => (replies.shift() ?? GONE)(outgoing))
const ctb = inProcess(stub.url)

async function follow(words: readonly string[], ...given: Reply[]) {
  replies = given
  stub.asked.length = 0
  const done = await ctb(['flows', '-f', ...words])
  assert.ok(!done.err.includes(TOKEN))
  return { ...done, asked: stub.asked.map(({ query }) => query) }
}

test('flows are written when the token behind them is there, and those behind it are asked for again', async () => {
  const file = pathOf('groups')
  const { code, out, err, asked } = await follow(
    ['-o', 'ndjson', '--since', '2026-01-01T00:00:00Z', '--resume-file', file],
    streamOf(lines({ heartbeat: true, resume: 't0' }, FLOW, { resume: 't1' }, { ...FLOW, uuid: 'b' })),
    streamOf(lines({ ...FLOW, uuid: 'b' }, { ...FLOW, update: true }, { end: true, count: 2, resume: 't2' })),
  )
  assert.equal(code, 7)
  assert.equal(out, lines(FLOW, { ...FLOW, uuid: 'b' }, { ...FLOW, update: true }))
  assert.deepEqual(asked, [
    { since: '2026-01-01T00:00:00Z', follow: 'true' },
    { follow: 'true', resume: 't1' },
    { follow: 'true', resume: 't2' },
  ])
  assert.equal(readFileSync(file, 'utf8'), 't2\n')
  assert.equal(
    err,
    `the stream broke: it has no last line: goes on at once
the stream ended: goes on at once
--resume-file ${file}: resume: too old
remove ${file} and follow again with --since or --last
`,
  )
})

test('a connection that is reset, and 503 for any time, end no follow; a token that is refused does', async () => {
  const busy = refusal(503, 'too many', { 'retry-after': '0' })
  const { code, out, err } = await follow(
    ['-o', 'name'],
    ...[busy, streamOf(lines(FLOW, { resume: 't1' }), true)],
    ...[busy, busy, busy, busy, busy, refusal(502, '<html>')],
    ...[streamOf(lines({ ...FLOW, uuid: 'b' }, { end: true, count: 1, resume: 't2' }))],
    refusal(401, 'missing or invalid bearer token'),
  )
  assert.deepEqual([code, out.replace(/^a\n/, '')], [4, 'b\n'])
  const said = err.split('\n')
  assert.equal(said[0], 'too many: asked again in 0 s (1 of 3)')
  assert.match(said[1]!, /^the stream broke: .*: goes on (at once|in 0\.25 s)$/)
  assert.match(err, /^too many: goes on in 0\.(25|5) s$/m)
  assert.equal(said.at(-2), 'missing or invalid bearer token')
})

test('flows that could not be written keep no place', async () => {
  const file = pathOf('unread')
  let isReading = true
  replies = [
    async (outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'application/x-ndjson' })
      await send(outgoing, lines({ heartbeat: true, resume: 't0' }))
      await until('nobody reads', () => !isReading)
      outgoing.write(lines(FLOW, { resume: 't1' }))
    },
  ]
  const unread = start(['-o', 'name', '--resume-file', file], stub.url)
  await until('it has a place', () => existsSync(file))
  unread.stopReading()
  isReading = false
  assert.deepEqual([await unread.closed, unread.seen.err], [{ code: 0, signal: null }, ''])
  assert.equal(readFileSync(file, 'utf8'), 't0\n')
})

test('what cannot begin does not go on by itself', async () => {
  const busy = refusal(503, 'too many', { 'retry-after': '0' })
  assert.equal((await follow([], busy, busy, busy, busy)).code, 6)
  assert.equal((await follow([], streamOf('null\n'))).code, 7)
  const gone = await follow([], GONE)
  assert.deepEqual([gone.code, gone.err], [7, 'resume: too old\nfollow again with --since or --last\n'])
})

test('rows of a table have their event, and keep their columns', async () => {
  const more = { ...FLOW, update: true, decision: 'ALLOW', from: { ...FLOW.from, name: 'x'.repeat(40) } }
  const stream = streamOf(lines(FLOW, { resume: 't1' }, more, { resume: 't2' }))
  const table = await follow(['--utc'], stream, GONE)
  const row = (...cells: string[]) => [20, 6, 7, 32, 32, 5, 5, 0].map((width, i) => cells[i]!.padEnd(width)).join('  ')
  const [time, to] = ['2026-01-31T09:00:00Z', 'external 192.0.2.1']
  assert.deepEqual(table.out.split('\n'), [
    row('TIME', 'EVENT', 'VERDICT', 'FROM', 'TO', 'PORT', 'PROTO', 'SEEN BY'),
    row(time, 'new', 'DROP', 'shop/web-1', to, '443', 'TCP', 'from'),
    row(time, 'update', 'ALLOW', `shop/${'x'.repeat(40)}`, to, '443', 'TCP', 'from'),
    '',
  ])
  const path = await follow(['-o', 'jsonpath={.uuid} {.to.port}{"\\n"}'], stream, GONE)
  assert.equal(path.out, 'a 443\na 443\n')
  assert.match((await follow(['-o', 'wide', '--no-headers'], stream, GONE)).out, /^\S+ \S+ +new .* a\n/)
})

test('what a follow does not have is 2', async () => {
  const cases: readonly [words: string[], says: RegExp][] = [
    [['--until', '1h'], /^--until: a follow has none$/m],
    [['--limit', '5'], /^--limit: a follow has none$/m],
    [['--out', pathOf('x')], /^--out: a follow has none$/m],
    [['-o', 'csv'], /^--output: a follow has table, wide/m],
    [['-o', 'json'], /^--output: a follow has table, wide/m],
    [['--fields', 'uuid'], /^--fields: expected/m],
    [['--resume-file', fileOf('no-token', 'no token\n')], /^--resume-file \S+: expected what a follow wrote$/m],
    [['--resume-file', pathOf('.')], /^\S+: expected a file, this is a folder$/m],
  ]
  for (const [words, says] of cases) {
    const { code, out, err, asked } = await follow(words)
    assert.deepEqual([code, out, asked], [2, '', []], err)
    assert.match(err, says)
  }
  assert.match((await ctb(['flows', '--resume-file', 'x'])).err, /^--resume-file: expected --follow with it$/m)
  const nowhere = await follow(['--resume-file', pathOf('no/folder')], streamOf(lines({ resume: 't1' })))
  assert.deepEqual([nowhere.code, nowhere.out], [2, ''])
  assert.match(nowhere.err, /^--resume-file \S+: there is no such file$/m)
})

test('the request can be printed, with the place where it goes on', async () => {
  const curl = `curl -sSN -H 'Accept: application/x-ndjson' -H "Authorization: Bearer $CTB_TOKEN" '${stub.url}/flows?`
  const words = ['--print-request', '-n', 'shop', '--since', '2026-01-01T00:00:00Z']
  const begin = await follow([...words, '--resume-file', pathOf('none-yet')])
  assert.equal(begin.out, `${curl}namespace=shop&since=2026-01-01T00%3A00%3A00Z&follow=true'\n`)
  const next = await follow([...words, '--resume-file', fileOf('some', 't1\n')])
  assert.deepEqual([next.out, next.asked], [`${curl}namespace=shop&follow=true&resume=t1'\n`, []])
})

test('a stream that falls silent is given up', async () => {
  replies = [streamOf('a\n'), (outgoing) => void outgoing.writeHead(200, { 'content-type': 'text/csv' }).write('a\n')]
  const question = { method: 'GET', path: ['flows'], query: {}, expects: 'text/csv' } as const
  replies.shift()
  const context = { env: { CTB_SERVER: stub.url } } as never
  const parts = partsOf(await open(context, {}, question), 50)
  assert.equal(String((await parts.next()).value), 'a\n')
  await assert.rejects(parts.next(), /silent for 0\.05 s/)
})
