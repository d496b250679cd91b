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

/** A piece is in memory as read, with every character of its paths escaped, and as sent. */
const COPIES = 8

/**
 * GET /workloads/{namespace}/{kind}/{name}/runtime: the files that ran in a workload, by container and digest, and
 * whether the list can be complete (docs/contract.md#executables, docs/contract.md#runtime-coverage). Always 200.
 */
export default route({
  summary: 'List the files that ran in a workload',
  description:
    'Executed files and, where they are tracked, loaded libraries. An empty list means that nothing ran only if ' +
    '`coverage` says `covered`.',
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
