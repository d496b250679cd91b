/**
 * What was seen is allowed by the policies that were made from it, and none of their rules can be left out. The
 * policies go through the parser, as posted ones do.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Connection, Facts } from '../../lib/policies/facts.ts'
import { yamlOfPolicy } from '../../lib/policies/make/document.ts'
import { PolicyMaker } from '../../lib/policies/make/policy.ts'
import { parsePolicies } from '../../lib/policies/parse.ts'
import type { Policy } from '../../lib/policies/policy.ts'
import { Trial } from '../../lib/policies/trial.ts'
import { depth } from '../support/depth.ts'
import { facts } from './fact-values.ts'

const options = fc.record({
  format: fc.constantFrom('kubernetes' as const, 'cilium' as const),
  direction: fc.constantFrom('both' as const, 'ingress' as const, 'egress' as const),
  cidr: fc.constantFrom('exact' as const, '24' as const),
})
const FIXED = {
  ...{ min_days: 0, output: 'yaml' as const, acknowledgePartial: true, since: null },
  ...{ now: '2026-02-01T00:00:00', prefix: 'example.test' },
}
const WATCHED = { since: '2026-01-01T00:00:00', silentNodes: [] }
type Options = typeof options extends fc.Arbitrary<infer T> ? T : never

async function made(known: Facts, chosen: Options): Promise<Policy[]> {
  const all = { ...FIXED, ...chosen }
  const maker = new PolicyMaker(known, all)
  const workloads = [...new Map(known.pods.map(({ workload }) => [workload.name, workload])).values()]
  const policies = await Promise.all(workloads.map((one) => maker.make(one, WATCHED)))
  const text = policies.map((one) => yamlOfPolicy(one)).join('---\n')
  return parsePolicies(text, 'yaml')
}

const judged = (policies: Policy[], known: Facts) => new Trial(policies, known).edges()
/** Each policy without one of its rules. A rule without peers only isolates. */
function* withoutOneRule(policies: readonly Policy[]): Generator<[Policy[], path: string]> {
  for (const [i, policy] of policies.entries())
    for (const direction of ['ingress', 'egress'] as const)
      for (const rule of policy[direction]?.allow ?? []) {
        if (rule.peers?.length === 0) continue
        // Whether an address that nobody knows is outside of the cluster, as blocks of Cilium are, is unknown anyway.
        if (rule.peers?.every((one) => one.kind === 'block' && !one.isForPods)) continue
        const allow = policy[direction]!.allow.filter((one) => one !== rule)
        const changed = { ...policy, [direction]: { ...policy[direction]!, allow } }
        yield [policies.map((one, at) => (at === i ? changed : one)), `${policy.name} ${rule.path}`]
      }
}

/** Everyone asks a resolver, so that the usual rule, which nobody was seen to need, is not added. */
function withResolver({ pods, services, connections }: Facts): Facts {
  const workloads = [...new Map(pods.map(({ workload }) => [workload.name, workload])).values()]
  const asked = workloads.map(
    (workload, n): Connection => ({
      ...{
        from: { type: 'workload', ...workload },
        to: { type: 'external', ip: '9.9.9.9' },
        port: '53',
        protocol: 'UDP',
      },
      ...{ isDropped: false, seenBy: 'from', flows: 1, firstSeenAt: '2026-01-01T00:00:00' },
      ...{ lastNewAt: '2026-01-01T00:00:00', edgeId: `10000000-0000-0000-0000-${String(n).padStart(12, '0')}` },
    }),
  )
  return { pods, services, connections: [...connections, ...asked] }
}

test('policies allow what they were made from, and without any of their rules they do not', async () => {
  let rules = 0
  let unknown = 0
  let edges = 0
  await fc.assert(
    fc.asyncProperty(facts, options, async (generated, chosen) => {
      const known = withResolver(generated)
      const policies = await made(known, chosen)
      const found = await judged(policies, known)
      edges += found.length
      unknown += found.filter(({ verdict }) => verdict === 'unknown').length
      assert.deepEqual(
        found
          .filter(({ verdict }) => verdict === 'denied')
          .map(({ from, to, port, protocol }) => ({ from, to, port, protocol })),
        [],
      )
      for (const [fewer, path] of withoutOneRule(policies)) {
        rules++
        const changed = await judged(fewer, known)
        const isWorse = changed.some(({ verdict }, i) => verdict !== 'allowed' && verdict !== found[i]!.verdict)
        assert.ok(isWorse, `${path} is not needed`)
      }
    }),
    { numRuns: depth(150, 3_000) },
  )
  assert.ok(rules > 500 && edges > 500, `${rules} rules, ${edges} edges`)
  assert.ok(unknown < edges / 4, `${unknown} of ${edges} unknown`)
})
