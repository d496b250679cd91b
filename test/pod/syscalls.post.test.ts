import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_SYSCALL_ENTRIES } from '../../lib/syscalls/index.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertForbidden, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)

let count = 0
const entry = (fields: Record<string, unknown> = {}) => ({
  pod_name: `web-${++count}`,
  pod_namespace: '',
  syscalls: ['read', 'write'],
  arch: 'x86_64',
  time_stamp: '2026-01-01T09:00:00',
  ...fields,
})
async function post(...entries: unknown[]) {
  const answer = await app.post('/pod/syscalls', entries)
  assert.deepEqual([answer.status, answer.text], [200, 'null'])
}
const stored = async (name: string) => (await app.get(`/pod/syscalls/${encodeURIComponent(name)}`)).json?.[0]
const names = async (name: string) => (await stored(name))?.syscalls

test('POST /pod/syscalls 200: the answer is null, even for no entries', async () => {
  await post()
  await post(entry())
})

test('POST /pod/syscalls 200: the stored names are the union of all posts, in first-seen order', async () => {
  const one = entry({ syscalls: ['write', 'read'] })
  await post(one)
  await post({ ...one, syscalls: ['openat'] })
  assert.equal(await names(one.pod_name), 'write,read,openat')
  await post({ ...one, syscalls: ['read', 'close', '435', 'write'] })
  assert.equal(await names(one.pod_name), 'write,read,openat,close,435')
})

test('POST /pod/syscalls 200: a first post without names makes a record with the empty string', async () => {
  const one = entry({ syscalls: [] })
  await post(one)
  assert.equal(await names(one.pod_name), '')
  await post({ ...one, syscalls: ['read'] })
  assert.equal(await names(one.pod_name), 'read')
})

test('POST /pod/syscalls 200: entries of one pod in one body are merged, each name once', async () => {
  const one = entry({ syscalls: ['mmap', 'read', 'mmap'] })
  await post(one, entry(), { ...one, syscalls: ['brk', 'read'] })
  assert.equal(await names(one.pod_name), 'mmap,read,brk')
})

test('POST /pod/syscalls 200: the greatest time is kept, with the namespace and the architecture of the newest entry', async () => {
  const one = entry({ time_stamp: '2026-01-01T09:00:00.5', pod_namespace: 'shop', arch: 'x86_64' })
  await post(one)
  await post({ ...one, time_stamp: '2026-01-01T09:00:00', pod_namespace: 'older', arch: 'aarch64', syscalls: ['late'] })
  assert.deepEqual(await stored(one.pod_name), {
    ...one,
    time_stamp: '2026-01-01T09:00:00.500',
    syscalls: 'read,write,late',
  })
  await post({
    ...one,
    time_stamp: '2026-01-01T09:00:00.500001',
    pod_namespace: 'newer',
    arch: 'aarch64',
    syscalls: [],
  })
  const newest = {
    ...one,
    time_stamp: '2026-01-01T09:00:00.500001',
    pod_namespace: 'newer',
    arch: 'aarch64',
    syscalls: 'read,write,late',
  }
  assert.deepEqual(await stored(one.pod_name), newest)
  const two = entry({ time_stamp: '2026-01-01T09:00:01' })
  await post(two, { ...two, time_stamp: '2026-01-01T09:00:00.999999', arch: 'aarch64', syscalls: ['old'] })
  assert.deepEqual(await stored(two.pod_name), { ...two, syscalls: 'read,write,old' })
})

test('POST /pod/syscalls 200: when times are equal, the later entry sets the namespace and the architecture', async () => {
  const one = entry({ pod_namespace: 'shop', arch: 'x86_64' })
  await post(one)
  for (const changed of [
    { arch: 'aarch64', pod_namespace: 'shop' },
    { arch: 'aarch64', pod_namespace: 'bank' },
  ]) {
    await post({ ...one, ...changed, syscalls: ['read'] })
    assert.deepEqual(await stored(one.pod_name), { ...one, ...changed, syscalls: 'read,write' })
  }
})

test('POST /pod/syscalls 200: a post that adds nothing is not written', async () => {
  const one = entry()
  await post(one)
  const version = async () =>
    (await app.sql`select xmin::text, xmax::text from pod_syscalls where pod_name = ${one.pod_name}`)[0]
  const before = await version()
  await post(one)
  await post({ ...one, syscalls: ['write'] })
  assert.deepEqual(await version(), before)
})

test('POST /pod/syscalls 200: blank pod names are skipped with a warning, the others stored', async () => {
  const one = entry()
  await post(entry({ pod_name: '' }), one, entry({ pod_name: ' \t' }))
  assert.equal(await names(one.pod_name), 'read,write')
  assert.ok(app.logged.some((line) => line.entries === 2 && String(line.msg).includes('without a pod name')))
})

