import { z } from 'zod'
import { access, charge, lookup, NoParameters, noData, pathText, route, sendJson } from '../../lib/http/index.ts'
import { batchedLookup } from '../../lib/records/index.ts'
import { SyscallRecord } from '../../lib/syscalls/index.ts'

const Params = z.object({ name: pathText.describe('The name of a pod.') })

const syscallsByPod = batchedLookup<{ name: string }>(
  SyscallRecord,
  { name: 'text' },
  'select * from pod_syscalls where pod_name = k.name',
)

/**
 * GET /pod/syscalls/{name}: an array with the one record of a pod, its names joined with commas
 * (docs/contract.md#syscalls).
 */
export default route({
  summary: 'Get the syscalls of a pod',
  answer: z.array(SyscallRecord).length(1),
  also: { 404: 'No data found' },
}).get(
  '/pod/syscalls/:name',
  access('read'),
  lookup.params(Params),
  lookup.query(NoParameters, { unknown: 'ignored' }),
  charge(16),
  async (c) => {
    const record = await syscallsByPod(c.get('deps').db, c.req.valid('param'))
    if (!record) throw noData()
    return sendJson(c, `[${record}]`)
  },
)
