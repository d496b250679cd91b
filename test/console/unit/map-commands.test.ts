/** The copied commands of the map send the same request as the map. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { edgeArguments } from '../../../wrangler-free-deploy/console/pages/map/commands.ts'

test('ctb has the filter, the window and the open namespaces', () => {
  const query = { port: ['8080'], to_workload: ['shop/api', '!shop/db'], since: '7d', order: 'flows', limit: 3_000 }
  assert.deepEqual(
    edgeArguments({ ...query, namespace: ['shop', '!ads'] }).join(' '),
    'edges --port 8080 --to-workload shop/api --to-workload !shop/db --since 7d --order flows --limit 3000 ' +
      '-n shop -n !ads',
  )
  assert.deepEqual(edgeArguments({ seen_by: ['from'], group: 'namespace' }), [
    ...['edges', '--seen-by', 'from', '--group', 'namespace'],
  ])
})
