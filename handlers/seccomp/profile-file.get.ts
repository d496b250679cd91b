import { access, lookup, NoParameters, pathText, route, sendJson } from '../../lib/http/index.ts'
import { noProfile, Profile, profileOf, readObserved, WorkloadPath } from '../../lib/seccomp/index.ts'

const Params = WorkloadPath.extend({ hash: pathText.describe('The `hash` of the observed set.') })

/** GET /seccomp/profile-file/{namespace}/{kind}/{name}/{hash}: the bare profile (docs/contract.md#seccomp-profiles). */
export default route({
  summary: 'Get the seccomp profile file of a workload',
  answer: Profile,
  also: { 404: `${noProfile().message}, or it has another hash now.` },
}).get(
  '/seccomp/profile-file/:namespace/:kind/:name/:hash',
  access('read'),
  lookup.params(Params),
  lookup.query(NoParameters, { unknown: 'ignored' }),
  async (c) => {
    const { hash, ...workload } = c.req.valid('param')
    const observed = await readObserved(c.get('deps').db, workload)
    if (observed.hash !== hash) throw noProfile()
    return sendJson(c, JSON.stringify(profileOf(observed)))
  },
)
