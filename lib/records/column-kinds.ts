import { z } from 'zod'

/** The kind of a column whose zod schema does not imply it. */
export const columnKinds = z.registry<{ kind: 'time' | 'zonedTime' | 'json' }>()

/** Returns the schema, marked as a column that holds its JSON as text. */
export function storedJson<S extends z.ZodType>(schema: S): S {
  columnKinds.add(schema, { kind: 'json' })
  return schema
}
