import { z } from 'zod'
import {
  access,
  cachedBytes,
  charge,
  kib,
  NoParameters,
  notModified,
  query,
  route,
  sendCached,
} from '../../lib/http/index.ts'
import { ProfileSummary } from '../../lib/seccomp/index.ts'

const etag = { ETag: z.string().describe('To be sent as `If-None-Match`: the same for the same list.') }

/**
 * GET /seccomp/profiles: every workload of which syscalls were observed, by namespace, kind and name (interop-profiling 1.1). Who waits for
 * the list to be made holds nothing: making it is charged once, and each answer what it takes to send it.
 */
export default route({
  summary: 'The observed seccomp profiles of all workloads',
  description:
    'Made at most once in `SECCOMP_PROFILES_CACHE_TTL_SECS`: until then everybody gets the same bytes, whatever was written meanwhile. With 0 it is made for each request, and those that come while it is made share it.',
  answer: z.array(ProfileSummary),
  headers: etag,
  also: { 304: { description: 'It is the list that `If-None-Match` names.', answer: null, headers: etag } },
}).get(
  '/seccomp/profiles',
  access('read'),
  query(NoParameters),
  notModified((c) => c.get('deps').profiles.list.read()),
  charge((c) => kib(cachedBytes(c, c.get('deps').profiles.list.latest))),
  (c) => sendCached(c, c.get('deps').profiles.list.latest),
)
