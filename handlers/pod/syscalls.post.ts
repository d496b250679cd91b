import { z } from 'zod'
import { perDatabase } from '../../lib/db/folded.ts'
import { createFold } from '../../lib/db/index.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { body } from '../../lib/http/validate.ts'
import { type PodSyscalls, SyscallBatch, unitePods } from '../../lib/syscalls/index.ts'

// Posts of one statement are united like the entries of one body: any number of them may name the same pod.
const unite = perDatabase((db) =>
  createFold<PodSyscalls[], void>({
    weight: (pods) => pods.length,
    maxWeight: 256,
    run: async (posts) => {
      const rows = JSON.stringify(posts.length === 1 ? posts[0] : unitePods(posts.flat()))
      await db.ingest((sql) => sql`select union_syscalls(${rows}::text::json)`)
      return posts.map(() => undefined)
    },
  }),
)

/** POST /pod/syscalls: adds names to pods, all entries in one transaction (interop-core D7); answers null. */
export default route({ summary: 'Adds syscalls to pods, all entries in one transaction', answer: z.null() }).post(
  '/pod/syscalls',
  access('ingest'),
  body(SyscallBatch),
  async (c) => {
    const { db, log } = c.get('deps')
    const entries = c.req.valid('json')
    const blank = entries.filter((entry) => entry.pod_name.trim() === '').length
    if (blank > 0) log.warn({ entries: blank }, 'syscalls without a pod name: skipped')
    const pods = unitePods(entries)
    if (pods.length > 0) await unite(db)(pods)
    return sendJson(c, 'null')
  },
)
