import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { readEnvironment } from '../../lib/nodes/index.ts'

/** GET /cluster/environment: the platform that the nodes of the cluster run on; what nobody knows is `unknown` (interop-core 1.8). */
export default route().get('/cluster/environment', access('read'), async (c) => sendJson(c, await readEnvironment(c.get('deps').db.read)))
