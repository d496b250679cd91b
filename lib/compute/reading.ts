/**
 * Values of compute as agents post them (interop-profiling 3.1, 3.2), each as a cell of a literal for the database.
 *
 * A container without its identity or its blocks is no row. Whatever else is wrong with a number, the row stays: what is not there or no number is
 * 0, null or its default; what is out of range is moved into it where it counts something, and null where it is a limit. All that is kept is finite
 * and so small that sums of it fit 64 bits.
 */
import { longInteger } from '../json/long-integers.ts'
import { isLongerThan } from '../text/utf8.ts'
import { MAX_COUNT, MAX_KIND_BYTES, MAX_NAME_BYTES, MAX_POD_UID_BYTES, MAX_REF_BYTES, MAX_UID_BYTES } from './bounds.ts'
import { type Cell, NULL, quoted } from './literal.ts'

/** Sums and means of what is smaller leave the range of a double. */
const MIN_FRACTION = 1e-300
const DEFAULT_PERIOD_USEC = 100_000
const U64_LIMIT = 2 ** 64

export type Fields = Readonly<Record<string, unknown>>

/** Why a container is skipped: the field at fault, or the entry, which is no object; `blame` counts culprits that are left out of one. */
export type Fault =
  | 'container'
  | 'container_uid'
  | 'pod_uid'
  | 'pod_name'
  | 'namespace'
  | 'cpu'
  | 'memory'
  | 'entry'
  | 'blame'

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An object, or one without any field. */
export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {})

/** A container that is to be stored. */
export interface Container {
  /** Unquoted: what it is known by. */
  readonly uid: string
  /** `container_uid`, `pod_uid`, `namespace`, `pod_name`, `container`. */
  readonly names: readonly Cell[]
  readonly cgroupId: Cell
  readonly cpu: Fields
  readonly memory: Fields
  /** Null without a probe. */
  readonly runq: Fields | null
  readonly blame: unknown
}

const IDENTITY = [
  ['container_uid', MAX_UID_BYTES],
  ['pod_uid', MAX_POD_UID_BYTES],
  ['namespace', MAX_NAME_BYTES],
  ['pod_name', MAX_NAME_BYTES],
  ['container', MAX_NAME_BYTES],
] as const satisfies (readonly [Fault, number])[]

/** A container, or why it is skipped. */
export function containerOf(value: unknown): Container | Fault {
  if (!isObject(value)) return 'entry'
  for (const [field, maxBytes] of IDENTITY) if (!isName(value[field], maxBytes)) return field
  const { cpu, memory, runq, blame } = value
  if (!isObject(cpu)) return 'cpu'
  if (!isObject(memory)) return 'memory'
  return {
    uid: value.container_uid as string,
    names: IDENTITY.map(([field]) => quoted(value[field] as string)),
    cgroupId: idOf(value.cgroup_id),
    cpu,
    memory,
    runq: isObject(runq) ? runq : null,
    blame,
  }
}

/** An id of 64 bits without a sign as the same bits with one, or null. */
export function idOf(value: unknown): Cell {
  if (Number.isSafeInteger(value)) return (value as number) >= 0 ? (value as number) : NULL
  // Its key was written with an escape, or it is too large.
  const id =
    typeof value === 'number' && Number.isInteger(value) && value > 0 && value < U64_LIMIT
      ? BigInt(value)
      : longInteger(value)
  return id === null ? NULL : BigInt.asIntN(64, id).toString()
}

/** A whole number from 0 on. */
export function count(value: unknown, usual = 0): number {
  if (typeof value !== 'number') return usual
  return Math.round(Math.min(Math.max(value, 0), MAX_COUNT))
}

/** A quantity that there may be none of. */
export function limit(value: unknown): Cell {
  return typeof value === 'number' && value >= 0 && value <= MAX_COUNT ? Math.round(value) : NULL
}

/** A number from 0 on, at most `max`. */
export function fraction(value: unknown, max = MAX_COUNT): number {
  if (typeof value !== 'number' || value < MIN_FRACTION) return 0
  return Math.min(value, max)
}

/** Quota, period, request, limit, then periods, throttled periods, and throttled time. */
export const cpuCounts = (cpu: Fields): Cell[] => [
  limit(cpu.quota_usec),
  count(cpu.period_usec, DEFAULT_PERIOD_USEC),
  limit(cpu.request_millis),
  limit(cpu.limit_millis),
  count(cpu.nr_periods),
  count(cpu.nr_throttled),
  count(cpu.throttled_usec),
]

/** Limit and request. */
export const memoryLimits = (memory: Fields): Cell[] => [limit(memory.limit), limit(memory.request)]

/** Events of reaching `high` and `max`, kills, refaults, major faults. */
export const memoryCounts = (memory: Fields): Cell[] => [
  count(memory.events_high),
  count(memory.events_max),
  count(memory.oom_kill),
  count(memory.refault),
  count(memory.pgmajfault),
]

/** Count, three quantiles, maximum and overflow; all null without a probe. */
export const runqCounts = (runq: Fields | null): Cell[] =>
  runq === null
    ? [NULL, NULL, NULL, NULL, NULL, NULL]
    : [
        count(runq.count),
        count(runq.p50_us),
        count(runq.p95_us),
        count(runq.p99_us),
        count(runq.max_us),
        count(runq.overflow),
      ]

/** Who made a container wait. */
export interface Culprit {
  readonly cgroupId: Cell
  readonly kind: string
  readonly ref: string
  readonly containerUid: string | null
  readonly count: number
  readonly waitNs: number
}

/** A culprit; null for what does not tell who it is, or by a text that cannot be stored. */
export function culpritOf(value: unknown): Culprit | null {
  if (!isObject(value)) return null
  const { kind, ref, container_uid: uid } = value
  if (!isText(kind, MAX_KIND_BYTES) || !isText(ref, MAX_REF_BYTES)) return null
  if (uid !== undefined && uid !== null && !isText(uid, MAX_UID_BYTES)) return null
  return {
    cgroupId: idOf(value.cgroup_id),
    kind,
    ref,
    containerUid: uid ?? null,
    count: count(value.count),
    waitNs: count(value.wait_ns),
  }
}

const isName = (value: unknown, maxBytes: number): boolean => isText(value, maxBytes) && value.trim() !== ''

/** Text that the database can hold (P26). */
const isText = (value: unknown, maxBytes: number): value is string =>
  typeof value === 'string' && !isLongerThan(value, maxBytes) && !value.includes('\0') && value.isWellFormed()
