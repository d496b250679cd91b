/**
 * Converts values that agents post into cells of array literals for the database (docs/contract.md#compute).
 *
 * A container without its identity or its blocks is skipped. A bad number skips nothing: an absent one, or a value of
 * another type, is 0, null or its default. A count out of range is moved into the range; a limit out of range is null.
 * Every stored number is finite and so small that sums of it fit 64 bits.
 */
import { z } from 'zod'
import { longInteger } from '../json/long-integers.ts'
import { isLongerThan } from '../text/utf8.ts'
import { MAX_COUNT, MAX_KIND_BYTES, MAX_NAME_BYTES, MAX_POD_UID_BYTES, MAX_REF_BYTES, MAX_UID_BYTES } from './bounds.ts'
import { type Cell, NULL, quoted } from './literal.ts'

/** Sums and means of smaller values may underflow a double. */
const MIN_FRACTION = 1e-300
const DEFAULT_PERIOD_USEC = 100_000
const U64_LIMIT = 2 ** 64

export type Fields = Readonly<Record<string, unknown>>

/**
 * The reason why a container is skipped: the field at fault, or `entry` if it is no object. `blame` counts culprits
 * left out of a container.
 */
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

/** Returns the object, or an empty one for any other value. */
export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {})

/** A container that is to be stored. */
export interface Container {
  /** The container uid, unquoted. */
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

/** Returns a container, or the reason why it is skipped. */
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

/** Converts an unsigned 64-bit id to the signed number of the same bits; null if it is no such id. */
export function idOf(value: unknown): Cell {
  if (Number.isSafeInteger(value)) return (value as number) >= 0 ? (value as number) : NULL
  // A larger plain number is not exact, because its key was written with an escape, or it does not fit 64 bits.
  const id =
    typeof value === 'number' && Number.isInteger(value) && value > 0 && value < U64_LIMIT
      ? BigInt(value)
      : longInteger(value)
  return id === null ? NULL : BigInt.asIntN(64, id).toString()
}

/** The schema of a count; a value out of range is moved into the range. */
export const countSchema = () => z.number().min(0).max(MAX_COUNT).optional()

/** Rounds to an integer from 0 to `MAX_COUNT`; `usual` for a value that is no number. */
export function count(value: unknown, usual = 0): number {
  if (typeof value !== 'number') return usual
  return Math.round(Math.min(Math.max(value, 0), MAX_COUNT))
}

/** A limit or request, rounded; null where there is none or it is out of range. */
export function limit(value: unknown): Cell {
  return typeof value === 'number' && value >= 0 && value <= MAX_COUNT ? Math.round(value) : NULL
}

/** A number from 0 to `max`; 0 for a value that is no number. */
export function fraction(value: unknown, max = MAX_COUNT): number {
  if (typeof value !== 'number' || value < MIN_FRACTION) return 0
  return Math.min(value, max)
}

/** A kind of number in a block: its conversion and its JSON schema. */
interface NumberKind {
  readonly read: (value: unknown) => Cell
  readonly schema: z.ZodType
}

const counted = (usual = 0): NumberKind => ({ read: (value) => count(value, usual), schema: countSchema() })
const limited: NumberKind = { read: limit, schema: z.number().min(0).max(MAX_COUNT).nullish() }

/** The numbers of a block by their names in the post, in the order of their columns. */
type Block = Readonly<Record<string, NumberKind>>

export const CPU_COUNTS: Block = {
  quota_usec: limited,
  period_usec: counted(DEFAULT_PERIOD_USEC),
  request_millis: limited,
  limit_millis: limited,
  nr_periods: counted(),
  nr_throttled: counted(),
  throttled_usec: counted(),
}

export const MEMORY_LIMITS: Block = { limit: limited, request: limited }

export const MEMORY_COUNTS: Block = {
  events_high: counted(),
  events_max: counted(),
  oom_kill: counted(),
  refault: counted(),
  pgmajfault: counted(),
}

export const RUNQ_COUNTS: Block = {
  count: counted(),
  p50_us: counted(),
  p95_us: counted(),
  p99_us: counted(),
  max_us: counted(),
  overflow: counted(),
}

/** Returns the cells of a block; all are null where the block is null. */
export function cellsOf(block: Block, values: Fields | null): Cell[] {
  const cells: Cell[] = []
  for (const name in block) cells.push(values === null ? NULL : block[name]!.read(values[name]))
  return cells
}

/** Returns the same block as properties of a zod object. */
export const shapeOf = (block: Block) =>
  Object.fromEntries(Object.entries(block).map(([name, { schema }]) => [name, schema]))

/** A group of processes that made a container wait. */
export interface Culprit {
  readonly cgroupId: Cell
  readonly kind: string
  readonly ref: string
  readonly containerUid: string | null
  readonly count: number
  readonly waitNs: number
}

/** Reads a culprit; null if it lacks a kind or ref, or has a text that cannot be stored. */
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

/** Whether the database can store the value as text. */
const isText = (value: unknown, maxBytes: number): value is string =>
  typeof value === 'string' && !isLongerThan(value, maxBytes) && !value.includes('\0') && value.isWellFormed()
