import type { z } from 'zod'
import { choicesOf, columnKinds, type MemberChoice } from './column-kinds.ts'

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
  /** For a value that another column has; null for one in a column of this name. */
  readonly choice: Choice | null
}

/** The column that has the value, by the value of the column `by`; with another value it is null. */
export interface Choice {
  readonly by: string
  readonly of: Readonly<Record<string, string>>
}

/** A column that the database sends. */
export interface Source {
  readonly name: string
  readonly kind: ColumnKind
}

const declared = new WeakMap<RecordSchema, readonly Column[]>()

/** The columns of a record in wire order. @throws TypeError for a key whose type no column has */
export function columnsOf(record: RecordSchema): readonly Column[] {
  let columns = declared.get(record)
  if (columns === undefined) {
    columns = Object.entries(record.shape).flatMap(
      ([key, schema]) => membersOf(key, schema as RecordSchema) ?? [columnOf(key, schema as z.ZodType)],
    )
    declared.set(record, columns)
  }
  return columns
}

const sent = new WeakMap<RecordSchema, readonly Source[]>()

/** The columns that the database sends for a record: its own in wire order, and where others have values, those. */
export function sourcesOf(record: RecordSchema): readonly Source[] {
  let sources = sent.get(record)
  if (sources === undefined) {
    const kinds = new Map<string, ColumnKind>()
    for (const { name, kind, choice } of columnsOf(record)) {
      if (choice === null) kinds.set(name, kind)
      else {
        if (!kinds.has(choice.by)) kinds.set(choice.by, 'text')
        for (const other of Object.values(choice.of)) if (!kinds.has(other)) kinds.set(other, kind)
      }
    }
    sources = [...kinds].map(([name, kind]) => ({ name, kind }))
    sent.set(record, sources)
  }
  return sources
}

/** The values of each column, row by row, given those of each source. */
export function chosenValues<T>(record: RecordSchema, sources: readonly (readonly T[])[], none: T): (readonly T[])[] {
  const names = sourcesOf(record).map(({ name }) => name)
  const valuesOf = (name: string) => sources[names.indexOf(name)]!
  return columnsOf(record).map(({ name, choice }) => {
    if (choice === null) return valuesOf(name)
    const others = new Map(Object.entries(choice.of).map(([value, other]) => [value, valuesOf(other)]))
    return valuesOf(choice.by).map((value, r) => others.get(String(value))?.[r] ?? none)
  })
}

const columnOf = (key: string, schema: z.ZodType, head = `"${key}":`, tail = '', choice: Choice | null = null) => ({
  ...{ key, head, tail, choice, kind: kindOf(schema) },
  name: key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
})

/** The columns of a member that is an object: `from_kind` for the key `kind` of `from`. Null for any other. */
function membersOf(outer: string, schema: RecordSchema): Column[] | null {
  const choices = choicesOf(schema)
  if (choices === null) return null
  const members = Object.entries(schema.shape)
  return members.map(([key, schema], i) =>
    columnOf(
      `${outer}_${key}`,
      schema as z.ZodType,
      `${i === 0 ? `"${outer}":{` : ''}"${key}":`,
      i === members.length - 1 ? '}' : '',
      memberChoice(choices[outer], key),
    ),
  )
}

const memberChoice = (choice: MemberChoice | undefined, key: string): Choice | null =>
  choice === undefined
    ? null
    : { by: choice.by, of: Object.fromEntries(Object.entries(choice.of).map(([value, of]) => [value, of[key]!])) }

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
  const names = sourcesOf(record).map(({ name }) => `${alias}.${name}`)
  return [
    `(count(*)${filter})::text`,
    `coalesce(sum(num_nulls(${names.join(', ')}))${filter}, 0)::text`,
    ...expressions(record, alias).map((text) => `string_agg(coalesce(${text}, e'\\x01'), e'\\x1f')${filter}`),
  ].join(', ')
}

const expressions = (record: RecordSchema, alias: string) =>
  sourcesOf(record).map(({ name, kind }) => {
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
