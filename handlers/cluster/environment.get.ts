import { z } from 'zod'
import { access, NoParameters, query, route, sendJson } from '../../lib/http/index.ts'
import { PLATFORM_WORDS, readEnvironment } from '../../lib/nodes/index.ts'

const { cni, ip_family, provider, distro, node_os } = PLATFORM_WORDS

const Environment = z
  .strictObject({
    cni: z.enum(cni),
    ip_family: z.enum(ip_family),
    provider: z.enum(provider),
    distro: z.enum(distro),
    node_os: z.enum(node_os),
    policy_enforcement: z.enum(['enforced', 'unenforced', 'mixed', 'unknown']),
    nodes: z.int().min(0).describe('Nodes that posted facts.'),
  })
  .meta({ id: 'Environment' })

/** GET /cluster/environment: the platform of the cluster, from the facts of its nodes (docs/contract.md#node-facts). */
export default route({ summary: 'Get the platform of the cluster', answer: Environment }).get(
  '/cluster/environment',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  async (c) => sendJson(c, await readEnvironment(c.get('deps').db.read)),
)