test('POST /pod/syscalls 200: blank names are skipped, the entry and its other names stored', async () => {
  const one = entry({ syscalls: ['', 'read', ' ', '\t\u2003', 'write', ' '.repeat(65)] })
  const none = entry({ syscalls: ['', '  '] })
  await post(one, none)
  assert.equal(await names(one.pod_name), 'read,write')
  assert.equal(await names(none.pod_name), '')
  await post({ ...one, syscalls: [' ', 'close'] })
  assert.equal(await names(one.pod_name), 'read,write,close')
})

test('POST /pod/syscalls 413: more entries than the limit, and nothing is written', async () => {
  const one = entry()
  const answer = await app.post('/pod/syscalls', Array(MAX_SYSCALL_ENTRIES + 1).fill(one))
  assert.deepEqual([answer.status, answer.text], [413, `body has more than ${MAX_SYSCALL_ENTRIES} elements`])
  assert.equal(await stored(one.pod_name), undefined)
  await post(...Array(MAX_SYSCALL_ENTRIES).fill(one))
  assert.equal(await names(one.pod_name), 'read,write')
})

test('POST /pod/syscalls 200: simultaneous posts of one pod lose no name', async () => {
  const one = entry({ syscalls: [] })
  const calls = Array.from({ length: 40 }, (_, i) => `call${i}`)
  await Promise.all(calls.map((call) => post({ ...one, syscalls: [call, 'read'] })))
  assert.deepEqual((await names(one.pod_name)).split(',').sort(), [...calls, 'read'].sort())
})

test('POST /pod/syscalls 400: a missing key, a wrong type or a bad value names index and field, and nothing is written', async () => {
  const bad: [Record<string, unknown>, string][] = [
    ...['pod_name', 'pod_namespace', 'syscalls', 'arch', 'time_stamp'].flatMap(
      (key): [Record<string, unknown>, string][] => [
        [{ [key]: undefined }, key],
        [{ [key]: null }, key],
        [{ [key]: 5 }, key],
      ],
    ),
    [{ syscalls: ['read', 5] }, 'syscalls[1]'],
    [{ syscalls: ['read,write'] }, 'syscalls[0]'],
    [{ syscalls: ['', 'a'.repeat(65)] }, 'syscalls[1]'],
    [{ syscalls: ['a'.repeat(65)] }, 'syscalls[0]'],
    [{ syscalls: Array.from({ length: 4097 }, (_, i) => `s${i}`) }, 'syscalls'],
    [{ time_stamp: '2026-02-30T00:00:00' }, 'time_stamp'],
    [{ time_stamp: '2026-01-01T00:00:00Z' }, 'time_stamp'],
    [{ pod_name: 'p'.repeat(254) }, 'pod_name'],
    [{ arch: 'a\0b' }, 'arch'],
  ]
  for (const [fields, named] of bad) {
    const good = entry()
    const answer = await app.post('/pod/syscalls', [good, entry(fields)])
    assert.equal(answer.status, 400, JSON.stringify(fields).slice(0, 80))
    assert.ok(answer.text.startsWith(`Json deserialize error: [1].${named}`), answer.text.slice(0, 120))
    assert.equal(await stored(good.pod_name), undefined)
  }
})

test('POST /pod/syscalls 400: a body that is not an array', async () => {
  for (const body of ['', '[', '{}', 'null', '7', JSON.stringify(entry())])
    assert.equal(
      (await app.request('POST', '/pod/syscalls', { body, headers: { 'content-type': 'application/json' } })).status,
      400,
      body,
    )
})

test('POST /pod/syscalls 413: over two MiB', async () => {
  const one = entry({ padding: 'x'.repeat(2 * 1024 * 1024) })
  assert.equal((await app.post('/pod/syscalls', [one])).status, 413)
  assert.equal(await stored(one.pod_name), undefined)
})

test('POST /pod/syscalls 401: no token', async () => {
  assertUnauthorized(await guarded.post('/pod/syscalls', [entry()]))
})

test('POST /pod/syscalls 403: a token without the scope', async () => {
  assertForbidden(await guarded.post('/pod/syscalls', [entry()], { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
})

test('POST /pod/syscalls 503: the database is busy', async () => {
  await whileRefused(guarded.sql, 'pod_syscalls', async () => {
    assertDatabaseBusy(await guarded.post('/pod/syscalls', [entry()], { token: TOKENS.BROKER_TOKEN_INGEST }))
  })
})
