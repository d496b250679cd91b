import assert from 'node:assert/strict'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import test, { after } from 'node:test'
import { listen } from '../../lib/http/server/listen.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertNoData, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { until } from '../support/until.ts'

const FIRST_PAGE_ROWS = 1_000
const PAGE_ROWS = 5_000
const FIRST_PAGE_KIB = 2_500

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' })
const token = TOKENS.BROKER_TOKEN_READ

const { server } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

const of = (name: string) => app.get(`/pod/traffic/${encodeURIComponent(name)}`)
const uuids = async (name: string): Promise<string[]> => {
  const answer = await of(name)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.map((row: { uuid: string }) => row.uuid)
}
const store = (rows: Record<string, unknown>[]) =>
  app.sql`insert into traffic select * from json_populate_recordset(null::traffic, ${JSON.stringify(rows)}::text::json)`
/** Stores `count` rows of a pod; the uuid of the n-th newest is `<pod>/<n>`. `alike` rows share each time. */
const storeMany = (pod: string, count: number, alike = 1) => app.sql`
  insert into traffic (uuid, pod_name, time_stamp)
  select ${pod}::text || '/' || to_char(n, 'FM000000'), ${pod}, timestamp '2024-05-01' - (n / ${alike}::int) * interval '1 microsecond'
  from generate_series(1, ${count}::int) n`
