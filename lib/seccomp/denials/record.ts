import { z } from 'zod'
import type { Gate } from '../../db/index.ts'
import { zonedTime } from '../../http/request/fields.ts'
import { listReader } from '../../records/index.ts'
import type { Page } from '../../records/page.ts'

/** A row of GET /seccomp/denials (docs/contract.md#denials): all events of a pod, syscall and action. */
export const DenialRow = z
  .strictObject({
    id: z.int(),
    podUid: z.string(),
    podName: z.string(),
    podNamespace: z.string(),
    workloadKind: z.string().nullable().describe('Null where the workload is not known; `Pod` for a pod without one.'),
    workloadName: z.string().nullable(),
    nodeName: z.string().nullable(),
    syscall: z.string(),
    syscallNr: z.int().nullable(),
    action: z.string(),
    actionRaw: z.int().nullable(),
    arch: z.string().nullable(),
    count: z.int().min(1),
    firstSeen: zonedTime,
    lastSeen: zonedTime,
  })
  .meta({ id: 'DenialRow' })

/** Null means no filter. `since` is naive UTC. Rows older than `retentionDays` are left out; 0 means no limit. */
interface DenialFilter {
  readonly namespace: string | null
  readonly kind: string | null
  readonly workload: string | null
  readonly since: string | null
  readonly retentionDays: number
}

/** Rows that match `condition`; the parameters `since`, `days` and `limit` follow those of the condition. */
function rowsWhere(condition: string) {
  const n = condition.match(/\$/g)?.length ?? 0
  return listReader(
    DenialRow,
    `select * from seccomp_denial
     where ${condition}last_seen >= greatest($${n + 1}::timestamp, retention_start($${n + 2}::int))
     order by last_seen desc, id desc limit $${n + 3}::int`,
  )
}

// Each statement reads an index in the order of the list. All but the last two read only rows that they return.
const newest = rowsWhere('')
const ofNamespace = rowsWhere('pod_namespace = $1 and ')
const ofWorkload = rowsWhere('pod_namespace = $1 and workload_kind = $2 and workload_name = $3 and ')
const ofNamespaceAndHalf = rowsWhere(
  'pod_namespace = $1 and ($2::text is null or workload_kind = $3) and ($4::text is null or workload_name = $5) and ',
)
const ofHalf = rowsWhere('($1::text is null or workload_kind = $2) and ($3::text is null or workload_name = $4) and ')

/** The newest rows that match the filter, at most `limit`. */
export function readDenials(gate: Gate, filter: DenialFilter, limit: number): Promise<Page<unknown>> {
  const { namespace, kind, workload, since, retentionDays: days } = filter
  if (namespace !== null && kind !== null && workload !== null)
    return ofWorkload(gate, namespace, kind, workload, since, days, limit)
  if (namespace === null && kind === null && workload === null) return newest(gate, since, days, limit)
  if (kind === null && workload === null) return ofNamespace(gate, namespace, since, days, limit)
  if (namespace !== null) return ofNamespaceAndHalf(gate, namespace, kind, kind, workload, workload, since, days, limit)
  return ofHalf(gate, kind, kind, workload, workload, since, days, limit)
}
