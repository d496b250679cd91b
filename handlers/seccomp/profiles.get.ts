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

const etag = { ETag: z.string().describe('Send it back as `If-None-Match`. It is the same for the same list.') }

/**
 * GET /seccomp/profiles: every workload with observed syscalls, by namespace, kind and name
 * (docs/contract.md#seccomp-profiles). Building the list is charged to the read budget once; each answer is charged the
 * bytes that it sends, and requests that wait for a build are not.
 */
export default route({
  summary: 'List the seccomp profiles of all workloads',
  description:
    'Built at most once in `SECCOMP_PROFILES_CACHE_TTL_SECS`: until then all clients get the same bytes, whatever ' +
    'was written meanwhile. With 0 it is built for each request, and requests that arrive during a build share it.',
  answer: z.array(ProfileSummary),
  headers: etag,
  also: { 304: { description: 'The client has this list: `If-None-Match` matches.', answer: null, headers: etag } },
}).get(
  '/seccomp/profiles',
  access('read'),
  query(NoParameters),
  notModified((c) => c.get('deps').profiles.list.read()),
  charge((c) => kib(cachedBytes(c, c.get('deps').profiles.list.latest))),
  (c) => sendCached(c, c.get('deps').profiles.list.latest),
)
