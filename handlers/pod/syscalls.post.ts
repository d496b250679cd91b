import { z } from 'zod'
import { createBatcher, fixed, perDatabase } from '../../lib/db/index.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { type PodSyscalls, SyscallBatch, sentApart, unitePods } from '../../lib/syscalls/index.ts'

const ROUTE = '/pod/syscalls'

interface Added {
  /** Names and architectures beyond the limit of the set of their workload. */
  readonly left_out: number
  /** Entries that may belong to pods of several namespaces. */
  readonly ambiguous: number
  /** Entries of pods that nobody posted lately. */
  readonly unknown: number
}

const statement = fixed<Added[]>('select * from add_syscalls($1::text::json, $2::text::json)')

/**
 * Posts that share a statement are stored like the entries of one body. The first post gets the counts of all of them.
 */
const add = perDatabase((db) =>
  createBatcher<PodSyscalls[], Added | null>({
    weight: (entries) => entries.length,
    maxWeight: 256,
    run: async (posts) => {
      const entries = posts.flat()
      const pods = JSON.stringify(unitePods(entries))
      const apart = sentApart(entries)
      const sent = apart === null ? null : JSON.stringify(apart)
      const [row] = await db.ingest((sql) => statement(sql, pods, sent))
      return posts.map((_, i) => (i === 0 ? row! : null))
    },
  }),
)

/**
 * POST /pod/syscalls: adds names to the records of pods and to the observed sets of their workloads, all entries in one
 * transaction; returns null (docs/contract.md#syscalls).
 */
export default route({
  summary: 'Add syscalls to pods and their workloads',
  description: 'All entries are stored in one transaction.',
  answer: z.null(),
}).post(ROUTE, access('ingest'), body(SyscallBatch), async (c) => {
  const { db, rejections, metrics } = c.get('deps')
  const entries = c.req.valid('json')
  const named = entries.filter((entry) => entry.pod_name.trim() !== '')
  rejections.note(ROUTE, entries.length - named.length, 'syscalls without a pod name: skipped')
  const added = named.length > 0 ? await add(db)(named) : null
  if (added !== null) {
    rejections.note(ROUTE, added.left_out, 'no room for syscalls in the unions of their workloads: left out')
    metrics.unattributedSyscalls.inc({ reason: 'ambiguous' }, added.ambiguous)
    metrics.unattributedSyscalls.inc({ reason: 'unknown_pod' }, added.unknown)
  }
  return sendJson(c, 'null')
})
