/**
 * The verdicts of NetworkPolicies are those of cyclonus, an independent evaluator. scripts/policies-check.sh builds it
 * and runs this; README.md lists where cyclonus is known to be wrong.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { type Judgement, judge, type Verdict } from '../../lib/policies/evaluate.ts'
import type { Attempt, DirectionName } from '../../lib/policies/match.ts'
import { parsePolicies } from '../../lib/policies/parse.ts'
import { depth } from '../support/depth.ts'
import { type Asked, type Cyclonus, startCyclonus } from './cyclonus.ts'
import { inItsWords, KNOWN_DIFFERENCES, occurs } from './known-differences.ts'
import { type Flow, type KnownAddress, type KnownPod, type NetworkPolicyObject, scene } from './policy-values.ts'

const { CYCLONUS } = process.env
const skip = CYCLONUS === undefined && 'needs cyclonus: scripts/policies-check.sh builds it'
/** Each has one to four connections. */
const SCENES = depth(1_000, 10_000)
const TIMEOUT_MS = 900_000

let started: Cyclonus | undefined
after(() => started?.stop())
function cyclonus(): Cyclonus {
  started ??= startCyclonus(CYCLONUS!)
  return started
}

const read = (items: readonly NetworkPolicyObject[]) =>
  parsePolicies(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), 'json')

/** `none` where no policy isolates the end. */
type Side = Verdict | 'none'
type Sides = Readonly<Record<DirectionName, Side>>
const DIRECTIONS = ['egress', 'ingress'] as const

function ours({ sides }: Judgement): Sides {
  const of = (name: DirectionName): Side => sides.find(({ direction }) => direction === name)?.verdict ?? 'none'
  return { egress: of('egress'), ingress: of('ingress') }
}

/**
 * The answers of cyclonus. A port is allowed where a rule names any of its names. Where only some addresses of the peer
 * are allowed, it is not known which of them the connection uses.
 */
function theirs(asked: readonly Asked[]): Sides {
  const of = (direction: DirectionName): Side => {
    if (!asked[0]!.answer[`${direction}Isolated`]) return 'none'
    const byAddress = new Map<string, boolean>()
    for (const { question, answer } of asked) {
      const { ip } = direction === 'egress' ? question.to : question.from
      byAddress.set(ip, byAddress.get(ip) === true || answer[direction])
    }
    const found = new Set(byAddress.values())
    return found.size > 1 ? 'unknown' : found.has(true) ? 'allowed' : 'denied'
  }
  return { egress: of('egress'), ingress: of('ingress') }
}

const total = (counts: ReadonlyMap<string, number>, key: string) => counts.get(key) ?? 0
const count = (counts: Map<string, number>, key: string) => counts.set(key, total(counts, key) + 1)

test('NetworkPolicies allow what cyclonus allows', { skip, timeout: TIMEOUT_MS }, async () => {
  let flowCount = 0
  const verdicts = new Map<string, number>()
  const differences = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(scene, async ({ policies, flows }) => {
      const parsed = await read(policies)
      const asWritten = await cyclonus().ask(policies, flows)
      const asReworded = await cyclonus().ask(inItsWords(policies), flows)
      for (const [i, flow] of flows.entries()) {
        const shown = JSON.stringify({ flow, policies }, null, 1)
        const judged = judge(parsed, flow)
        const sides = ours(judged)
        assert.deepEqual(sides, theirs(asReworded[i]!), shown)
        const [only, ...more] = asReworded[i]!
        if (more.length === 0) assert.equal(judged.verdict, only!.answer.allowed ? 'allowed' : 'denied', shown)

        const written = theirs(asWritten[i]!)
        const [known, ...others] = KNOWN_DIFFERENCES.filter((one) => occurs(one, policies, flow))
        if (known === undefined) assert.deepEqual(sides, written, shown)
        else if (others.length === 0 && DIRECTIONS.some((name) => sides[name] !== written[name]))
          count(differences, known.name)
        for (const name of DIRECTIONS) count(verdicts, `${name} ${sides[name]}`)
        flowCount++
      }
    }),
    { numRuns: SCENES },
  )
  for (const name of DIRECTIONS) {
    for (const verdict of ['allowed', 'denied', 'none'])
      assert.ok(20 * total(verdicts, `${name} ${verdict}`) > flowCount, `${name} ${verdict} of ${flowCount} is rare`)
    assert.ok(total(verdicts, `${name} unknown`) > 0, `no ${name} is unknown`)
  }
  for (const { name } of KNOWN_DIFFERENCES)
    assert.ok(total(differences, name) > 0, `cyclonus no longer differs in this, so remove it: ${name}`)
})

// ---- What is not known ----------------------------------------------------------------------------------------------

const HIDDEN = ['labels', 'namespaceLabels', 'ips', 'namedPorts', 'port'] as const
type Hidden = (typeof HIDDEN)[number]

const NOTHING = { labels: null, namespaceLabels: null, ips: [], namedPorts: null }

function hide({ from, to, port, protocol }: Flow, hidden: readonly Hidden[]): Attempt {
  const unknown = Object.fromEntries(Object.entries(NOTHING).filter(([name]) => hidden.includes(name as Hidden)))
  const end = (one: KnownPod | KnownAddress) => (one.type === 'pod' ? { ...one, ...unknown } : one)
  return { from: end(from), to: end(to), port: hidden.includes('port') ? null : port, protocol }
}

test('what is not known makes a verdict unknown, never wrong', { skip, timeout: TIMEOUT_MS }, async () => {
  const seen = { known: 0, unknown: 0 }
  const hidden = fc.subarray([...HIDDEN], { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(scene, hidden, async ({ policies, flows }, names) => {
      const parsed = await read(policies)
      const asked = await cyclonus().ask(inItsWords(policies), flows)
      for (const [i, flow] of flows.entries()) {
        const found = ours(judge(parsed, hide(flow, names)))
        const truth = theirs(asked[i]!)
        for (const name of DIRECTIONS) {
          // Without labels it is not known whether a policy isolates the pod, but its rules may allow all the same.
          const isRight = found[name] === truth[name] || (truth[name] === 'none' && found[name] === 'allowed')
          if (found[name] === 'unknown' && truth[name] !== 'unknown') seen.unknown++
          else assert.ok(isRight, `${name}: ${JSON.stringify({ found, truth, names, flow, policies }, null, 1)}`)
          if (found[name] === 'allowed' || found[name] === 'denied') seen.known++
        }
      }
    }),
    { numRuns: SCENES },
  )
  assert.ok(seen.known > SCENES / 4 && seen.unknown > SCENES / 4, `too few of a kind: ${JSON.stringify(seen)}`)
})
