import { access, lookup, NoParameters, pathText, route, sendJson } from '../../lib/http/index.ts'
import { noProfile, Profile, profileOf, readObserved, WorkloadPath } from '../../lib/seccomp/index.ts'

const Params = WorkloadPath.extend({ hash: pathText.describe('The `hash` of its observed set.') })

/** GET /seccomp/profile-file/{namespace}/{kind}/{name}/{hash}: the bare profile, under its present hash only (interop-profiling 1.5, P21). */
export default route({
  summary: 'The observed seccomp profile of a workload as a file',
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
