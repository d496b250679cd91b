import { z } from 'zod'
import { LatestNode, readNodes } from '../../lib/compute/index.ts'
import { access, charge, kib, NoParameters, query, route, sendJson } from '../../lib/http/index.ts'

const CHARGE_KIB = kib(512 * 1_024)

const Nodes = z.strictObject({ nodes: z.array(LatestNode).describe('By name.') }).meta({ id: 'ComputeNodes' })

/** GET /compute/nodes: the latest sample of every node (docs/contract.md#compute). */
export default route({ summary: 'List the latest compute sample of every node', answer: Nodes }).get(
  '/compute/nodes',
  access('read'),
  query(NoParameters),
  charge(CHARGE_KIB),
  async (c) => sendJson(c, await readNodes(c.get('deps').db, '')),
)
