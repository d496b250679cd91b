/** The fields of a container that samples and minutes share, in the order of their columns. */
import { MAX_NAME_BYTES } from '../entries/index.ts'
import { count, limit, name } from './fields.ts'

const MAX_POD_UID_BYTES = 128
const DEFAULT_PERIOD_USEC = 100_000
export const MAX_UID_BYTES = 512

export const identity = {
  container_uid: name(MAX_UID_BYTES),
  pod_uid: name(MAX_POD_UID_BYTES),
  namespace: name(MAX_NAME_BYTES),
  pod_name: name(MAX_NAME_BYTES),
  container: name(MAX_NAME_BYTES),
}

export const cpuCounts = {
  quota_usec: limit(),
  period_usec: count(DEFAULT_PERIOD_USEC),
  request_millis: limit(),
  limit_millis: limit(),
  nr_periods: count(),
  nr_throttled: count(),
  throttled_usec: count(),
}

export const memoryLimits = { limit: limit(), request: limit() }

export const memoryCounts = {
  events_high: count(),
  events_max: count(),
  oom_kill: count(),
  refault: count(),
  pgmajfault: count(),
}

export const runqCounts = {
  count: count(),
  p50_us: count(),
  p95_us: count(),
  p99_us: count(),
  max_us: count(),
  overflow: count(),
}
