/** The graph of the map loses no edge of the answers, and keeps its limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Edge, Side } from '../../../wrangler-free-deploy/console/api/edge.ts'
import { buildGraph, flowsOf, type Graph, portsOf } from '../../../wrangler-free-deploy/console/pages/map/graph.ts'

const none = { namespace: null, name: null, workload: null, ip: null }
const namespaces = ['shop', 'payments', 'kube-system', 'shop/odd'] as const
const namespace = fc.constantFrom(...namespaces)
const name = fc.constantFrom('api', 'db', 'Deployment', 'nodes', 'external')

const address = fc.record({
  kind: fc.constantFrom('node', 'external', 'unresolved'),
  ip: fc.ipV4(),
})
const outside: fc.Arbitrary<Side> = address.map(({ kind, ip }) => ({ ...none, kind, ip }) as Side)
const namespaceSide: fc.Arbitrary<Side> = namespace.map(
  (one) => ({ ...none, kind: 'namespace', namespace: one }) as Side,
)
const workloadSide: fc.Arbitrary<Side> = fc
  .record({ kind: fc.constantFrom('Deployment', 'Pod'), namespace, name })
  .map(({ kind, namespace, name }) => ({ ...none, kind: 'workload', namespace, workload: `${kind}/${name}` }) as Side)
const namedSide: fc.Arbitrary<Side> = fc
  .record({ kind: fc.constantFrom('pod', 'service'), namespace, name })
  .map((side) => ({ ...none, ...side }) as Side)

const edgesOf = (side: fc.Arbitrary<Side>): fc.Arbitrary<Edge[]> =>
  fc.array(
    fc.record({
      from: side,
      to: side,
      port: fc.constantFrom('53', '443', null),
      protocol: fc.constantFrom('TCP', 'UDP'),
      verdict: fc.constantFrom('ALLOW', 'DROP'),
      flows: fc.integer({ min: 1, max: 1_000 }),
      pods: fc.integer({ min: 1, max: 9 }),
      seenBy: fc.constant(['from']),
      firstSeenAt: fc.constantFrom('2026-01-01T00:00:00', '2026-02-01T00:00:00'),
      lastNewAt: fc.constantFrom('2026-03-01T00:00:00', '2026-04-01T00:00:00'),
    }) as fc.Arbitrary<Edge>,
    { maxLength: 60 },
  )

const input = fc.record({
  namespaceEdges: edgesOf(fc.oneof(namespaceSide, outside)),
  workloadEdges: edgesOf(fc.oneof({ weight: 4, arbitrary: workloadSide }, namedSide, outside)),
  open: fc.subarray([...namespaces]).map((one) => new Set<string>(one)),
  hasNetworks: fc.boolean(),
})
const limits = fc.record({ nodes: fc.integer({ min: 0, max: 12 }), edges: fc.integer({ min: 0, max: 12 }) })

const everyEdge = ({ edges, hiddenEdges }: Graph) => [...edges, ...hiddenEdges]
const everyNode = ({ nodes, hiddenNodes }: Graph) => [...nodes, ...hiddenNodes]
const isDistinct = (all: readonly unknown[]) => new Set(all).size === all.length

test('no node and no edge appears twice', () => {
  fc.assert(
    fc.property(input, limits, (given, most) => {
      const graph = buildGraph(given, most)
      assert.ok(isDistinct(everyNode(graph).map(({ id }) => id)))
      assert.ok(isDistinct(everyEdge(graph).map(({ id }) => id)))
    }),
  )
})

test('each edge of the answers is in exactly one drawn edge, or replaced by edges of the other answer', () => {
  fc.assert(
    fc.property(input, limits, (given, most) => {
      const graph = buildGraph(given, most)
      const parts = everyEdge(graph).flatMap((edge) => edge.parts)
      assert.ok(isDistinct(parts))
      const { namespaceEdges, workloadEdges, open } = given
      assert.equal(parts.length + graph.replaced, namespaceEdges.length + workloadEdges.length)
      assert.ok(workloadEdges.every((edge) => parts.includes(edge)))
      const touches = ({ from, to }: Edge) =>
        [from, to].some(({ namespace }) => namespace !== null && open.has(namespace))
      assert.ok(namespaceEdges.every((edge) => parts.includes(edge) !== touches(edge)))
    }),
  )
})

test('the sums agree', () => {
  fc.assert(
    fc.property(input, limits, (given, most) => {
      const graph = buildGraph(given, most)
      for (const edge of everyEdge(graph)) {
        assert.equal(edge.flows, flowsOf(edge.parts))
        assert.ok(edge.parts.every(({ verdict }) => (verdict === 'DROP') === edge.isDropped))
        assert.deepEqual([...edge.parts].map(({ firstSeenAt }) => firstSeenAt).sort()[0], edge.firstSeenAt)
        assert.deepEqual(
          [...edge.parts]
            .map(({ lastNewAt }) => lastNewAt)
            .sort()
            .at(-1),
          edge.lastNewAt,
        )
        assert.ok(isDistinct(portsOf(edge)))
      }
      for (const node of everyNode(graph))
        assert.equal(node.flows, flowsOf(everyEdge(graph).filter(({ from, to }) => from === node.id || to === node.id)))
    }),
  )
})

test('the limits hold, edges end at drawn nodes, and the smallest are left out', () => {
  fc.assert(
    fc.property(input, limits, (given, most) => {
      const { nodes, edges, hiddenNodes, hiddenEdges } = buildGraph(given, most)
      assert.ok(nodes.length <= most.nodes && edges.length <= most.edges)
      const drawn = new Set(nodes.map(({ id }) => id))
      const fits = ({ from, to }: { from: string; to: string }) => drawn.has(from) && drawn.has(to)
      assert.ok(edges.every(fits))
      assert.ok(hiddenNodes.length === 0 || nodes.length === most.nodes)
      const smallest = Math.min(...nodes.map(({ flows }) => flows))
      assert.ok(hiddenNodes.every(({ flows }) => flows <= smallest))
      const possible = hiddenEdges.filter(fits)
      assert.ok(possible.length === 0 || edges.length === most.edges)
      assert.ok(possible.every(({ flows }) => edges.every((edge) => edge.flows >= flows)))
    }),
  )
})

test('a closed namespace is one node, and so is each kind of peer outside, but for open networks', () => {
  fc.assert(
    fc.property(input, (given) => {
      const networks = [...given.namespaceEdges, ...given.workloadEdges]
        .flatMap(({ from, to }) => [from, to])
        .flatMap(({ kind, ip }) => (kind === 'external' ? [`network:${ip}`] : []))
      for (const { kind, id, namespace } of buildGraph(given).nodes) {
        if (kind === 'namespace') assert.equal(id, `namespace:${namespace}`)
        else if (kind === 'network') assert.ok(given.hasNetworks && networks.includes(id))
        else if (kind === 'external') assert.ok(!given.hasNetworks)
        else if (namespace === null) assert.ok(['nodes', 'unresolved'].includes(id))
        else assert.ok(given.open.has(namespace))
      }
    }),
  )
})

test('the order of the answers does not matter', () => {
  fc.assert(
    fc.property(input, limits, ({ namespaceEdges, workloadEdges, ...rest }, most) => {
      const turned = {
        namespaceEdges: namespaceEdges.toReversed(),
        workloadEdges: workloadEdges.toReversed(),
        ...rest,
      }
      const idsOf = (graph: Graph) => [graph.nodes, graph.edges].map((all) => all.map(({ id }) => id))
      assert.deepEqual(
        idsOf(buildGraph({ namespaceEdges, workloadEdges, ...rest }, most)),
        idsOf(buildGraph(turned, most)),
      )
    }),
  )
})
