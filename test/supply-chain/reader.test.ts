/** The thread that reads payloads: its answers, and the next payload after a failure. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import test from 'node:test'
import { promisify } from 'node:util'
import { threadId, type Worker } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import { PayloadReader, type ReaderOptions } from '../../lib/supply-chain/reader.ts'
import { start, startThread } from '../../lib/supply-chain/thread.ts'
import { until } from '../support/until.ts'
import { component, finding, findingsOf, newImage, SCANNED_AT, sbomOf } from './payloads.ts'

const MAX_INFLATED = 8_388_608
const digest = newImage()
const sent = (payload: unknown, isPacked = false) => {
  const text = Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload))
  return {
    bytes: isPacked ? gzipSync(text) : text,
    isPacked,
    digest,
    maxInflatedBytes: MAX_INFLATED,
    now: Date.parse(SCANNED_AT),
  }
}

test('a payload is read in a thread; its rows are returned on request, once', async () => {
  const reader = new PayloadReader({ startThread: () => startThread(MAX_INFLATED) })
  assert.equal(reader.isRunning, false)
  const { header, page } = await reader.read(
    'vulnerabilities',
    sent(findingsOf(digest, [finding({ title: 'é' })]), true),
  )
  assert.deepEqual([header.digest, header.item_count, page], [digest, 1, null])
  assert.equal(JSON.parse(await reader.rows())[0].title, 'é')
  assert.equal(await reader.rows(), '')
  const sbom = await reader.read(
    'sbom',
    sent(sbomOf(digest, [component({ name: 'zlib' })], { page: { set_id: 's', index: 1, total: 2 } })),
  )
  assert.deepEqual([sbom.header.content_hash, sbom.page], ['set:s', { set_id: 's', index: 1, total: 2 }])
  assert.equal(JSON.parse(await reader.rows())[0].name, 'zlib')
})

test('a refusal has its status and text; the rows of the previous payload are gone', async () => {
  const reader = new PayloadReader({ startThread: () => startThread(MAX_INFLATED) })
  await reader.read('vulnerabilities', sent(findingsOf(digest)))
  await assert.rejects(reader.read('vulnerabilities', sent('{')), {
    status: 400,
    message: /^Json deserialize error: invalid JSON/,
  })
  assert.equal(await reader.rows(), '')
  await assert.rejects(reader.read('sbom', sent({ ...sbomOf(digest), schema_version: 2 })), { status: 422 })
  assert.equal((await reader.read('vulnerabilities', sent(findingsOf(digest)))).header.item_count, 1)
})

test('other bytes of the same buffer are not passed to the thread', async () => {
  const asked: { bytes: Uint8Array }[] = []
  const reader = new PayloadReader({
    startThread: () => {
      const thread = startThread(MAX_INFLATED)
      const { postMessage } = thread
      thread.postMessage = (ask) => {
        asked.push(ask.sent)
        postMessage.call(thread, ask)
      }
      return thread
    },
  })
  const whole = Buffer.from(`secret${JSON.stringify(findingsOf(digest))}`)
  await reader.read('vulnerabilities', { ...sent({}), bytes: whole.subarray('secret'.length) })
  assert.equal(asked[0]!.bytes.buffer.byteLength, whole.length - 'secret'.length)
  assert.equal(whole.toString('utf8', 0, 6), 'secret')
})

const hostile = new URL('./threads/hostile.ts', import.meta.url)

function hostileReader(options: Partial<ReaderOptions> = {}) {
  const threads: Worker[] = []
  const startThread = () => {
    const thread = start(hostile, { maxOldGenerationSizeMb: 32 })
    threads.push(thread)
    return thread
  }
  const reader = new PayloadReader({ startThread, ...options })
  return { reader, threads, ask: (fate: string) => reader.read('vulnerabilities', { ...sent({}), digest: fate }) }
}

for (const [fate, says] of Object.entries({
  throw: /^Error: the thread that reads payloads failed$/,
  exit: /^Error: the thread that reads payloads ended with 3$/,
  memory: /^Error: the thread that reads payloads failed$/,
})) {
  test(`a thread that fails by ${fate} fails its payload, and the next payload has another thread`, async () => {
    const { reader, threads, ask } = hostileReader()
    await ask('well')
    await assert.rejects(ask(fate), says)
    assert.equal(reader.isRunning, false)
    await ask('well')
    await ask('well')
    assert.equal(await reader.rows(), '[]')
    assert.equal(threads.length, 2)
  })
}

for (const fate of ['silence', 'spin'])
  test(`a thread that does not answer in time (${fate}) is ended, and the next payload has another`, async () => {
    const { threads, ask } = hostileReader({ limitMs: 1_500 })
    await assert.rejects(ask(fate), /^Error: no answer within 1500 ms$/)
    await until('the thread is gone', () => threads[0]!.threadId === -1)
    await ask('well')
    assert.equal(threads.length, 2)
  })

test('an idle thread ends, and the next payload has another', async () => {
  const { reader, threads, ask } = hostileReader({ idleMs: 50 })
  await ask('well')
  await until('the thread is gone', () => threads[0]!.threadId === -1)
  assert.equal(reader.isRunning, false)
  await ask('well')
  assert.equal(threads.length, 2)
})

test('a thread keeps the process alive only while a caller waits for it', async () => {
  assert.equal(threadId, 0)
  const script = `
    import { PayloadReader } from './lib/supply-chain/reader.ts'
    import { startThread } from './lib/supply-chain/thread.ts'
    const reader = new PayloadReader({ startThread: () => startThread(${MAX_INFLATED}) })
    const bytes = Buffer.from(${JSON.stringify(JSON.stringify(findingsOf(digest)))})
    const read = () => reader.read('vulnerabilities', { bytes, isPacked: false, digest: '${digest}', maxInflatedBytes: ${MAX_INFLATED}, now: 2e12 })
    for (let i = 0; i < 2; i++) process.stdout.write(String((await read()).header.item_count))`
  const args = ['--import', 'tsx', '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 900_000 })
  assert.equal(stdout, '11')
})
