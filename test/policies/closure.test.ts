/**
 * What was seen is allowed by the policies that were made from it, and none of their rules can be left out. The
 * policies go through the parser, as posted ones do.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Connection, End, Facts } from '../../lib/policies/facts.ts'
import { yamlOfPolicy } from '../../lib/policies/make/document.ts'
import { connectionsOf } from '../../lib/policies/make/observed.ts'
import { PolicyMaker } from '../../lib/policies/make/policy.ts'
import type { DirectionName } from '../../lib/policies/match.ts'
import { parsePolicies } from '../../lib/policies/parse.ts'
import type { Policy } from '../../lib/policies/policy.ts'
import { Topology } from '../../lib/policies/topology.ts'
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

/** A policy, and what it was made from. */
interface Made {
  readonly policy: Policy
  readonly connections: Readonly<Record<DirectionName, readonly Connection[]>>
}

async function made(known: Facts, chosen: Options): Promise<Made[]> {
  const all = { ...FIXED, ...chosen }
  const maker = new PolicyMaker(known, all)
  const topology = new Topology(known)
  const workloads = [...new Map(known.pods.map(({ workload }) => [workload.name, workload])).values()]
  return Promise.all(
    workloads.map(async (one) => {
      const [policy] = await parsePolicies(yamlOfPolicy(await maker.make(one, WATCHED)), 'yaml')
      const of = (direction: DirectionName) => connectionsOf(one, known.connections, direction, topology)
      return { policy: policy!, connections: { ingress: of('ingress'), egress: of('egress') } }
    }),
  )
}

const judged = (policies: readonly Policy[], known: Facts) => new Trial(policies, known).edges()

/** The same pods after a restart: an address that a policy has may be that of any pod now. */
const restarted = (known: Facts): Facts => ({
  ...known,
  pods: known.pods.map((one, n) => ({ ...one, ips: [`10.3.0.${n}`, `fd13::${n}`] })),
})

/** A policy without one of its rules. A rule without peers only isolates. */
function* withoutOneRule(policy: Policy): Generator<[Policy, DirectionName, path: string]> {
  for (const direction of ['ingress', 'egress'] as const)
    for (const rule of policy[direction]?.allow ?? []) {
      if (rule.peers?.length === 0) continue
      // Whether an address that nobody knows is outside of the cluster, as blocks of Cilium are, is unknown anyway.
      if (rule.peers?.every((one) => one.kind === 'block' && !one.isForPods)) continue
      // Numbers of ports may together allow what a name does that pods number differently. Names stay all the same.
      if (rule.ports?.some(({ port }) => typeof port === 'string')) continue
      const allow = policy[direction]!.allow.filter((one) => one !== rule)
      yield [{ ...policy, [direction]: { ...policy[direction]!, allow } }, direction, `${policy.name} ${rule.path}`]
    }
}

/** What a policy alone says of connections in a direction: selectors may also match pods of other workloads. */
async function sides(policy: Policy, direction: DirectionName, known: Facts, connections: readonly Connection[]) {
  const edges = await judged([policy], { ...known, connections })
  return edges.map((edge) => edge.sides.find((one) => one.direction === direction)!.verdict)
}

/** Everyone asks a resolver, so that the usual rule, which nobody was seen to need, is not added. */
function withResolver({ pods, services, connections }: Facts): Facts {
  const workloads = [...new Map(pods.map(({ workload }) => [workload.name, workload])).values()]
  const asked = workloads.map(
    (workload, n): Connection => ({
      ...{
        from: { type: 'workload', ...workload },
        to: { type: 'unresolved', ip: '10.9.9.9' },
        port: '53',
        protocol: 'UDP',
      },
      ...{ isDropped: false, seenBy: 'from', flows: 1, firstSeenAt: '2026-01-01T00:00:00' },
      ...{ lastNewAt: '2026-01-01T00:00:00', edgeId: `10000000-0000-0000-0000-${String(n).padStart(12, '0')}` },
    }),
  )
  return { pods, services, connections: [...connections, ...asked] }
}

/** Both sides report a connection. Of some, one side did so before the pod of the other one was known. */
function withUnattributed({ pods, services, connections }: Facts): Facts {
  const addressOf = (end: End): End => {
    const group = pods.find((one) => one.isLiving && end.type === 'workload' && one.workload.name === end.name)
    return group === undefined ? end : { type: 'unresolved', ip: group.ips[0]! }
  }
  const others = connections
    .filter((_, n) => n % 3 === 0)
    .map(
      (one): Connection =>
        one.seenBy === 'from' ? { ...one, to: addressOf(one.to) } : { ...one, from: addressOf(one.from) },
    )
  return { pods, services, connections: [...connections, ...others] }
}

test('policies allow what they were made from, and without any of their rules they do not', async () => {
  let rules = 0
  let unknown = 0
  let edges = 0
  await fc.assert(
    fc.asyncProperty(facts, options, async (generated, chosen) => {
      const seen = withUnattributed(withResolver(generated))
      const known = restarted(seen)
      const policies = await made(seen, chosen)
      const all = policies.map(({ policy }) => policy)
      const found = await judged(all, known)
      edges += found.length
      unknown += found.filter(({ verdict }) => verdict === 'unknown').length
      assert.deepEqual(
        found
          .filter(({ verdict }) => verdict === 'denied')
          .map(({ from, to, port, protocol }) => ({ from, to, port, protocol })),
        [],
      )
      for (const { policy, connections } of policies)
        for (const [fewer, direction, path] of withoutOneRule(policy)) {
          rules++
          const before = await sides(policy, direction, known, connections[direction])
          const after = await sides(fewer, direction, known, connections[direction])
          const isWorse = after.some((verdict, i) => verdict !== 'allowed' && verdict !== before[i])
          assert.ok(isWorse, `${path} is not needed`)
        }
    }),
    { numRuns: depth(150, 3_000) },
  )
  assert.ok(rules > 500 && edges > 500, `${rules} rules, ${edges} edges`)
  assert.ok(unknown < edges / 4, `${unknown} of ${edges} unknown`)
})
