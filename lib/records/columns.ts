import type { z } from 'zod'
import { columnKinds, isInColumns } from './column-kinds.ts'

/** How the text that PostgreSQL returns for a column becomes JSON. A `list` is an array of text. */
export type ColumnKind = 'text' | 'time' | 'zonedTime' | 'number' | 'boolean' | 'json' | 'list'

/**
 * A record whose keys are declared by a strict zod object. The OpenAPI schema, the columns and the bytes are derived
 * from it.
 */
export type RecordSchema = z.ZodObject

export interface Column {
  readonly key: string
  readonly kind: ColumnKind
  /** The key in snake_case. */
  readonly name: string
  /** The JSON between the value before and this one, but for the comma or the brace: `"key":`. */
  readonly head: string
  /** The JSON behind the value: the brace of an object that ends with it. */
  readonly tail: string
}

const declared = new WeakMap<RecordSchema, readonly Column[]>()

/** The columns of a record in wire order. @throws TypeError for a key whose type no column has */
export function columnsOf(record: RecordSchema): readonly Column[] {
  let columns = declared.get(record)
  if (columns === undefined) {
    columns = Object.entries(record.shape).flatMap(([key, schema]) =>
      isInColumns(schema as z.ZodType) ? membersOf(key, schema as RecordSchema) : [columnOf(key, schema as z.ZodType)],
    )
    declared.set(record, columns)
  }
  return columns
}

const columnOf = (key: string, schema: z.ZodType, head = `"${key}":`, tail = ''): Column => ({
  ...{ key, head, tail, kind: kindOf(schema) },
  name: key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
})

/** The columns of a member that is an object: `from_kind` for the key `kind` of `from`. */
function membersOf(outer: string, { shape }: RecordSchema): Column[] {
  const members = Object.entries(shape)
  return members.map(([key, schema], i) =>
    columnOf(
      `${outer}_${key}`,
      schema as z.ZodType,
      `${i === 0 ? `"${outer}":{` : ''}"${key}":`,
      i === members.length - 1 ? '}' : '',
    ),
  )
}

/** The text of each column of the rows `alias`, for `plainRow`; null stays null. */
export const plainColumns = (record: RecordSchema, alias: string): string => expressions(record, alias).join(', ')

/**
 * Selects one row for all rows `alias`, or for those that are `counted`, to be read by `joinedRows`: the number of
 * rows, the number of nulls in them, then each column as one text: its values joined with U+001F, a null as U+0001. For
 * a long list PostgreSQL spends most of the time on building JSON row by row; this takes a third of it. The two numbers
 * prove that no value contains a separator or looks like a null.
 */
export function joinedColumns(record: RecordSchema, alias: string, counted?: string): string {
  const filter = counted === undefined ? '' : ` filter (where ${counted})`
  const names = columnsOf(record).map(({ name }) => `${alias}.${name}`)
  return [
    `(count(*)${filter})::text`,
    `coalesce(sum(num_nulls(${names.join(', ')}))${filter}, 0)::text`,
    ...expressions(record, alias).map((text) => `string_agg(coalesce(${text}, e'\\x01'), e'\\x1f')${filter}`),
  ].join(', ')
}

const expressions = (record: RecordSchema, alias: string) =>
  columnsOf(record).map(({ name, kind }) => {
    const column = `${alias}.${name}`
    return kind === 'text' ? column : kind === 'list' ? `array_to_json(${column})::text` : `${column}::text`
  })

function kindOf(schema: z.ZodType): ColumnKind {
  const kind = columnKinds.get(schema)?.kind
  if (kind !== undefined) return kind
  const { type, innerType, element } = schema._zod.def as { type: string; innerType?: z.ZodType; element?: z.ZodType }
  if (type === 'nullable') return kindOf(innerType!)
  if (type === 'array' && element?._zod.def.type === 'string') return 'list'
  const kinds: Record<string, ColumnKind> = {
    string: 'text',
    enum: 'text',
    null: 'text',
    number: 'number',
    boolean: 'boolean',
    record: 'json',
    object: 'json',
  }
  const known = kinds[type]
  if (known === undefined) throw new TypeError(`no column has the kind ${type}`)
  return known
}
