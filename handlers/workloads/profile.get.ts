import {
  access,
  charge,
  codedErrors,
  kib,
  NoParameters,
  params,
  query,
  route,
  sendJson,
  type Validated,
} from '../../lib/http/index.ts'
import { MAX_NAMESPACE_BYTES } from '../../lib/image-trust/index.ts'
import { buildProfile, PROFILE_BYTES } from '../../lib/profile/build.ts'
import { withImageTrust } from '../../lib/profile/images/index.ts'
import { isKnownWorkload, WORKLOAD_REFUSALS, workloadNotFound } from '../../lib/profile/known.ts'
import { ProfilePath } from '../../lib/profile/path.ts'
import { Profile } from '../../lib/profile/record/profile.ts'

/** An unknown workload is refused before anything is charged; the evaluator's answer counts while it is asked for. */
const chargeKnown: Validated<'param', typeof ProfilePath> = charge(async (c) => {
  const { db, imageTrust } = c.get('deps')
  const key = c.req.valid('param')
  if (!(await isKnownWorkload(db.read, key))) throw workloadNotFound(key)
  return kib(PROFILE_BYTES + (imageTrust.workloads.hasToAsk(key.namespace) ? MAX_NAMESPACE_BYTES : 0))
})

/**
 * GET /workloads/{namespace}/{kind}/{name}/profile: what is known of the security of a workload, computed now
 * (docs/contract.md#workload-profiles).
 */
export default route({
  summary: 'Get the security profile of a workload',
  description:
    'Its peers, syscalls, Pod Security, images, compute samples, capabilities and drift, each with all that is not ' +
    'known, the findings that follow, and a posture with its reasons. Unknown is never ok.',
  answer: Profile,
  also: WORKLOAD_REFUSALS,
}).get(
  '/workloads/:namespace/:kind/:name/profile',
  access('read'),
  codedErrors,
  params(ProfilePath),
  query(NoParameters, { unknown: 'ignored' }),
  chargeKnown,
  async (c) => {
    const { db, config, imageTrust } = c.get('deps')
    const key = c.req.valid('param')
    const built = await buildProfile({ db, config }, key, db.read)
    if (built === null) throw workloadNotFound(key)
    const { profile } = built
    const { images } = profile.dimensions
    if (images.supplyChain) images.supplyChain.imageTrust = await withImageTrust(imageTrust, key, images)
    return sendJson(c, JSON.stringify(profile))
  },
)
