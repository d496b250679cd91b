/** Flows as a stream: what is written where the stream ends as it should, and where it does not. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import test from 'node:test'
import { progressOf } from '../../wrangler-free-deploy/cli/output/progress.ts'
import { residentMb } from '../support/broker.ts'
import { until } from '../support/until.ts'
import { startCluster } from './cluster.ts'
import { inProcess } from './in-process.ts'
import { HOSTILE } from './seed/flows.ts'
import { send, startStreaming } from './streaming.ts'
import { PROGRAM, pathOf, run, TOKEN } from './support.ts'

const LINES = { 'content-type': 'application/x-ndjson' }
const TABLE = { 'content-type': 'text/csv; charset=utf-8; header=present' }
const FACTS = { nextAfter: null, observedSince: '2026-01-31T09:00:00', observedUntil: '2026-02-01T00:00:00' }
const endLine = (count: number, unstamped = 0) =>
  `${JSON.stringify({ end: true, count, ...FACTS, unstamped, resume: 'abc' })}\n`

let answer: (outgoing: ServerResponse) => unknown
const stub = await startStreaming((_, outgoing) => answer(outgoing))
const ctb = inProcess(stub.url)
const cluster = await startCluster()
const real = inProcess(cluster.url)

test('rows are those of the API, without its last line, which is told', async () => {
  const headers = { authorization: `Bearer ${TOKEN}` }
  const lines = await cluster.get('/flows', { headers: { ...headers, accept: LINES['content-type'] } })
  const rows = lines.text.split('\n').slice(0, -2)
  assert.deepEqual((await real(['flows', '-o', 'ndjson'])).out.trimEnd().split('\n'), rows)
  const table = await cluster.get('/flows', { headers: { ...headers, accept: 'text/csv' } })
  assert.equal((await real(['flows', '-o', 'csv'])).out, table.text)
  const bare = await real(['flows', '-o', 'csv', '--no-headers'])
  assert.equal(bare.out, table.text.slice(table.text.indexOf('\n') + 1))
  assert.match(bare.err, /^16 flows\nflows are kept since \S+Z\n$/)
  for (const filter of ['--label', '--from-workload', '--to-node']) {
    const { err } = await real(['flows', '-o', 'csv', filter, filter === '--label' ? 'app=web' : 'shop/web'])
    assert.match(err, /^flows of which nobody knows whether they match are left out: -o ndjson counts them$/m, filter)
  }
  const few = await real(['flows', '-o', 'ndjson', '--limit', '2', '--fields', 'uuid'])
  assert.equal(
    few.out,
    '{"uuid":"00000000-0000-4000-8000-000000000016"}\n{"uuid":"00000000-0000-4000-8000-000000000015"}\n',
  )
  assert.match(few.err, /^2 flows\n.*\nthere may be more: see --limit\n$/)
})

test('rows come as they are, however they are split; the last line says what is missing', async () => {
  const rows = ['{"pod_name":"é\\n"}\n', '{"pod_name":"\\"end\\":true"}\n'].join('')
  const bytes = Buffer.from(rows + endLine(2, 3))
  answer = async (outgoing) => {
    outgoing.writeHead(200, LINES)
    for (const byte of bytes) await send(outgoing, Buffer.of(byte))
    outgoing.end()
  }
  const { code, out, err } = await ctb(['flows', '-o', 'ndjson'])
  assert.deepEqual([code, out], [0, rows])
  assert.equal(
    err,
    '2 flows\nflows are kept since 2026-01-31T09:00:00Z\n' +
      '3 flows left out: no workload, label or node was recorded to put the filter to\n',
  )
})

test('a limit larger than that of the route is kept by reading no further', async () => {
  const [asked, row, cell] = [20_001, '{"uuid":"a"}\n', '"a\n""b"\r\n']
  answer = (outgoing) => void outgoing.writeHead(200, LINES).write(row.repeat(asked + 5))
  const lines = await ctb(['flows', '-o', 'ndjson', '--limit', String(asked)])
  assert.deepEqual([lines.code, lines.out], [0, row.repeat(asked)])
  answer = (outgoing) => void outgoing.writeHead(200, TABLE).write(`uuid\r\n${cell.repeat(asked + 5)}`)
  const table = await ctb(['flows', '-o', 'csv', '--limit', String(asked)])
  assert.deepEqual([table.code, table.out], [0, `uuid\r\n${cell.repeat(asked)}`])
  assert.match(table.err, /^20001 flows\n.*\nthere may be more: see --limit\n$/)
})

test('a list that ends early is 7, and its file does not appear', async () => {
  const cases: readonly [format: string, says: RegExp, answer: typeof answer][] = [
    ['ndjson', /after 1 flow.*: it has no last line$/m, (one) => one.writeHead(200, LINES).end('{"uuid":"a"}\n')],
    ['ndjson', /after 0 flows.*: it has no last line$/m, (one) => one.writeHead(200, LINES).end()],
    ['ndjson', /after 1 flow.*: it ends within a row$/m, (one) => one.writeHead(200, LINES).end('{"uuid":"a"}\n{"')],
    [
      ...(['ndjson', /after \d flows?.*: aborted$/m] as const),
      async (one) => {
        await send(one.writeHead(200, LINES), '{"uuid":"a"}\n{"')
        one.destroy()
      },
    ],
    [
      ...(['csv', /after \d flows?.*: aborted$/m] as const),
      async (one) => {
        await send(one.writeHead(200, TABLE), 'uuid\r\na\r\n')
        one.destroy()
      },
    ],
  ]
  for (const [n, [format, says, how]] of cases.entries()) {
    answer = how
    const file = pathOf(`early-${n}`)
    const toFile = await ctb(['flows', '-o', format, '--out', file])
    assert.deepEqual([toFile.code, toFile.out], [7, ''])
    assert.match(toFile.err, says)
    assert.match(toFile.err, /^the list ended early, after \d flows?: \S+early-\d\.partial has them: /)
    assert.deepEqual([existsSync(file), existsSync(`${file}.partial`)], [false, true])
    const { code, err } = await ctb(['flows', '-o', format])
    assert.equal(code, 7)
    assert.match(err, /^the list ended early, after \d flows?: [ia]/)
  }
})

test('a file appears when it is whole, and an earlier one stays until then', async () => {
  const file = pathOf('flows.csv')
  assert.deepEqual(await real(['flows', '-o', 'csv', '--out', file]).then(({ code, out }) => [code, out]), [0, ''])
  const whole = readFileSync(file)
  assert.equal(whole.toString(), (await real(['flows', '-o', 'csv'])).out)
  answer = (outgoing) => outgoing.writeHead(200, LINES).end('{}\n')
  assert.equal((await ctb(['flows', '-o', 'ndjson', '--out', file])).code, 7)
  assert.deepEqual(readFileSync(file), whole)
  const refused = await real(['flows', '-o', 'ndjson', '--out', pathOf('no/folder')])
  assert.equal(refused.code, 2)
  assert.match(refused.err, /^--out \S+: there is no such file$/m)
  const folder = await real(['flows', '-o', 'ndjson', '--out', pathOf('.')])
  assert.deepEqual([folder.code, folder.err.includes('this is a folder')], [2, true])

  // What is no file is not replaced, and a link leads to the same file, which keeps its mode.
  const link = pathOf('link.csv')
  symlinkSync(file, link)
  chmodSync(file, 0o600)
  writeFileSync(file, '')
  assert.equal((await real(['flows', '-o', 'csv', '--out', link])).code, 0)
  assert.deepEqual([readFileSync(file), statSync(file).mode & 0o777], [whole, 0o600])
  assert.ok(lstatSync(link).isSymbolicLink())
  const [pipe, read] = [pathOf('pipe'), pathOf('read')]
  execFileSync('mkfifo', [pipe])
  const reader = spawn('sh', ['-c', 'cat "$1" > "$2"', 'sh', pipe, read])
  assert.equal((await real(['flows', '-o', 'csv', '--out', pipe])).code, 0)
  await new Promise((resolve) => reader.once('close', resolve))
  assert.deepEqual([readFileSync(read), lstatSync(pipe).isFIFO()], [whole, true])

  if (!existsSync('/dev/full')) return
  symlinkSync('/dev/full', pathOf('full.partial'))
  const full = await real(['flows', '-o', 'ndjson', '--out', pathOf('full')])
  assert.equal(full.code, 7)
  assert.match(full.err, /^--out \S+full: ENOSPC/m)
})

test('on a terminal nothing of a stream acts on it', async () => {
  for (const format of ['ndjson', 'csv']) {
    const { out } = await real(['flows', '-o', format], { columns: 80 })
    assert.doesNotMatch(out, /[^\P{C}\n]/u)
    if (format === 'ndjson')
      assert.ok(
        out
          .trimEnd()
          .split('\n')
          .some((line) => JSON.parse(line).pod_name === HOSTILE),
      )
  }
})

test('what no list has is refused', async () => {
  for (const format of ['table', 'wide', 'name']) {
    const { code, err } = await real(['flows', '-o', format, '--fields', 'uuid'])
    assert.equal(code, 2)
    assert.match(err, /^--fields: expected -o json/)
  }
  assert.equal((await real(['flows', '-o', 'ndjson', '--fields', 'colour'])).code, 2)
  assert.match(
    (await real(['flows', '-o', 'csv', '--limit', '0'])).err,
    /^--limit: expected a number from 1 on, or all/,
  )
})

test('the rate is shown now and then, where somebody can see it', async () => {
  const shown: string[] = []
  const tell = progressOf((text) => shown.push(text), 0)
  tell(5)
  assert.match(shown.join(), /^5 rows, \d+ a second$/)
  progressOf(null, 0)(5)
  progressOf((text) => shown.push(text))(6)
  assert.equal(shown.length, 1)
})

/** A list of so many flows of 800 bytes; `beforeEnd` is waited for before its last line. */
const longList = (flows: number, beforeEnd: () => Promise<unknown>) => async (outgoing: ServerResponse) => {
  const piece = `${JSON.stringify({ uuid: 'u', pod_name: 'x'.repeat(780) })}\n`.repeat(1_000)
  outgoing.writeHead(200, LINES)
  for (let n = 0; n < flows / 1_000; n++) if (!outgoing.write(piece)) await once(outgoing, 'drain')
  await beforeEnd()
  outgoing.end(endLine(flows))
}

