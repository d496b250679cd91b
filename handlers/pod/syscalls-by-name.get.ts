import { z } from 'zod'
import { foldedLookup } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { pathText } from '../../lib/http/fields.ts'
import { charge } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { lookup } from '../../lib/http/validate.ts'
import { SyscallRecord } from '../../lib/syscalls/index.ts'

const Params = z.object({ name: pathText.describe('The name of a pod.') })

const syscallsByPod = foldedLookup<string>(async (db, names) => {
  const rows = await db.read((sql) =>
    sql`
      select (select json_build_array(json_build_object('pod_name', s.pod_name, 'pod_namespace', s.pod_namespace,
                'syscalls', s.syscalls, 'arch', s.arch, 'time_stamp', wire_time(s.time_stamp)))
              from pod_syscalls s where s.pod_name = k.name)
      from json_array_elements_text(${JSON.stringify(names)}::text::json) with ordinality k(name, n) order by k.n`.raw(),
  )
  return rows.map(([records]) => records as Buffer | null)
})

/** GET /pod/syscalls/{name}: an array of the one record of a pod, its names joined with commas; 404 `No data found`. */
export default route({
  summary: 'The syscalls of a pod',
  answer: z.array(SyscallRecord).length(1),
  also: { 404: 'No data found' },
}).get('/pod/syscalls/:name', access('read'), lookup.params(Params), charge(16), async (c) => {
  const records = await syscallsByPod(c.get('deps').db, c.req.valid('param').name)
  if (!records) throw noData()
  return sendJson(c, records)
})