const numbers = (pod: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${pod}/${String(i + 1).padStart(6, '0')}`)
const T = (time: string) => `2024-05-01T${time}`

test('GET /pod/traffic/{name} 404: there are no rows of the pod', async () => {
  await store([{ uuid: 'other', pod_name: 'web-0', time_stamp: T('10:00:00') }])
  await store([{ uuid: 'nameless', pod_name: null, time_stamp: T('10:00:00') }])
  for (const name of ['nobody', 'web', 'web-00', 'Web-0', 'web-0 ', 'web-_', 'web%', 'null', 'batch', '*'])
    assertNoData(await of(name))
})

test('GET /pod/traffic/{name} 200: the rows of the pod have the shape and order of GET /pod/traffic', async () => {
  const rows = [
    { uuid: 'b', pod_name: 'shape', time_stamp: T('10:00:00.000002'), pod_namespace: 'shop', syn_retries: 5 },
    {
      uuid: 'z',
      pod_name: 'shape',
      time_stamp: T('10:00:00.000001'),
      peer_kind: 'pod',
      peer_resolved_at: T('10:00:00.5'),
    },
    { uuid: 'a', pod_name: 'shape', time_stamp: T('10:00:00.000001') },
    { uuid: 'Z', pod_name: 'shape', time_stamp: T('10:00:00.000001') },
  ]
  await store([...rows].reverse())
  const answer = await of('shape')
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(answer.text)))
  const list = (await app.get('/pod/traffic')).json.filter((row: { pod_name: string }) => row.pod_name === 'shape')
  assert.deepEqual(answer.json, list)
  assert.deepEqual(
    answer.json.map((row: { uuid: string }) => row.uuid),
    ['b', 'z', 'a', 'Z'],
  )
  assert.deepEqual(Object.keys(answer.json[0]), Object.keys(list[0]))
})

for (const name of ['a/b', 'a%b', 'a b', 'é', '\u{1f680}', '"\'\\', 'a?b#c', '%2F', '+', "'; drop table traffic; --"]) {
  test(`GET /pod/traffic/{name} 200: the rows of a pod named ${JSON.stringify(name)}`, async () => {
    await store([{ uuid: `named ${name}`, pod_name: name, time_stamp: T('10:00:00') }])
    assert.deepEqual(await uuids(name), [`named ${name}`])
  })
}

test('GET /pod/traffic/{name} 400: U+0000 in the name', async () => {
  const answer = await app.get('/pod/traffic/web%00')
  assert.equal(answer.status, 400)
  assert.match(answer.text, /^Path deserialize error: name: U\+0000/)
})

test('GET /pod/traffic/{name} 200: a name that is not UTF-8 matches no pod', async () => {
  for (const path of ['/pod/traffic/%ff', '/pod/traffic/%e9', '/pod/traffic/%']) assertNoData(await app.get(path))
  assert.equal((await of('web-0')).status, 200)
})

// ---- Lists of any length --------------------------------------------------------------------------------------------

const BOTH_ROWS = FIRST_PAGE_ROWS + PAGE_ROWS
const COUNTS = [FIRST_PAGE_ROWS, PAGE_ROWS, BOTH_ROWS].flatMap((rows) => [rows - 1, rows, rows + 1])
for (const count of [1, ...COUNTS, BOTH_ROWS + PAGE_ROWS, 20_001]) {
  test(`GET /pod/traffic/{name} 200: all ${count} rows are sent, each once and in order`, async () => {
    const pod = `pod-of-${count}`
    await storeMany(pod, count)
    assert.deepEqual(await uuids(pod), numbers(pod, count))
  })
}

test('GET /pod/traffic/{name} 200: rows with equal times are in order across pages', async () => {
  await storeMany('alike', 10_500, 4_000)
  const rows = (await of('alike')).json as { uuid: string; time_stamp: string }[]
  const sorted = await app.sql`select uuid from traffic where pod_name = 'alike' order by time_stamp desc, uuid desc`
  assert.deepEqual(
    rows.map(({ uuid }) => uuid),
    sorted.map(({ uuid }) => uuid),
  )
  await storeMany('at-once', 10_001, 1_000_000)
  assert.deepEqual(await uuids('at-once'), numbers('at-once', 10_001).reverse())
})

test('GET /pod/traffic/{name} 200: rows with equal times and control characters are in order across pages', async () => {
  const pod = 'awkward\u0001'
  await storeMany(pod, 10_001, 1_000_000)
  await app.sql`update traffic set pod_namespace = e'\\x01' where pod_name = ${pod}`
  assert.deepEqual(await uuids(pod), numbers(pod, 10_001).reverse())
})

test('GET /pod/traffic/{name} 200: uuids with control characters are in order', async () => {
  const uuidsOf = ['\u001f', 'a\u001fb', 'B', 'é\u0001', 'z', '0\u001f']
  await store(uuidsOf.map((uuid) => ({ uuid: `odd ${uuid}`, pod_name: 'odd\u001f', time_stamp: T('10:00:00') })))
  const sorted = await app.sql`select uuid from traffic where pod_name = ${'odd\u001f'} order by uuid desc`
  assert.deepEqual(
    await uuids('odd\u001f'),
    sorted.map(({ uuid }) => uuid),
  )
})

test('GET /pod/traffic/{name} 200: concurrent requests for many pods each get the rows of their pod', async () => {
  const counts = [1, 30, 999, 1_000, 1_001, 5_000, 2]
  await Promise.all(counts.map((count) => storeMany(`many-${count}`, count)))
  await store([{ uuid: 'control', pod_name: 'many-odd\u001f', time_stamp: T('10:00:00') }])
  const ask = async (count: number) => assert.deepEqual(await uuids(`many-${count}`), numbers(`many-${count}`, count))
  const askOdd = async () => assert.deepEqual(await uuids('many-odd\u001f'), ['control'])
  const askNobody = async () => assertNoData(await of('many-nobody'))
  for (let round = 0; round < 3; round++)
    await Promise.all([...counts, ...counts].flatMap((count) => [ask(count), askOdd(), askNobody()]))
})

/** The chunks of a streamed list, one at a time, without a socket. */
async function chunksOf(pod: string) {
  const answer = await app.app.request(`/pod/traffic/${pod}`)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-length'), null)
  return answer.body!.getReader()
}
const textOf = ({ value }: { value?: Uint8Array | undefined }) => Buffer.from(value!).toString()
const read = () => app.db.stats().gates.read

test('GET /pod/traffic/{name} 200: a page is read when the one before was taken; no connection is held in between', async () => {
  await storeMany('paged', 12_000)
  const reader = await chunksOf('paged')
  const pages: string[] = []
  // A page is sent in slices; each is a view of the buffer of its page.
  let page: ArrayBufferLike | undefined
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    assert.equal(read().inFlight, 0)
    if (next.value.buffer !== page) pages.push('')
    page = next.value.buffer
    pages.push(pages.pop() + textOf(next))
  }
  assert.equal(pages.pop(), ']')
  const rows = pages.map((page) => JSON.parse(`[${page.slice(1)}]`).length)
  assert.deepEqual(rows, [1_000, 5_000, 5_000, 1_000])
  assert.deepEqual(
    pages.map((page) => page[0]),
    ['[', ',', ',', ','],
  )
})

test('GET /pod/traffic/{name} 200: rows are added and deleted while the list is sent; each row that stays is sent once', async () => {
  await storeMany('moving', 12_000)
  const reader = await chunksOf('moving')
  let text = textOf(await reader.read())
  // New: the newest of all rows, one within the page that was sent, one within a later page. Deleted: in both.
  await store([
    { uuid: 'newest', pod_name: 'moving', time_stamp: '2030-01-01T00:00:00' },
    { uuid: 'moving/000001x', pod_name: 'moving', time_stamp: '2024-04-30T23:59:59.999999' },
    { uuid: 'moving/011000x', pod_name: 'moving', time_stamp: '2024-04-30T23:59:59.989000' },
  ])
  await app.sql`delete from traffic where uuid in ('moving/000002', 'moving/001000', 'moving/010000', 'moving/011999')`
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += textOf(next)
  const sent = JSON.parse(text).map((row: { uuid: string }) => row.uuid)
  assert.equal(new Set(sent).size, sent.length)
  const gone = new Set(['moving/010000', 'moving/011999'])
  const stayed = numbers('moving', 12_000).filter((uuid) => !gone.has(uuid))
  assert.deepEqual(
    sent.filter((uuid: string) => !uuid.endsWith('x')),
    stayed,
  )
  assert.deepEqual(
    sent.filter((uuid: string) => uuid.endsWith('x')),
    ['moving/011000x'],
  )
})

test('GET /pod/traffic/{name} 200: a list whose next page cannot be read ends with an error', async () => {
  await storeMany('cut', 12_000)
  const reader = await chunksOf('cut')
  await reader.read()
  await app.sql`alter table traffic rename to elsewhere`
  try {
    await assert.rejects(async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read());
    })
    await assert.rejects(reader.read())
  } finally {
    await app.sql`alter table elsewhere rename to traffic`
  }
  assert.ok(app.logged.some((line) => String(line.msg).startsWith('a list was cut')))
})

test('GET /pod/traffic/{name} 200: over a socket, a list that is cut is an incomplete answer', async () => {
  await storeMany('socket', 40_000)
  const request = http.get({ port, path: '/pod/traffic/socket', agent: false })
  const ended = await new Promise<{ complete: boolean; bytes: number; status: number }>((resolve, reject) => {
    request.once('error', reject)
    request.on('response', (answer) => {
      request.off('error', reject).on('error', () => {})
      let bytes = 0
      const done = () => resolve({ complete: answer.complete, bytes, status: answer.statusCode! })
      answer.once('data', (first: Buffer) => {
        answer.pause()
        bytes += first.length
        answer.on('data', (more: Buffer) => {
          bytes += more.length
        })
        answer.pause()
        app.sql`alter table traffic rename to elsewhere`.then(() => answer.resume(), reject)
      })
      answer.on('error', () => {})
      answer.on('close', done)
    })
  })
  await app.sql`alter table elsewhere rename to traffic`
  assert.equal(ended.status, 200)
  assert.equal(ended.complete, false)
  assert.ok(ended.bytes > 0)
})

test('GET /pod/traffic/{name} 200: over HTTP/1.0, a list that is cut ends with a reset of the connection', async () => {
  await storeMany('ancient', FIRST_PAGE_ROWS + 1)
  const { budget } = app.deps
  const others = await budget.acquire(budget.totalKib - FIRST_PAGE_KIB)
  const socket = net.connect(port, '127.0.0.1').on('data', () => {})
  const ended = new Promise<string>((resolve) => {
    socket
      .on('end', () => resolve('an orderly end'))
      .on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)))
  })
  socket.write('GET /pod/traffic/ancient HTTP/1.0\r\n\r\n')
  await until('the next page waits', () => budget.waiting === 1)
  await app.sql`alter table traffic rename to elsewhere`
  try {
    others()
    assert.equal(await ended, 'ECONNRESET')
  } finally {
    await app.sql`alter table elsewhere rename to traffic`
  }
})

test('GET /pod/traffic/{name} 200: over a socket, all rows are sent, and the budget is free afterwards', async () => {
  await storeMany('whole', 20_001)
  const text = await (await fetch(`http://127.0.0.1:${port}/pod/traffic/whole`)).text()
  assert.deepEqual(
    JSON.parse(text).map((row: { uuid: string }) => row.uuid),
    numbers('whole', 20_001),
  )
  await until('the budget is back', () => app.deps.budget.availableKib === app.deps.budget.totalKib)
})

