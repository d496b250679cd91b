import { z } from 'zod'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { pathText } from '../../lib/http/fields.ts'
import { charge } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { params } from '../../lib/http/validate.ts'
import { PodRecord } from '../../lib/pods/index.ts'

const Params = z.object({ node: pathText.describe('The name of a node.') })

/** GET /pod/list/{node}: the live pods of a node, by namespace and name; `[]` for an unknown node. */
export default route({ summary: 'The live pods of a node, by namespace and name', answer: z.array(PodRecord) }).get(
  '/pod/list/:node',
  access('read'),
  params(Params),
  charge(512),
  async (c) => {
    const { node } = c.req.valid('param')
    const bytes = await c.get('deps').db.read.json(
      (sql) => sql`
      select coalesce(json_agg(pod_record(p) order by p.pod_namespace, p.pod_name), '[]')
      from pod p where p.node_name = ${node} and not p.is_dead`,
    )
    return sendJson(c, bytes!)
  },
)
