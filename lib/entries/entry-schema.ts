/**
 * Lists of which a bad entry is dropped and the others are stored. An entry has one declaration: the parser and the
 * OpenAPI document are both made from it.
 */
import { z } from 'zod'
import { Slice } from '../event-loop/slices.ts'

/** Dropped entries, counted by the field at fault; an entry that is no object counts as `entry`. */
export type Dropped = Readonly<Record<string, number>>

/** The first fault is enough. `safeParse` would look for all of them, format messages and take a stack trace. */
const FIRST_FAULT = { async: false, abortEarly: true } as const

export class EntrySchema<S extends z.ZodType> {
  readonly schema: S

  /** `schema` is an object whose fields are checked in the declared order, or a transform of one. */
  constructor(schema: S) {
    this.schema = schema
  }

  /** The JSON schema of an entry, for `documentedAs`. */
  get json(): Readonly<Record<string, unknown>> {
    return jsonSchemaOf(this.schema)
  }

  /** Parses one entry: its value, or the first issue. */
  run(entry: unknown): { readonly value: z.output<S>; readonly issues: readonly z.core.$ZodRawIssue[] } {
    return this.schema._zod.run({ value: entry, issues: [] }, FIRST_FAULT) as z.core.ParsePayload<z.output<S>>
  }

  /**
   * Parses entries in slices, and passes each good one to `accept`, which may drop it after all by returning the field
   * at fault. Returns the dropped ones by their first field at fault.
   */
  async parseAll(entries: Iterable<unknown>, accept: (entry: z.output<S>) => string | undefined): Promise<Dropped> {
    const dropped: Record<string, number> = {}
    const slice = new Slice()
    for (const entry of entries) {
      const { value, issues } = this.run(entry)
      const fault = issues.length > 0 ? String(issues[0]!.path?.[0] ?? 'entry') : accept(value)
      if (fault !== undefined) dropped[fault] = (dropped[fault] ?? 0) + 1
      if (slice.isOver) await slice.next()
    }
    return dropped
  }
}

/** The JSON schema of what a schema accepts; `documentedAs` within it is heeded. */
export function jsonSchemaOf(schema: z.ZodType): Readonly<Record<string, unknown>> {
  const { $schema, $defs, ...json } = z.toJSONSchema(schema, {
    io: 'input',
    reused: 'inline',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { shown, description } = z.globalRegistry.get(zodSchema) ?? {}
      if (!shown) return
      for (const key of Object.keys(jsonSchema)) delete (jsonSchema as Record<string, unknown>)[key]
      Object.assign(jsonSchema, shown, description === undefined ? {} : { description })
    },
  })
  return json
}
