/** The evaluator's judgement of single workloads, as profiles show it. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { ImageTrust } from '../../lib/image-trust/index.ts'
import { withImageTrust } from '../../lib/profile/images/index.ts'
import type { SupplyChain } from '../../lib/profile/record/images.ts'
import { noLog } from '../support/log.ts'
import { type StubAnswer, startStub } from '../support/stub.ts'
import { withMoreTime } from '../support/until.ts'

let answer: (query: Record<string, string>) => StubAnswer | Promise<StubAnswer> = () => ({ status: 404 })
const evaluator = await startStub(({ query }) => answer(query))

const PATIENCE_MS = 60_000
const trustWith = (namespaceTimeoutMs = PATIENCE_MS, url: string | null = evaluator.url) =>
  new ImageTrust({ url, token: () => 'token', log: noLog, namespaceTimeoutMs })
const web = { namespace: 'shop', kind: 'Deployment', name: 'web' }
const RUNS = { supplyChain: {} as SupplyChain }
const AT = '2026-01-01T00:00:00+10:00'

const result = (verdict: string, more: object = {}) => ({
  ...{ policy: 'shop/signed', namespace: 'shop', workload: 'Deployment/web', container: 'app' },
  ...{ digest: `sha256:${'a'.repeat(64)}`, image: 'registry.test/shop/web', verdict },
  ...more,
})
const says = (...results: object[]): StubAnswer => ({ json: { evaluatedAt: AT, results } })
const NOTHING = {
  ...{ evaluatedAt: null, total: 0, wouldDeny: 0, unknown: 0, trusted: 0, policies: [], results: [], truncated: false },
}

/** Time passes only by `ahead`. */
function heldTime(t: { after(end: () => void): void }): { ahead(ms: number): void } {
  let now = Math.ceil(performance.now())
  const held = mock.method(performance, 'now', () => now)
  t.after(() => held.mock.restore())
  return {
    ahead: (ms) => {
      now += ms
    },
  }
}

test('the results of the workload alone, the worst first, in wire order', async () => {
  const denied = result('WouldDeny', { container: 'side', reason: 'untrusted-signer' })
  const others = [
    result('WouldDeny', { workload: 'Deployment/other' }),
    result('WouldDeny', { workload: 'StatefulSet/web' }),
    result('WouldDeny', { namespace: 'bank' }),
    result('WouldDeny', { workload: 'web' }),
  ]
  answer = () => says(...others, result('Trusted', { policy: 'cluster/all' }), denied, result('Odd'))
  const found = await withImageTrust(trustWith(), web, RUNS)
  assert.equal(
    JSON.stringify(found),
    JSON.stringify({
      ...{ available: true, evaluatedAt: AT, total: 3, wouldDeny: 1, unknown: 1, trusted: 1 },
      policies: ['cluster/all', 'shop/signed'],
      results: [denied, result('Odd'), result('Trusted', { policy: 'cluster/all' })],
      truncated: false,
    }),
  )
  const [heard] = evaluator.heard.slice(-1)
  assert.deepEqual([heard!.query, heard!.headers.authorization], [{ namespace: 'shop' }, 'Bearer token'])
})

test('at most 20 results, the denied ones first, and all are counted', async () => {
  const many = Array.from({ length: 21 }, (_, n) => result('Trusted', { container: `c${n}` }))
  answer = () => says(...many, result('WouldDeny', { container: 'z' }))
  const { total, results, truncated } = (await withImageTrust(trustWith(), web, RUNS))!
  assert.deepEqual([total, results.length, results[0]!.verdict, truncated], [22, 20, 'WouldDeny', true])
  answer = () => says(...many.slice(0, 20))
  assert.equal((await withImageTrust(trustWith(), web, RUNS))!.truncated, false)
})

test('a workload without results has none, and nothing is asked for one that runs nothing', async () => {
  answer = () => says()
  const trust = trustWith()
  assert.deepEqual(await withImageTrust(trust, web, RUNS), { available: true, ...NOTHING, evaluatedAt: AT })
  evaluator.heard.length = 0
  assert.equal(await withImageTrust(trust, { ...web, namespace: 'idle' }, { supplyChain: null }), null)
  assert.equal(evaluator.heard.length, 0)
})

