import { z } from 'zod'
import { foldedLookup } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { noData } from '../../lib/http/errors.ts'
import { pathText } from '../../lib/http/fields.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { lookup } from '../../lib/http/validate.ts'
import { PodRecord } from '../../lib/pods/index.ts'

const Params = z.object({ name: pathText.describe('The name of a pod.') })

// The name is the key of the table: the live row and the most recent dead one are the same row.
const podByName = foldedLookup<string>(async (db, names) => {
  const rows = await db.read((sql) =>
    sql`
      select (select pod_record(p) from pod p where p.pod_name = k.name)
      from json_array_elements_text(${JSON.stringify(names)}::text::json) with ordinality k(name, n) order by k.n`.raw(),
  )
  return rows.map(([record]) => record as Buffer | null)
})

/** GET /pod/name/{name}: one pod record; 404 `No data found`. */
export default route({ summary: 'One pod by its name', answer: PodRecord, also: { 404: 'No data found' } }).get(
  '/pod/name/:name',
  access('read'),
  lookup.params(Params),
  async (c) => {
    const record = await podByName(c.get('deps').db, c.req.valid('param').name)
    if (!record) throw noData()
    return sendJson(c, record)
  },
)
