import { z } from 'zod'

/** The kind of a column whose zod schema does not imply it. */
export const columnKinds = z.registry<{ kind: 'time' | 'zonedTime' | 'json' }>()

/** Returns the schema, marked as a column that holds its JSON as text. */
export function storedJson<S extends z.ZodType>(schema: S): S {
  columnKinds.add(schema, { kind: 'json' })
  return schema
}

/** Takes the members of an object from other columns: from which, the value of the column `by` decides. */
export interface MemberChoice {
  readonly by: string
  /** For each such value the column of each member; with another value the members are null. */
  readonly of: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Of an object, by the name that it has in a record. */
type Choices = Readonly<Record<string, MemberChoice>>

const membersInColumns = new WeakMap<z.ZodType, Choices>()

/**
 * Returns the schema of an object, marked as a member whose keys each have a column: of their own, or as `choices` say,
 * so that the database need not send a value twice.
 */
export function inColumns<S extends z.ZodObject>(schema: S, choices: Choices = {}): S {
  membersInColumns.set(schema, choices)
  return schema
}

/** Null for any other schema. */
export const choicesOf = (schema: z.ZodType): Choices | null => membersInColumns.get(schema) ?? null
