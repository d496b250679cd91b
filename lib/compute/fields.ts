/**
 * Fields of posts, each with the column that stores it (docs/contract.md#compute).
 *
 * A bad number drops nothing: an absent one, or a value of another type, is 0, null or its default. A count out of
 * range is moved into the range; a limit out of range is null. Every stored number is finite and so small that sums of
 * it fit 64 bits.
 */
import { z } from 'zod'
import { EntrySchema, field, jsonSchemaOf, notBlank, nullableText, text } from '../entries/index.ts'
import { longInteger } from '../json/long-integers.ts'
import { documentedAs } from '../openapi/declare.ts'
import { storedJson } from '../records/column-kinds.ts'
import type { Cell } from './literal.ts'

type Json = Readonly<Record<string, unknown>>

/** A petabyte, or eleven days in nanoseconds: the sum of nine thousand such values fits 64 bits. */
const MAX_COUNT = 1_000_000_000_000_000
/** Sums and means of smaller values may underflow a double. */
const MIN_FRACTION = 1e-300
const U64_LIMIT = 2 ** 64
const BUCKETS = 24

export const whole = z.int().min(0)
export const decimal = z.number().min(0)

/** The column that stores a field. */
interface Column {
  /** The type of the column. */
  readonly type: 'text' | 'bigint' | 'float8' | 'boolean'
  /** The schema of its values where they are read. */
  readonly answer: z.ZodType
  /** The key in the post, unless the column has another name. */
  readonly name?: string
}

/** An object whose fields are stored in columns. */
interface Block {
  readonly shape: z.core.$ZodShape
  /** The start of the names of its columns. */
  readonly prefix?: string | undefined
  /** All columns are null where the block is. */
  readonly isNullable?: boolean
}

/** Columns and blocks, in a form that zod's types leave alone. */
const storage = z.registry<{ column?: unknown; block?: unknown }>()

/** Returns the same field, stored in the column given. */
export function storedIn<T>(schema: z.ZodType<T>, column: Column): z.ZodType<T> {
  storage.add(schema, { column })
  return schema
}

function storedAs<S extends z.ZodType>(schema: S, block: Block): S {
  storage.add(schema as z.ZodType, { block })
  return schema
}

/** Text that is not blank. */
export const name = (maxBytes: number) => storedIn(notBlank(maxBytes), { type: 'text', answer: z.string() })
export const anyText = (maxBytes: number) => storedIn(text(maxBytes), { type: 'text', answer: z.string() })
export const textOrNull = (maxBytes: number) =>
  storedIn(nullableText(maxBytes), { type: 'text', answer: z.string().nullable() })

/** An unsigned 64-bit id, as the signed number of the same bits; null if it is no such id. */
export const id = storedIn(
  field<Cell>(
    {
      type: 'number',
      format: 'uint64',
      description: '64 bits, stored as a signed number of the same bits: it may be read back negative.',
    },
    (value) => {
      if (Number.isSafeInteger(value)) return (value as number) >= 0 ? (value as number) : null
      // A larger plain number is not exact, because its key was written with an escape, or it does not fit 64 bits.
      const id =
        typeof value === 'number' && Number.isInteger(value) && value > 0 && value < U64_LIMIT
          ? BigInt(value)
          : longInteger(value)
      return id === null ? null : BigInt.asIntN(64, id)
    },
  ),
  {
    type: 'bigint',
    answer: documentedAs(z.number(), {
      type: 'integer',
      format: 'int64',
      description: 'With a sign: ids above 2^63 - 1 are negative.',
    }).nullable(),
  },
)

export const NUMBER: Json = { type: 'number', minimum: 0 }
const BOUNDED: Json = { ...NUMBER, maximum: MAX_COUNT }

const toCount = (value: unknown, usual = 0): number =>
  typeof value === 'number' ? Math.round(Math.min(Math.max(value, 0), MAX_COUNT)) : usual

/** A number rounded to an integer from 0 to `MAX_COUNT`; `usual` for a value that is no number. */
export const count = (usual = 0, json = BOUNDED) =>
  storedIn(
    field(json, (value) => toCount(value, usual)),
    { type: 'bigint', answer: whole },
  )

