import { fixed } from '../../lib/db/index.ts'
import { access, body, params, route, sendJson } from '../../lib/http/index.ts'
import { CrPath, MirroredCr, mirrorOf, PostedCr } from '../../lib/seccomp/index.ts'

const ROUTE = '/seccomp/crs/:namespace/:name'

const CONTENT = `default_action, architectures, syscalls, syscall_count, workload_kind, workload_name, hash,
                 ready, total, state`
const contentOf = (row: string) => `(${CONTENT.replace(/\w+/g, (column) => `${row}.${column}`)})`

// Controllers post every resource again and again: an unchanged one is found by reading and takes no lock. A statement
// that had to wait for another writer compares again under the lock.
const mirror = fixed(`
  insert into seccomp_cr as c (namespace, name, ${CONTENT}, updated_at)
  select s.*, clock_timestamp() at time zone 'utc'
  from json_to_record($1::text::json) as s(
    namespace text, name text, default_action text, architectures text[], syscalls text, syscall_count bigint,
    workload_kind text, workload_name text, hash text, ready bigint, total bigint, state text)
  where not exists (
    select from seccomp_cr stored
    where stored.namespace = s.namespace and stored.name = s.name
      and ${contentOf('stored')} is not distinct from ${contentOf('s')})
  on conflict (namespace, name) do update set
    (${CONTENT}) = row ${contentOf('excluded')},
    updated_at = greatest(clock_timestamp() at time zone 'utc', c.updated_at + interval '1 microsecond')
  where ${contentOf('c')} is distinct from ${contentOf('excluded')}`)

/** PUT /seccomp/crs/{namespace}/{name}: mirrors a resource as it is now (docs/contract.md#seccomp-distribution). */
export default route({
  summary: 'Mirror a seccomp resource',
  description:
    'A post that changes nothing writes nothing, so `updatedAt` of the mirrored resource is its last change.',
  answer: MirroredCr,
}).put(ROUTE, access('ingest'), params(CrPath), body(PostedCr), async (c) => {
  const { db, rejections } = c.get('deps')
  const { row, skipped } = mirrorOf(c.req.valid('param'), c.req.valid('json'))
  await db.ingest((sql) => mirror(sql, JSON.stringify(row)))
  rejections.note(ROUTE, skipped, 'a custom resource has names that no syscall has: skipped')
  const { namespace, name, hash, syscall_count: syscallCount } = row
  return sendJson(c, JSON.stringify({ namespace, name, hash, syscallCount } satisfies MirroredCr))
})
