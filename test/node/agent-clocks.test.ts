import assert from 'node:assert/strict'
import test from 'node:test'
import { AgentClocks } from '../../lib/nodes/index.ts'
import { startApp } from '../support/app.ts'
import { podPost } from '../support/records.ts'

const MINUTE = 60_000
const START = Date.parse('2026-01-01T00:00:00Z')

function scene() {
  const warned: { node: string; skewSecs: number }[] = []
  const log = { warn: (fields: { node: string; skewSecs: number }) => void warned.push(fields) }
  let now = START
  const clocks = new AgentClocks(log as never, () => now)
  const naive = (secs: number) => new Date(now + secs * 1000).toISOString().slice(0, -1)
  return {
    clocks,
    warned,
    pass: (ms: number) => {
      now += ms
    },
    /** Notes a post of an agent whose clock is `secs` seconds ahead. */
    post: (secs: number, node = 'a') => clocks.note(node, naive(secs)),
  }
}

test('the largest clock skew is shown, whatever its sign; it is 0 before the first post', () => {
  const { clocks, post } = scene()
  assert.equal(clocks.largestSecs(), 0)
  post(2)
  post(-7.5)
  post(3)
  assert.equal(clocks.largestSecs(), 7.5)
  clocks.note('a', '2026-01-01T00:00:09.123456')
  assert.equal(clocks.largestSecs(), 9.123)
})

test('a clock skew is shown for ten minutes, then the largest of the later ones', () => {
  const { clocks, post, pass } = scene()
  post(100)
  pass(MINUTE)
  post(50)
  pass(9 * MINUTE)
  assert.equal(clocks.largestSecs(), 100)
  pass(10_000)
  assert.equal(clocks.largestSecs(), 50)
  pass(MINUTE)
  assert.equal(clocks.largestSecs(), 0)
  post(1)
  pass(-MINUTE)
  assert.equal(clocks.largestSecs(), 0)
})

test('a node whose clock is off by more than 300 s is logged as a warning, once an hour', () => {
  const { warned, post, pass } = scene()
  for (const secs of [300, -300, 0]) post(secs)
  assert.deepEqual(warned, [])
  post(-301)
  post(900)
  post(400, 'b')
  assert.deepEqual(warned.splice(0), [
    { node: 'a', skewSecs: -301 },
    { node: 'b', skewSecs: 400 },
  ])
  pass(59 * MINUTE)
  post(900)
  assert.deepEqual(warned, [])
  pass(MINUTE)
  post(900)
  assert.deepEqual(warned, [{ node: 'a', skewSecs: 900 }])
})

test('the first 5000 nodes of an hour are logged as a warning, further ones not before the next hour', () => {
  const { warned, post, pass } = scene()
  const names = (n: number) => Array.from({ length: n }, (_, i) => `node-${i}`)
  const logged = () => warned.splice(0).map(({ node }) => node)
  for (const name of names(6_000)) post(900, name)
  assert.deepEqual(logged(), names(5_000))
  pass(30 * MINUTE)
  post(900, 'late')
  assert.deepEqual(logged(), [])
  pass(30 * MINUTE)
  post(900, 'late')
  for (const name of names(6_000)) post(900, name)
  assert.deepEqual(logged(), ['late', ...names(4_999)])
})

test('a node that is logged again an hour later makes no room for another one', () => {
  const { warned, post, pass } = scene()
  post(900, 'first')
  pass(30 * MINUTE)
  for (let n = 0; n < 4_999; n++) post(900, `node-${n}`)
  pass(30 * MINUTE)
  warned.length = 0
  post(900, 'first')
  post(900, 'late')
  assert.deepEqual(warned, [{ node: 'first', skewSecs: 900 }])
})

test('POST /pod/spec and /metrics: the clock skew of an accepted post is logged and shown, that of a refused one is not', async () => {
  const app = await startApp()
  const value = async () =>
    Number(/^broker_agent_clock_skew_seconds (\S+)$/m.exec((await app.get('/metrics')).text)![1])
  const lines = () => app.logged.filter(({ level, skewSecs }) => level === 40 && skewSecs !== undefined)
  const at = (secs: number) => new Date(Date.now() + secs * 1000).toISOString().slice(0, -1)
  assert.equal(await value(), 0)
  assert.equal((await app.post('/pod/spec', podPost({ time_stamp: at(86_400), pod_ip: 7 }))).status, 400)
  assert.equal(await value(), 0)
  assert.equal((await app.post('/pod/spec', podPost({ time_stamp: at(-86_400), node_name: 'late' }))).status, 200)
  assert.equal((await app.post('/pod/spec', podPost({ time_stamp: at(-86_400), node_name: 'late' }))).status, 200)
  assert.ok(Math.abs((await value()) - 86_400) < 300)
  assert.deepEqual(
    lines().map(({ node }) => node),
    ['late'],
  )
})
