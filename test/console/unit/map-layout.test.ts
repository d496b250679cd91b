/** The layout identifies nodes by their names: a poll that changes only numbers moves nothing and ends no drag. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Graph, MapEdge, MapNode } from '../../../wrangler-free-deploy/console/pages/map/graph.ts'
import { Layout } from '../../../wrangler-free-deploy/console/pages/map/layout.ts'
import type { FromLayout, ToLayout } from '../../../wrangler-free-deploy/console/pages/map/layout-messages.ts'

const graph = (ids: readonly string[], links: readonly (readonly [string, string])[]): Graph => ({
  nodes: ids.map((id) => ({ id, kind: 'namespace', label: id, namespace: id, flows: 1, addresses: 0 }) as MapNode),
  edges: links.map(([from, to]) => ({ id: `${from}>${to}`, from, to }) as MapEdge),
  hiddenNodes: [],
  hiddenEdges: [],
  replaced: 0,
})

function start() {
  const told: ToLayout[] = []
  const worker = {
    onmessage: null as Worker['onmessage'],
    postMessage: (message: ToLayout) => void told.push(message),
    terminate: () => {},
  }
  const layout = new Layout(worker, () => {})
  const answer = (data: FromLayout) => worker.onmessage?.call(worker as never, { data } as MessageEvent)
  const typesOf = () => told.map(({ type }) => type)
  return { layout, told, answer, typesOf }
}

test('another order of the same nodes and edges does not run the layout again', () => {
  const { layout, answer, typesOf } = start()
  layout.setGraph(
    graph(
      ['a', 'b', 'c'],
      [
        ['a', 'b'],
        ['b', 'c'],
      ],
    ),
    false,
  )
  answer({ generation: 1, positions: Float32Array.of(1, 1, 2, 2, 3, 3), isSettled: true })
  layout.setGraph(
    graph(
      ['c', 'a', 'b'],
      [
        ['b', 'c'],
        ['b', 'a'],
      ],
    ),
    false,
  )
  assert.deepEqual(typesOf(), ['start'])
  assert.equal(layout.isSettled, true)
  assert.deepEqual([...layout.positions], [3, 3, 1, 1, 2, 2])
  answer({ generation: 1, positions: Float32Array.of(4, 4, 5, 5, 6, 6), isSettled: true })
  assert.deepEqual([...layout.positions], [6, 6, 4, 4, 5, 5])
  layout.setGraph(graph(['c', 'a', 'b'], [['b', 'c']]), false)
  assert.deepEqual(typesOf(), ['start', 'start'])
})

test('a drag continues with the node of the same name, and ends with it', () => {
  const { layout, told, answer } = start()
  layout.setGraph(graph(['a', 'b'], [['a', 'b']]), false)
  layout.drag('b', 7, 8)
  layout.setGraph(graph(['b', 'a'], [['a', 'b']]), false)
  layout.drag('b', 9, 9)
  answer({ generation: 1, positions: Float32Array.of(1, 1, 2, 2), isSettled: false })
  assert.deepEqual([...layout.positions], [9, 9, 1, 1])
  layout.setGraph(graph(['b', 'c', 'a'], [['a', 'b']]), false)
  layout.release()
  assert.deepEqual(
    told.filter(({ type }) => type !== 'start'),
    [
      { type: 'drag', index: 1, x: 7, y: 8 },
      { type: 'drag', index: 1, x: 9, y: 9 },
      // The worker started again with another order.
      { type: 'drag', index: 0, x: 9, y: 9 },
      { type: 'release', index: 0 },
    ],
  )
})

test('removing a dragged node ends the drag', () => {
  const { layout, told } = start()
  layout.setGraph(graph(['a', 'b'], []), false)
  layout.drag('b', 7, 8)
  layout.setGraph(graph(['a'], []), false)
  layout.drag('b', 9, 9)
  layout.release()
  assert.deepEqual(
    told.map(({ type }) => type),
    ['start', 'drag', 'start'],
  )
})
