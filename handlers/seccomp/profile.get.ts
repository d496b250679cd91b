import { z } from 'zod'
import { access, charge, kib, lookup, route, sendJson, type Validated } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { MAX_DETAIL_BYTES, noProfile, ObservedProfile, WorkloadPath } from '../../lib/seccomp/index.ts'

/** The read budget is charged this: 64 contributors, and 800 denied pairs of syscall and action. */
const MAX_BYTES = 64 * 4_096 + 800 * 512

const Query = z.object({
  detail: documentedAs(
    z
      .enum(['true', 'false', ''])
      .transform((word) => word === 'true')
      .default(false),
    {
      type: 'boolean',
      default: false,
      description: 'With `true`, also when each syscall was first and last seen, and in which images.',
    },
  ),
})

const chargeAnswer: Validated<'query', typeof Query> = charge((c) =>
  kib(MAX_BYTES + (c.req.valid('query').detail ? MAX_DETAIL_BYTES : 0)),
)

/**
 * GET /seccomp/profiles/{namespace}/{kind}/{name}: the entry of a workload with its profile
 * (docs/contract.md#seccomp-profiles).
 */
export default route({
  summary: 'Get the seccomp profile of a workload',
  description:
    'The entry of the list, with a profile that allows the observed syscalls and logs all others. Never cached.',
  answer: ObservedProfile,
  also: { 404: noProfile().message },
}).get(
  '/seccomp/profiles/:namespace/:kind/:name',
  access('read'),
  lookup.params(WorkloadPath),
  lookup.query(Query, { unknown: 'ignored' }),
  chargeAnswer,
  async (c) => {
    const found = await c.get('deps').profiles.one({ ...c.req.valid('param'), ...c.req.valid('query') })
    if (found === null) throw noProfile()
    return sendJson(c, found)
  },
)
