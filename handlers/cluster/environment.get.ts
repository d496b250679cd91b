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
    nodes: z.int().min(0).describe('Nodes that said something.'),
  })
  .meta({ id: 'Environment' })

/** GET /cluster/environment: the platform that the nodes of the cluster run on; what nobody knows is `unknown` (interop-core 1.8). */
export default route({ summary: 'The platform that the nodes of the cluster run on', answer: Environment }).get(
  '/cluster/environment',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  async (c) => sendJson(c, await readEnvironment(c.get('deps').db.read)),
)