test('the memory of a long export is bounded', async () => {
  const [flows, file] = [100_000, pathOf('long.ndjson')]
  const env = { PATH: process.env.PATH, CTB_SERVER: stub.url, CTB_TOKEN: TOKEN }
  let peak = 0
  answer = longList(flows, async () => {
    await until('the rows are in the file', () => statSync(`${file}.partial`).size > flows * 790)
    peak = residentMb(child.pid!)?.peak ?? 0
  })
  const child = spawn(process.execPath, [...PROGRAM, 'flows', '-o', 'ndjson', '--out', file], { env, stdio: 'ignore' })
  assert.deepEqual(await once(child, 'exit'), [0, null])
  assert.ok(peak < 80, `${peak} MiB`)
})

test('a reader that has enough is no error', async () => {
  answer = longList(5_000, async () => {})
  const command = `"$@" | head -n 1; echo "$?" "\${PIPESTATUS[0]}"`
  const env = { CTB_SERVER: stub.url, CTB_TOKEN: TOKEN }
  const words = ['-c', command, 'sh', process.execPath, ...PROGRAM, 'flows', '-o', 'ndjson']
  const { out, err } = await run('bash', ['--norc', ...words], { env })
  assert.match(out, /^\{"uuid".*\}\n0 0\n$/)
  assert.equal(err, '')
})