test('without an evaluator, or with a failing one, it is not available', async () => {
  const reason = async (reply: StubAnswer, trust = trustWith()) => {
    answer = () => reply
    const found = await withImageTrust(trust, web, RUNS)
    const { available, reason, ...rest } = found!
    assert.deepEqual([available, rest], [false, NOTHING])
    assert.deepEqual(Object.keys(found!).slice(0, 3), ['available', 'reason', 'evaluatedAt'])
    return reason
  }
  const isAsked = trustWith(PATIENCE_MS, null)
  assert.equal(await reason('hang', isAsked), 'no evaluator is configured')
  assert.equal(isAsked.workloads.hasToAsk('shop'), false)
  assert.equal(await reason({ status: 404 }), 'image trust evaluation is off in the evaluator')
  assert.equal(await reason({ status: 401 }), 'the evaluator refused the read token of the broker')
  assert.equal(await reason({ text: '{' }), 'the answer of the evaluator is not valid')
  assert.equal(await reason('cut'), 'the answer of the evaluator could not be read')
})

test('an answer of more than 1 MiB is refused, one of 1 MiB is not', async () => {
  const sized = (bytes: number) => {
    const [head, tail] = [`{"evaluatedAt":null,"results":[`, ']}']
    const one = JSON.stringify(result('Trusted'))
    let list = one
    while (head.length + list.length + one.length + 1 + tail.length <= bytes) list += `,${one}`
    return { text: `${head}${list}${tail}`.padEnd(bytes, ' ') }
  }
  answer = () => sized(1_048_576)
  assert.equal((await withImageTrust(trustWith(), web, RUNS))!.available, true)
  answer = () => sized(1_048_577)
  assert.match((await withImageTrust(trustWith(), web, RUNS))!.reason!, /larger than 1048576 bytes/)
})

test('an evaluator that does not answer in time does not hold the profile up', () =>
  withMoreTime(50, async (ms) => {
    answer = () => 'hang'
    const { available, reason } = (await withImageTrust(trustWith(ms), web, RUNS))!
    assert.deepEqual([available, reason], [false, `the evaluator did not answer within ${ms} ms`])
  }))

test('an answer is kept for 30 seconds, a failure for 10', async (t) => {
  const time = heldTime(t)
  const trust = trustWith()
  const asked = async (key = web) => {
    evaluator.heard.length = 0
    const hasToAsk = trust.workloads.hasToAsk(key.namespace)
    await withImageTrust(trust, key, RUNS)
    assert.equal(evaluator.heard.length, hasToAsk ? 1 : 0)
    return hasToAsk
  }
  answer = () => says()
  assert.equal(await asked(), true)
  assert.equal(await asked({ ...web, name: 'other' }), false, 'the namespace is known')
  assert.equal(await asked({ ...web, namespace: 'bank' }), true)
  time.ahead(29_999)
  assert.equal(await asked(), false)
  time.ahead(1)
  answer = () => ({ status: 500 })
  assert.equal(await asked(), true)
  time.ahead(9_999)
  assert.equal(await asked(), false)
  time.ahead(1)
  assert.equal(await asked(), true)
})

test('a namespace is read once at a time', async () => {
  let release = () => {}
  const held = new Promise<void>((go) => {
    release = go
  })
  answer = async () => {
    await held
    return says(result('WouldDeny'))
  }
  const trust = trustWith()
  evaluator.heard.length = 0
  const reads = Array.from({ length: 5 }, () => withImageTrust(trust, web, RUNS))
  assert.equal(trust.workloads.hasToAsk('shop'), false, 'it is being read')
  release()
  assert.deepEqual(
    (await Promise.all(reads)).map((one) => one!.wouldDeny),
    [1, 1, 1, 1, 1],
  )
  assert.equal(evaluator.heard.length, 1)
})

test('128 namespaces are kept, and 16 MiB of answers', async () => {
  const trust = trustWith()
  const read = (n: number) => withImageTrust(trust, { ...web, namespace: `ns-${n}` }, RUNS)
  const kept = (count: number) =>
    Array.from({ length: count }, (_, n) => n).filter((n) => !trust.workloads.hasToAsk(`ns-${n}`))
  answer = () => says()
  for (let n = 0; n < 129; n++) await read(n)
  assert.deepEqual([kept(129).length, kept(1)], [128, []])
  const big = JSON.stringify({ evaluatedAt: AT, results: Array.from({ length: 3_500 }, () => result('Trusted')) })
  const fits = Math.floor(16_777_216 / big.length)
  answer = () => ({ text: big })
  for (let n = 200; n < 200 + fits + 1; n++) await read(n)
  assert.equal(trust.workloads.hasToAsk('ns-200'), true)
  assert.equal(trust.workloads.hasToAsk('ns-201'), false)
  assert.deepEqual(kept(129), [], 'older ones went first')
})
