import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import test from 'node:test'
import { gzipSync } from 'node:zlib'
import type { AppDeps } from '../../lib/app/deps.ts'
import type { HttpError } from '../../lib/errors.ts'
import { readJsonBody } from '../../lib/http/request/body.ts'
import { freeBuffer } from '../../lib/http/request/free-buffer.ts'
import { IncomingBodies } from '../../lib/http/request/incoming-bodies.ts'
import type { Context } from '../../lib/http/route.ts'
import { MemoryBudget } from '../../lib/limits/memory-budget.ts'

const KIB = 1_024
const MIB = 1_024 * KIB

test('memory is freed at once, without a garbage collection', () => {
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 8; i++) freeBuffer(Buffer.allocUnsafeSlow(64 * MIB))
  assert.ok(process.memoryUsage().arrayBuffers - before < 64 * MIB)
})

test('small buffers are not freed, since they may be part of the shared pool', () => {
  const pooled = Buffer.from('a body of a few bytes')
  const small = Buffer.alloc(8 * KIB, 'x')
  freeBuffer(pooled)
  freeBuffer(small)
  assert.equal(pooled.toString(), 'a body of a few bytes')
  assert.equal(small.length, 8 * KIB)
})

/** A request whose body arrives in the pushed chunks. */
function arriving(headers: Record<string, string>, incomingBodies = new IncomingBodies(16 * MIB)) {
  const incoming = Object.assign(new PassThrough(), {
    headers: { 'content-type': 'application/json', ...headers },
    complete: false,
  })
  const unpacked = new MemoryBudget({ totalKib: 8 * KIB, waitMs: 1_000 })
  const c = { env: { incoming }, get: () => ({ incomingBodies, unpacked }) as unknown as AppDeps } as unknown as Context
  const chunks: Buffer[] = []
  const push = async (bytes: Buffer) => {
    const chunk = Buffer.allocUnsafeSlow(bytes.length)
    bytes.copy(chunk)
    chunks.push(chunk)
    incoming.write(chunk)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { incoming, push, chunks, read: readJsonBody(c, 2 * MIB), incomingBodies }
}
const kept = (buffers: Buffer[]) => buffers.filter(({ length }) => length > 0).length
// Each part is larger than the pool from which Buffer cuts small buffers: 32 KiB from Node 24 on.
const text = `"${'x'.repeat(7 * 64 * KIB - 2)}"`
const parts = Array.from({ length: 7 }, (_, i) => Buffer.from(text.slice(i * 64 * KIB, (i + 1) * 64 * KIB)))

for (const [how, headers, bodies] of [
  ['of a known length', { 'content-length': String(text.length) }, parts],
  ['of an unknown length', {}, parts],
  ['that is compressed', { 'content-encoding': 'gzip' }, [gzipSync(text, { level: 0 })]],
] as const) {
  test(`a body ${how} is whole until it is released, and then freed with all its chunks`, async () => {
    const { incoming, push, chunks, read, incomingBodies } = arriving(headers)
    for (const part of bodies) await push(part)
    incoming.end()
    const { bytes, release } = await read
    assert.equal(bytes.toString(), text)
    release()
    assert.equal(bytes.length, 0)
    assert.equal(incomingBodies.bytes, 0)
    assert.equal(kept(chunks), 0)
  })
}

test('no bytes of a refused body are kept, also not those that arrive later', async () => {
  const tooLong = arriving({})
  const refusal = assert.rejects(tooLong.read, (error: HttpError) => error.status === 413)
  for (let i = 0; i < 40; i++) await tooLong.push(Buffer.alloc(64 * KIB, ' '))
  await refusal
  assert.equal(kept(tooLong.chunks), 0)

  const crowded = arriving({ 'content-length': String(2 * MIB) }, new IncomingBodies(256 * KIB))
  const cut = assert.rejects(crowded.read, (error: HttpError) => error.status === 503)
  for (let i = 0; i < 10; i++) await crowded.push(Buffer.alloc(64 * KIB, ' '))
  await cut
  assert.equal(kept(crowded.chunks), 0)
})

test('no bytes of a body are kept whose sender disconnected', async () => {
  for (const headers of [{}, { 'content-length': String(2 * MIB) }]) {
    const { incoming, push, chunks, read } = arriving(headers)
    const refusal = assert.rejects(read, (error: HttpError) => error.status === 400)
    for (const part of parts.slice(0, 4)) await push(part)
    incoming.destroy()
    await refusal
    assert.equal(kept(chunks), 0)
  }
})

test('no bytes of a body are kept that is refused as not UTF-8', async () => {
  const { incoming, push, chunks, read } = arriving({})
  for (let i = 0; i < 4; i++) await push(Buffer.alloc(64 * KIB, 0xff))
  incoming.end()
  await assert.rejects(read, (error: HttpError) => error.status === 400 && /UTF-8/.test(error.message))
  assert.equal(kept(chunks), 0)
})

test('the buffers of a body of ordinary size are not freed but left to V8', async () => {
  const ordinary = parts.slice(0, 3)
  const { incoming, push, chunks, read } = arriving({ 'content-length': String(3 * 64 * KIB) })
  for (const part of ordinary) await push(part)
  incoming.end()
  const { bytes, release } = await read
  release()
  assert.deepEqual(bytes, Buffer.concat(ordinary))
  assert.equal(kept(chunks), 3)
})
