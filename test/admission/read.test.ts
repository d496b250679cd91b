import assert from 'node:assert/strict'
import test from 'node:test'
import { planOf, readCoverage } from '../../lib/admission/index.ts'
import type { Gate } from '../../lib/db/index.ts'
import { startApp } from '../support/app.ts'
import { signature, storeAttestation } from '../support/attestations.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'

const WINDOW_SECS = 900
const of = (namespace: string) => ({ namespace, isClusterWide: false, windowSecs: WINDOW_SECS, retentionDays: 0 })
const app = await startApp()

/** The gate of reads; records the answers of the database. */
const heard = (hear: (rows: readonly Record<string, unknown>[], statement: number) => Promise<void> | void): Gate => {
  let statement = 0
  const call = async (of: never) => {
    const rows = (await app.db.read(of)) as unknown as Record<string, unknown>[]
    await hear(rows, statement++)
    return rows
  }
  return call as never
}

/** Runs images in a namespace, each signed by someone whose name has this many characters. */
async function run(namespace: string, chars: readonly number[]): Promise<string[]> {
  const digests = chars.map(newDigest).sort()
  for (let at = 0; at < digests.length; at += 50) {
    const containers = digests
      .slice(at, at + 50)
      .map((digest, i) => container(`c${i}`, digest, { repository: `registry.test/${namespace}/app` }))
    assert.equal(
      (await app.post('/pod/spec', replica(namespace, containers, { workload_name: `w-${at}` }))).status,
      200,
    )
  }
  for (const [i, digest] of digests.entries())
    await storeAttestation(app, digest, {
      signatures: [signature({ issuer: 'https://issuer.test', san: `${i} ${'x'.repeat(chars[i]!)}` })],
    })
  return digests
}

test('all results are read, and few are held at a time, however large they are', async () => {
  const namespace = newNamespace()
  // One more than a batch, then results so large that hardly any fit.
  const chars = [...Array.from({ length: 501 }, () => 10), ...Array.from({ length: 30 }, () => 250_000), 10]
  await run(namespace, chars)
  const batches: { rows: number; bytes: number }[] = []
  const gate = heard((rows, statement) => {
    const bytes = rows.reduce(
      (sum, { signatures, attestations }) => sum + String(signatures ?? '').length + String(attestations ?? '').length,
      0,
    )
    if (statement > 0) batches.push({ rows: rows.length, bytes })
  })
  const plan = await planOf(await readCoverage(gate, of(namespace)))
  assert.equal(plan.identities.length, chars.length)
  assert.deepEqual([batches[0]!.rows, plan.uncovered], [500, []])
  for (const { rows, bytes } of batches)
    assert.ok(rows >= 1 && rows <= 500 && bytes <= 2 * 1024 * 1024 + 256 * 1024, `${rows} rows, ${bytes} bytes`)
  assert.ok(batches.length >= 5, `${batches.length} batches`)
})

test('reading stops when the client disconnects', async () => {
  const namespace = newNamespace()
  await run(namespace, [...Array.from({ length: 20 }, () => 250_000)])
  const left = new AbortController()
  let statements = 0
  const gate = heard(() => {
    if (++statements === 2) left.abort()
  })
  await assert.rejects(
    readCoverage(gate, of(namespace), () => {}, left.signal),
    { status: 499 },
  )
  assert.equal(statements, 2)
})

test('results that cannot change the outcome are not requested; unverified entries are not sent', async () => {
  const namespace = newNamespace()
  const [first, second, third] = (await run(namespace, [1, 1, 1])) as [string, string, string]
  await storeAttestation(app, second, { verdict: 'unknown', signatures: [signature()] })
  const statements: number[] = []
  const { uncovered } = await planOf(
    await readCoverage(
      heard((rows) => void statements.push(rows.length)),
      of(namespace),
    ),
  )
  assert.deepEqual([uncovered.map(({ reason }) => reason), statements], [['unknown'], [3, 1]])
  await app.sql`delete from image_attestation where digest = ${first}`
  statements.length = 0
  const { uncovered: none } = await planOf(
    await readCoverage(
      heard((rows) => void statements.push(rows.length)),
      of(namespace),
    ),
  )
  assert.deepEqual([none.map(({ reason }) => reason), statements, third > second], [['not checked'], [3], true])
})

test('a result that is replaced or deleted after the containers were read counts with its new value', async () => {
  for (const [change, reason] of [
    [(digest: string) => storeAttestation(app, digest, { signatures: [] }), 'unsigned'],
    [(digest: string) => app.sql`delete from image_attestation where digest = ${digest}`, 'not checked'],
  ] as const) {
    const namespace = newNamespace()
    const [, last] = (await run(namespace, [1, 1])) as [string, string]
    const gate = heard(async (rows, statement) => {
      if (statement === 0) await change(last)
      else assert.deepEqual([rows.at(-1)!.signatures, rows.at(-1)!.attestations], [null, null])
    })
    const { groups, uncovered } = await planOf(await readCoverage(gate, of(namespace)))
    assert.deepEqual([groups, uncovered], [[], [{ name: `registry.test/${namespace}/app`, reason }]])
  }
})
