import { z } from 'zod'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { shownAs } from '../../lib/http/declared.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { keptBytes, sendKept } from '../../lib/http/respond.ts'
import { query } from '../../lib/http/validate.ts'
import { ProfileSummary } from '../../lib/seccomp/index.ts'

const Query = z.object({
  state: shownAs(z.never('the list cannot be filtered by state').optional(), {
    type: 'string',
    enum: [],
    deprecated: true,
    description: 'Refused, whatever it is: clients once filtered by it.',
  }),
})

/**
 * GET /seccomp/profiles: every workload of which syscalls were observed, by namespace, kind and name (interop-profiling 1.1). Who waits for
 * the list to be made holds nothing: making it is charged once, and each answer what it takes to send it.
 */
export default route({
  summary: 'The observed seccomp profiles of all workloads',
  description:
    'Made at most once in `SECCOMP_PROFILES_CACHE_TTL_SECS`: until then everybody gets the same bytes, whatever was written meanwhile. With 0 it is made for each request, and those that come while it is made share it.',
  answer: z.array(ProfileSummary),
}).get(
  '/seccomp/profiles',
  access('read'),
  query(Query),
  charge(async (c) => kib(keptBytes(c, await c.get('deps').profiles.list.read()))),
  (c) => sendKept(c, c.get('deps').profiles.list.latest),
)
