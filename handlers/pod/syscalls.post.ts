import { z } from 'zod'
import { createFold, fixed, perDatabase } from '../../lib/db/index.ts'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { type PodSyscalls, SyscallBatch, sentApart, unitePods } from '../../lib/syscalls/index.ts'

const ROUTE = '/pod/syscalls'

interface Added {
  /** Names and architectures that found no room in the unions of their workloads. */
  readonly left_out: number
  /** Entries that may be of pods of several namespaces, and of pods that were not posted lately. */
  readonly ambiguous: number
  readonly unknown: number
}

const statement = fixed<Added[]>('select * from add_syscalls($1::text::json, $2::text::json)')

/** Posts of one statement are stored like the entries of one body: any number of them may name the same pod. The first has the numbers of all. */
const add = perDatabase((db) =>
  createFold<PodSyscalls[], Added | null>({
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
 * POST /pod/syscalls: adds names to the records of pods, and to the sets of the workloads of those that sent them, all entries in one
 * transaction; answers null.
 */
export default route({
  summary: 'Adds syscalls to pods and their workloads, all entries in one transaction',
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