/** A limit or request, rounded; null where there is none or it is out of range. */
export const limit = (json: Json = { anyOf: [BOUNDED, { type: 'null' }] }) =>
  storedIn(
    field(json, (value) => (typeof value === 'number' && value >= 0 && value <= MAX_COUNT ? Math.round(value) : null)),
    { type: 'bigint', answer: whole.nullable() },
  )

/** A number from 0 to `max`; 0 for a value that is no number. */
export const fraction = (json = BOUNDED, max = MAX_COUNT) =>
  storedIn(
    field(json, (value) => (typeof value !== 'number' || value < MIN_FRACTION ? 0 : Math.min(value, max))),
    { type: 'float8', answer: decimal },
  )

const HISTOGRAM: Json = {
  type: 'array',
  items: { type: 'number' },
  description: `${BUCKETS} buckets: the one at b counts waits from 2^b microseconds on, the last is overflow.`,
}

/** All buckets as an array literal; null without a histogram. */
export const histogram = storedIn(
  field(HISTOGRAM, (value) =>
    Array.isArray(value) && value.length > 0
      ? `{${Array.from({ length: BUCKETS }, (_, bucket) => toCount(value[bucket])).join(',')}}`
      : null,
  ),
  { type: 'text', answer: storedJson(z.array(whole)) },
)

/** A field that is documented and not stored. */
export const ignored = (schema: z.ZodType) =>
  documentedAs(
    z
      .unknown()
      .optional()
      .transform(() => undefined),
    jsonSchemaOf(schema),
  )

/** An object that a container must have; the names of its columns begin with `prefix`. */
export const requiredBlock = <S extends z.core.$ZodLooseShape>(prefix: string, shape: S) =>
  storedAs(z.object(shape), { shape, prefix })

/** An object of fields that have defaults: any other value counts as an empty one. */
export function block<S extends z.core.$ZodLooseShape>(shape: S, prefix?: string) {
  const entry = new EntrySchema(z.object(shape))
  const { value: empty } = entry.run({})
  // Only a value that is no object is at fault.
  const read = (sent: unknown) => {
    const { value, issues } = entry.run(sent)
    return issues.length === 0 ? value : empty
  }
  return storedAs(field(entry.json, read), { shape, prefix })
}

/** The same, but all of it is null for any other value. */
export function nullableBlock<S extends z.core.$ZodLooseShape>(shape: S) {
  const entry = new EntrySchema(z.object(shape))
  const none = Object.fromEntries(columnsOf(shape).map(({ name }) => [name, null]))
  const read = (sent: unknown) => {
    const { value, issues } = entry.run(sent)
    return issues.length === 0 ? value : none
  }
  return storedAs(field(jsonSchemaOf(entry.schema.nullish()), read), { shape, isNullable: true })
}

/** The columns of fields, in the order of the fields. */
export function columnsOf(shape: z.core.$ZodShape): Required<Column>[] {
  return Object.entries(shape).flatMap(([key, schema]) => {
    const { column, block } = (storage.get(schema) ?? {}) as { column?: Column; block?: Block }
    if (block !== undefined)
      return columnsOf(block.shape).map((inner) => ({
        ...inner,
        name: `${block.prefix ?? `${key}_`}${inner.name}`,
        answer: block.isNullable ? inner.answer.nullable() : inner.answer,
      }))
    return column === undefined ? [] : [{ name: key, ...column }]
  })
}

/** The schemas of columns where they are read, by name. */
export const answersOf = (shape: z.core.$ZodShape): Record<string, z.ZodType> =>
  Object.fromEntries(columnsOf(shape).map(({ name, answer }) => [name, answer]))

/** The parameters of a statement for columns of fields, each an array literal; `first` is the number of the first. */
export const parametersOf = (shape: z.core.$ZodShape, first: number): string =>
  columnsOf(shape)
    .map(({ type }, i) => `$${first + i}::text::${type}[]`)
    .join(', ')

/** Parsed fields and blocks. */
interface Values {
  readonly [name: string]: Cell | undefined | Values
}

/** Adds the values of parsed fields to `cells`, in the order of their columns. */
export function cellsOf(values: Values, cells: Cell[] = []): Cell[] {
  // Twice as fast as Object.values.
  for (const name in values) {
    const value = values[name]
    if (typeof value === 'object' && value !== null) cellsOf(value, cells)
    else if (value !== undefined) cells.push(value)
  }
  return cells
}