test('GET /pod/traffic/{name} 200: the next page waits until the budget has room for it', async () => {
  await storeMany('charged', FIRST_PAGE_ROWS + 1)
  const { budget } = app.deps
  const others = await budget.acquire(budget.totalKib - FIRST_PAGE_KIB)
  const reader = (await fetch(`http://127.0.0.1:${port}/pod/traffic/charged`)).body!.getReader()
  let text = ''
  const take = async () => {
    for (let one = await reader.read(); !one.done; one = await reader.read()) text += Buffer.from(one.value)
  }
  const taken = take()
  await until('the first page is there', () => text.match(/"uuid"/g)?.length === FIRST_PAGE_ROWS)
  await until('the next page waits', () => budget.waiting === 1)
  others()
  await taken
  assert.equal(JSON.parse(text).length, FIRST_PAGE_ROWS + 1)
})

test('GET /pod/traffic/{name} 200: a reader that disconnects frees its share of the budget', async () => {
  await storeMany('gone', 60_000)
  await new Promise<void>((resolve, reject) => {
    const request = http.get({ port, path: '/pod/traffic/gone', agent: false }, (answer) => {
      answer.once('data', () => request.destroy())
      answer.on('error', () => {})
      answer.on('close', resolve)
    })
    request.on('error', reject)
  })
  await until('the budget is back', () => app.deps.budget.availableKib === app.deps.budget.totalKib)
  await until('no statement is under way', () => read().inFlight === 0)
})

