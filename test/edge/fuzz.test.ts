/**
 * Generated, pipelined requests on raw sockets: the broker gets only allowed methods, paths and tokens, each request
 * has the expected answer, and the proxy keeps running. `EDGE_FUZZ_SEED` sets another seed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { get, residentMb } from '../support/broker.ts'
import { openFolder } from '../support/console.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { shoot } from './gunner.ts'
import { type Edge, type EdgeProcess, spawnEdge, startEdge, TOKEN } from './support.ts'

const SHOTS = depth(1_000, 20_000)
const SEED = Number(process.env.EDGE_FUZZ_SEED ?? 20_261_122)
const TELL_EVERY = 100_000

test(`${SHOTS} generated requests of seed ${SEED} are forwarded or refused as expected`, {
  timeout: 900_000 + SHOTS * 6,
}, async (t) => {
  let edge: EdgeProcess | undefined
  let told = 0
  const startedAt = performance.now()
  const report = await shoot({
    shots: SHOTS,
    seed: SEED,
    token: TOKEN,
    async start(brokerUrl) {
      edge = await spawnEdge({ BROKER_URL: brokerUrl, BROKER_TOKEN_READ: TOKEN }, { isForgetful: true })
      const { port } = edge
      return { port, alive: () => !edge!.hasExited }
    },
    onProgress(shots) {
      if (shots < told + TELL_EVERY) return
      told = shots
      t.diagnostic(`${shots} sent, ${residentMb(edge!.pid)?.now.toFixed(0)} MiB resident`)
    },
  })
  t.diagnostic(
    `${Math.round((performance.now() - startedAt) / 1_000)} s; ${report.shots} sent, ${report.heard} heard by the broker`,
  )
  t.diagnostic(JSON.stringify(report.answers))
  assert.deepEqual(report.faults, [])
  // Enough requests must be forwarded and enough refused, or the test would prove nothing.
  assert.ok(report.heard > report.shots / 4)
  for (const status of [200, 400, 405]) assert.ok(report.answers[status]! > report.shots / 50, `${status}`)
  assert.equal((await get(`${edge!.url}/healthz`)).status, 200)
  await until('nothing is under way', async () =>
    /^edge_http_requests_in_flight 0$/m.test((await get(`${edge!.admin}/metrics`)).text),
  )
  assert.equal(edge!.output, '')
  const others = edge!.log.filter(({ level }) => level !== 'info')
  assert.deepEqual(others, [])
  edge!.kill('SIGTERM')
  assert.deepEqual(await edge!.exited, { code: 0, signal: null })
})

test(`with the console, ${SHOTS} of seed ${SEED} get no byte but those of its files and of the broker`, {
  timeout: 900_000 + SHOTS * 6,
}, async (t) => {
  const consoleFiles = openFolder('proxy')!
  let edge: Edge | undefined
  const report = await shoot({
    shots: SHOTS,
    seed: SEED,
    token: TOKEN,
    consoleFiles,
    async start(brokerUrl) {
      edge = await startEdge(brokerUrl, {}, { consoleFiles })
      return { port: edge.port, alive: () => true }
    },
  })
  t.diagnostic(`${report.shots} sent, ${report.heard} heard by the broker: ${JSON.stringify(report.answers)}`)
  assert.deepEqual(report.faults, [])
  assert.ok(report.heard > report.shots / 8)
  for (const status of [200, 308, 400, 404, 405]) assert.ok(report.answers[status]! > report.shots / 400, `${status}`)
  await edge!.isQuiet()
})
