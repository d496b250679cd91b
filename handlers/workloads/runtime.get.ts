import { z } from 'zod'
import {
  access,
  asArray,
  between,
  chargeRows,
  kib,
  pageByPage,
  params,
  query,
  route,
  sendJson,
  sendPieces,
} from '../../lib/http/index.ts'
import {
  container,
  ENTRY_BYTES,
  kind,
  limit,
  MORE_ENTRIES,
  origins,
  PIECE_BYTES,
  readWorkload,
  WorkloadRuntime,
  windowHours,
  workloadPart,
} from '../../lib/runtime/reads/index.ts'

const Params = z.object({
  namespace: workloadPart('The namespace of a workload'),
  kind: workloadPart('Its kind, `Pod` for a bare pod'),
  name: workloadPart('Its name'),
})
const Query = z.object({ container, kind, origin: origins, limit, window_hours: windowHours })

/** What a piece may come to: as it was read, with every character of its paths escaped, and as it leaves. */
const COPIES = 8

/**
 * GET /workloads/{namespace}/{kind}/{name}/runtime: the files that ran in a workload, by container and digest, and whether that is all
 * (workload-profiling, Runtime inventory; interop-profiling 2.1). Always 200.
 */
export default route({
  summary: 'The files that ran in the containers of a workload, and how completely they were watched',
  description:
    'Executed files and, where they are tracked, loaded libraries. An empty list says that nothing ran only where `coverage` says that it is covered.',
  answer: WorkloadRuntime,
}).get(
  '/workloads/:namespace/:kind/:name/runtime',
  access('read'),
  params(Params),
  query(Query),
  chargeRows<typeof Query>(ENTRY_BYTES, MORE_ENTRIES),
  async (c) => {
    const workload = c.req.valid('param')
    const { limit, kind, container, origin, window_hours } = c.req.valid('query')
    const { db, config } = c.get('deps')
    const retentionDays = config.runtimeInventoryRetentionDays
    const question = {
      ...workload,
      container,
      entryKind: kind,
      origins: origin,
      windowHours: window_hours,
      retentionDays,
    }
    const { first, next, isTruncated, coverage } = await readWorkload(db.read, question, limit)
    const { namespace, kind: workloadKind, name } = workload
    const head = Buffer.from(`${JSON.stringify({ namespace, kind: workloadKind, name }).slice(0, -1)},"containers":`)
    const tail = () =>
      Buffer.concat([Buffer.from(`,"truncated":${isTruncated()},"coverage":[`), coverage, Buffer.from(']}')])
    if (first.last === null) return sendJson(c, Buffer.concat([head, asArray(first), tail()]))
    return sendPieces(c, between(head, pageByPage(c, first, next, kib(COPIES * PIECE_BYTES)), tail))
  },
)
