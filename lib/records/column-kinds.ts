import { z } from 'zod'

/** The kind of a column whose zod schema does not imply it. */
export const columnKinds = z.registry<{ kind: 'time' | 'zonedTime' | 'json' }>()

/** Returns the schema, marked as a column that holds its JSON as text. */
export function storedJson<S extends z.ZodType>(schema: S): S {
  columnKinds.add(schema, { kind: 'json' })
  return schema
}

const membersInColumns = new WeakSet<z.ZodType>()

/** Returns the schema of an object, marked as a member whose keys each have a column of their own. */
export function inColumns<S extends z.ZodObject>(schema: S): S {
  membersInColumns.add(schema)
  return schema
}

export const isInColumns = (schema: z.ZodType): boolean => membersInColumns.has(schema)