test('GET /pod/traffic/{name} 200: HEAD of a long list has no body and frees the budget', async () => {
  await storeMany('head', PAGE_ROWS)
  const head = await app.request('HEAD', '/pod/traffic/head')
  assert.deepEqual([head.status, head.text], [200, ''])
  const answer = await fetch(`http://127.0.0.1:${port}/pod/traffic/head`, { method: 'HEAD' })
  assert.equal(answer.status, 200)
  await until('the budget is back', () => app.deps.budget.availableKib === app.deps.budget.totalKib)
})

// ---- Access and load shedding ---------------------------------------------------------------------------------------

test('GET /pod/traffic/{name} 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/traffic/web-0'))
  assertUnauthorized(await guarded.get('/pod/traffic/web%00', { token: 'unknown' }))
  assertUnauthorized(await guarded.get('/pod/traffic/batch'))
})

test('GET /pod/traffic/{name} 404: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assertNoData(await guarded.get('/pod/traffic/web-0', { token: one }))
})

test('GET /pod/traffic/{name} 404: without a name, or with more of a path, there is no such route', async () => {
  for (const path of ['/pod/traffic/', '/pod/traffic/shop/web-0', '/pod/traffic/web-0/']) {
    const answer = await guarded.get(path)
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('GET /pod/traffic/{name} 503: shed when the read budget is spent', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib)
  assertShed(await guarded.get('/pod/traffic/web-0', { token }), 2_500, 256 * 1024)
  assert.equal((await guarded.get('/pod/traffic/web%00', { token })).status, 400)
  release()
  assertNoData(await guarded.get('/pod/traffic/web-0', { token }))
  assert.equal(budget.availableKib, budget.totalKib)
})

test('GET /pod/traffic/{name} 503: the database cancels the statement', async () => {
  await whileRefused(guarded.sql, 'traffic', async () =>
    assertDatabaseBusy(await guarded.get('/pod/traffic/web-0', { token })),
  )
  assertNoData(await guarded.get('/pod/traffic/web-0', { token }))
})
