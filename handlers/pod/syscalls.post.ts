import { z } from 'zod'
import { createFold, fixed, perDatabase } from '../../lib/db/index.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { body } from '../../lib/http/validate.ts'
import { type PodSyscalls, SyscallBatch, unitePods } from '../../lib/syscalls/index.ts'

const ROUTE = '/pod/syscalls'

const statement = fixed<{ left_out: number }[]>('select union_syscalls($1::text::json) as left_out')

/**
 * Resolves to how many names and architectures found no room in the unions of their workloads. Posts of one statement are united like the entries
 * of one body: any number of them may name the same pod. The first of them has the number of all.
 */
const unite = perDatabase((db) =>
  createFold<PodSyscalls[], number>({
    weight: (pods) => pods.length,
    maxWeight: 256,
    run: async (posts) => {
      const rows = JSON.stringify(posts.length === 1 ? posts[0] : unitePods(posts.flat()))
      const [row] = await db.ingest((sql) => statement(sql, rows))
      return posts.map((_, i) => (i === 0 ? row!.left_out : 0))
    },
  }),
)

/**
 * POST /pod/syscalls: adds names to pods and to the unions of their workloads, all entries in one transaction (interop-core D7;
 * interop-profiling 1.2); answers null.
 */
export default route({ summary: 'Adds syscalls to pods and their workloads, all entries in one transaction', answer: z.null() }).post(
  ROUTE,
  access('ingest'),
  body(SyscallBatch),
  async (c) => {
    const { db, rejections } = c.get('deps')
    const entries = c.req.valid('json')
    const blank = entries.filter((entry) => entry.pod_name.trim() === '').length
    const pods = unitePods(entries)
    rejections.note(ROUTE, blank, 'syscalls without a pod name: skipped')
    if (pods.length > 0) rejections.note(ROUTE, await unite(db)(pods), 'no room for syscalls in the unions of their workloads: left out')
    return sendJson(c, 'null')
  },
)
