import { z } from 'zod'
import {
  access,
  asArray,
  charge,
  NoParameters,
  params,
  pathText,
  query,
  route,
  sendJson,
} from '../../lib/http/index.ts'
import { PodRecord } from '../../lib/pods/index.ts'
import { listReader } from '../../lib/records/index.ts'

const Params = z.object({ node: pathText.describe('The name of a node.') })

const podsOfNode = listReader(
  PodRecord,
  'select * from pod where node_name = $1 and not is_dead order by pod_namespace, pod_name',
)

/** GET /pod/list/{node}: the live pods of a node, by namespace and name; `[]` for an unknown node. */
export default route({ summary: 'List the live pods of a node', answer: z.array(PodRecord) }).get(
  '/pod/list/:node',
  access('read'),
  params(Params),
  query(NoParameters, { unknown: 'ignored' }),
  charge(512),
  async (c) => {
    const { node } = c.req.valid('param')
    return sendJson(c, asArray(await podsOfNode(c.get('deps').db.read, node)))
  },
)
