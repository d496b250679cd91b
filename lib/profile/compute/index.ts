/** The latest compute samples of a workload (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import type { WorkloadKey } from '../built.ts'
import { finding, type Judged, statusOf } from '../finding.ts'
import { PODS } from '../network/index.ts'
import type { Finding } from '../record/common.ts'
import { type Compute, MAX_CONTAINERS } from '../record/compute.ts'
import { earliest } from '../times.ts'

export type ComputeRow = Compute['containers'][number]

// A pod of the same name may be an earlier one, so the uid is compared where it is known.
const LATEST = fixed<ComputeRow[]>(`
  with asked as materialized (select $1::text as namespace, $2::text as kind, $3::text as name),
  ${PODS},
  samples as materialized (
    select l.*
    from asked a
    cross join pods p
    join compute_latest l on l.namespace = a.namespace and l.pod_name = p.pod_name
    where not p.is_dead and coalesce(p.pod_uid, l.pod_uid) = l.pod_uid)
  select l.pod_name as pod, l.container, l.cpu_request_millis::float8 as "cpuRequestMillis",
         l.cpu_limit_millis::float8 as "cpuLimitMillis", l.mem_request::float8 as "memRequestBytes",
         l.mem_limit::float8 as "memLimitBytes", l.cpu_usage_millis as "cpuUsageMillis",
         l.mem_working_set::float8 as "memWorkingSetBytes", l.mem_oom_kill::float8 as "oomKills",
         case when l.cpu_nr_periods > 0
              then least(l.cpu_nr_throttled::float8 / l.cpu_nr_periods, 1) end as "throttledRatio",
         wire_time(l.updated_at) || 'Z' as "updatedAt"
  from samples l
  order by l.pod_name, l.container, l.container_uid
  limit ${MAX_CONTAINERS + 1}`)

/** The samples of the live pods, by pod and container: at most 50, and one more. */
export const readCompute = (gate: Gate, { namespace, kind, name }: WorkloadKey): Promise<ComputeRow[]> =>
  gate((sql) => LATEST(sql, namespace, kind, name))

export function judgeCompute(rows: readonly ComputeRow[]): Judged<Compute> {
  const containers = rows.slice(0, MAX_CONTAINERS)
  const truncated = rows.length > MAX_CONTAINERS
  if (containers.length === 0) return { dimension: UNSEEN, findings: [] }
  const findings = findingsOf(containers)
  const unlimited = containers.filter(({ memLimitBytes }) => memLimitBytes === null)
  return {
    findings,
    dimension: {
      status: statusOf(findings),
      coverage: {
        level: truncated ? 'partial' : 'full',
        fraction: null,
        observedSince: earliest(containers.map(({ updatedAt }) => updatedAt)),
        note: `${containers.length} container(s) with a sample`,
      },
      reasons:
        unlimited.length === 0
          ? []
          : [{ code: 'missing_limits', message: `${unlimited.length} container(s) have no memory limit` }],
      containers,
      truncated,
    },
  }
}

const UNSEEN: Compute = {
  status: 'unknown',
  coverage: { level: 'none', fraction: null, observedSince: null, note: 'No sample' },
  reasons: [{ code: 'no_compute_data', message: 'No live pod of this workload has a compute sample' }],
  containers: [],
  truncated: false,
}

/** One of each rule and container, whichever pods it is about. */
function findingsOf(rows: readonly ComputeRow[]): Finding[] {
  const findings = rows.flatMap(({ container, memLimitBytes, oomKills }) => [
    ...(memLimitBytes === null ? [missingLimit(container)] : []),
    ...(oomKills > 0 ? [oomKilled(container)] : []),
  ])
  return [...new Map(findings.map((one) => [one.id, one])).values()]
}

const missingLimit = (container: string) =>
  finding(
    'compute',
    'missingMemoryLimit',
    'low',
    {
      title: `The container ${container} has no memory limit`,
      detail: 'It can take the memory of its whole node, and the kernel then ends other processes.',
    },
    container,
  )

const oomKilled = (container: string) =>
  finding(
    'compute',
    'oomKilled',
    'medium',
    {
      title: `The container ${container} was out of memory`,
      detail: 'The kernel ended a process of it in the interval of its latest sample.',
    },
    container,
  )
