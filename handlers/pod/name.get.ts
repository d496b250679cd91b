import { z } from 'zod'
import { access, lookup, NoParameters, noData, pathText, route, sendJson } from '../../lib/http/index.ts'
import { PodRecord } from '../../lib/pods/index.ts'
import { batchedLookup } from '../../lib/records/index.ts'

const Params = z.object({ name: pathText.describe('The name of a pod.') })

// The name is the key of the table, so a live pod and the last dead one of the name share a row.
const podByName = batchedLookup<{ name: string }>(
  PodRecord,
  { name: 'text' },
  'select * from pod where pod_name = k.name',
)

/** GET /pod/name/{name}: one pod record (docs/contract.md#pods). */
export default route({ summary: 'Get a pod by name', answer: PodRecord, also: { 404: 'No data found' } }).get(
  '/pod/name/:name',
  access('read'),
  lookup.params(Params),
  lookup.query(NoParameters, { unknown: 'ignored' }),
  async (c) => {
    const record = await podByName(c.get('deps').db, c.req.valid('param'))
    if (!record) throw noData()
    return sendJson(c, record)
  },
)
