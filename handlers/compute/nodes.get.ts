import { z } from 'zod'
import { LatestNode, readNodes } from '../../lib/compute/index.ts'
import { access, charge, kib, NoParameters, query, route, sendJson } from '../../lib/http/index.ts'

const CHARGE_KIB = kib(512 * 1_024)

const Nodes = z.strictObject({ nodes: z.array(LatestNode).describe('By name.') }).meta({ id: 'ComputeNodes' })

/** GET /compute/nodes: the latest sample of every node (workload-profiling, Compute; interop-profiling 3.3). */
export default route({ summary: 'The latest sample of every node', answer: Nodes }).get(
  '/compute/nodes',
  access('read'),
  query(NoParameters),
  charge(CHARGE_KIB),
  async (c) => sendJson(c, await readNodes(c.get('deps').db, '')),
)
