import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { TrustFilter, TrustResult } from '../../lib/image-trust/result.ts'
import { MAX_POLICY_CHARS, Tally } from '../../lib/image-trust/tally.ts'
import { BadAnswer } from '../../lib/image-trust/unavailable.ts'

const name = fc.constantFrom('a', 'b', 'B', 'ab', '')
const anyResult: fc.Arbitrary<TrustResult> = fc.record({
  policy: fc.constantFrom('a/p', 'b/p', 'cluster/p'),
  namespace: name,
  workload: fc.oneof(
    fc.tuple(name, name).map((parts) => parts.join('/')),
    fc.constantFrom('a', '/', 'A/b/a', 'b//a'),
  ),
  container: name,
  digest: fc.constant('d'),
  image: fc.nat().map(String),
  verdict: fc.constantFrom('Trusted', 'WouldDeny', 'Unknown', 'Pending', ''),
})
const anyFilter: fc.Arbitrary<TrustFilter> = fc.record({
  namespace: fc.option(name),
  verdict: fc.option(fc.constantFrom('Trusted', 'WouldDeny', 'Unknown')),
  workloadKind: fc.option(fc.constantFrom('a', 'A', 'b', 'AB', '')),
  workloadName: fc.option(fc.constantFrom('a', 'B', 'b/a', '')),
})

const counted = (verdict: string) => ({ Trusted: 'Trusted', WouldDeny: 'WouldDeny' })[verdict] ?? 'Unknown'

/** The same by sorting all results at once. */
function model(results: readonly TrustResult[], filter: TrustFilter, limit: number) {
  const matching = results.filter((one) => {
    const [kind, ...rest] = one.workload.split('/')
    const asked = [filter.workloadKind?.toLowerCase() ?? null, filter.workloadName]
    const has = rest.length === 0 ? [undefined, undefined] : [kind!.toLowerCase(), rest.join('/')]
    return (
      (filter.namespace === null || one.namespace === filter.namespace) &&
      (filter.verdict === null || counted(one.verdict) === filter.verdict) &&
      asked.every((word, i) => word === null || word === has[i])
    )
  })
  const ranks = ['WouldDeny', 'Unknown', 'Trusted']
  const key = (one: TrustResult) => [
    ranks.indexOf(counted(one.verdict)),
    one.namespace,
    one.workload,
    one.container,
    one.policy,
  ]
  const before = (a: TrustResult, b: TrustResult) => {
    for (const [i, part] of key(a).entries()) {
      const other = key(b)[i]!
      if (part !== other) return part < other ? -1 : 1
    }
    return 0
  }
  const total = matching.length
  const of = (verdict: string) => matching.filter((one) => counted(one.verdict) === verdict).length
  return {
    counts: {
      total,
      WouldDeny: of('WouldDeny'),
      Trusted: of('Trusted'),
      Unknown: total - of('WouldDeny') - of('Trusted'),
    },
    policies: [...new Set(matching.map((one) => one.policy))].sort(),
    results: matching.toSorted(before).slice(0, limit),
  }
}

test('counts, policies and the first results equal those of sorting everything', () => {
  fc.assert(
    fc.property(
      fc.array(anyResult, { maxLength: 600, size: 'max' }),
      anyFilter,
      fc.integer({ min: 1, max: 300 }),
      (results, filter, limit) => {
        const tally = new Tally(filter, limit)
        for (const one of results) tally.add(one)
        assert.deepEqual(
          { counts: tally.counts, policies: [...tally.policies].sort(), results: tally.results() },
          model(results, filter, limit),
        )
      },
    ),
    { numRuns: 300 },
  )
})

const ALL: TrustFilter = { namespace: null, verdict: null, workloadKind: null, workloadName: null }
const one = (more: Partial<TrustResult>): TrustResult => ({
  policy: 'a/p',
  namespace: 'a',
  workload: 'Pod/a',
  container: 'c',
  digest: '',
  image: '',
  verdict: 'Unknown',
  ...more,
})

test('the worst results are kept, even if they come last', () => {
  const tally = new Tally(ALL, 2_000)
  const named = (n: number) => String(n).padStart(6, '0')
  for (let n = 20_000; n-- > 0; ) tally.add(one({ container: named(n) }))
  assert.deepEqual(
    tally.results().map(({ container }) => container),
    Array.from({ length: 2_000 }, (_, n) => named(n)),
  )
})

test('the text of all policies is limited, each counted once', () => {
  const half = 'x'.repeat(MAX_POLICY_CHARS / 2 - 1)
  const tally = new Tally(ALL, 1)
  for (const policy of [`a${half}`, `b${half}`, `a${half}`]) tally.add(one({ policy }))
  assert.throws(() => tally.add(one({ policy: 'c' })), BadAnswer)
})
