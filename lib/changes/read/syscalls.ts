/** Reads the observed syscalls of workloads with their times (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import { parseNaive } from '../../time/timestamp.ts'
import type { SyscallRecord } from '../syscalls.ts'
import { isOf, type OfEach, ofEach, WORKLOADS, type WorkloadName, workloadsJson } from './workloads.ts'

interface Row extends Omit<SyscallRecord, 'images'> {
  readonly n: number
  /** Each bit stands for a position in `digests`. */
  readonly masks: readonly number[]
}

const READ = fixed<Row[]>(`
  with asked as materialized (select $1::text as namespace, $2::text::json as workloads),
  ${WORKLOADS}
  select k.n, array_to_json(s.names) as names,
         array_to_json(s.first_seen) as "firstSeen",
         array_to_json(s.images) as masks, array_to_json(s.image_digests) as digests,
         wire_time(w.reset_at) as "resetAt", wire_time(w.updated_at) as "updatedAt",
         coalesce(c.pods > 0 and c.incomplete = 0, false) as "isComplete"
  from asked a
  cross join workloads k
  cross join lateral (select w.* from workload_syscalls w where ${isOf('w')} offset 0) w
  cross join lateral (select s.* from workload_syscalls_seen s where ${isOf('s')} offset 0) s
  cross join lateral workload_capture(a.namespace, k.kind, k.name) c`)

const MAX_IMAGES = 8

/** Reads the observed set of each of these workloads of a namespace; null without one. */
export async function readSyscallRecords(
  gate: Gate,
  namespace: string,
  workloads: readonly WorkloadName[],
): Promise<OfEach<SyscallRecord | null>> {
  const rows = await gate((sql) => READ(sql, namespace, workloadsJson(workloads)))
  return ofEach(
    workloads,
    rows,
    ({ n: _, masks, firstSeen, ...row }): SyscallRecord | null => ({
      ...row,
      firstSeen: firstSeen.map((at) => at && parseNaive(at)),
      images: masks.map((mask) => Array.from({ length: MAX_IMAGES }, (_, i) => i).filter((i) => (mask >> i) & 1)),
    }),
    () => null,
  )
}
