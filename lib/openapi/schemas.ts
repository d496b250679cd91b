import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'

export type Json = Record<string, unknown>

const COMPONENTS = '#/components/schemas/'
/**
 * Marks what a schema could not tell; it must be gone, under a `documentedAs` further out, when the schema is finished.
 */
const UNTOLD = 'x-untold'
const JUDGED_BY_CODE = new Set([
  'custom',
  'transform',
  'date',
  'bigint',
  'map',
  'set',
  'symbol',
  'undefined',
  'void',
  'nan',
  'function',
])

/** Turns zod schemas into JSON schemas of OpenAPI 3.1, whose dialect zod writes, and gathers those that carry an id. */
export class SchemaBook {
  readonly #components = new Map<string, Json>()

  /**
   * @throws Error for a schema that only code can tell, unless `documentedAs` tells it, and for two schemas under one
   * id.
   */
  add(schema: z.ZodType, io: 'input' | 'output'): Json {
    // A schema with an id stands in full at the root, and by reference below it.
    const { items, $defs = {} } = z.toJSONSchema(z.array(schema), { io, unrepresentable: 'any', override: tell }) as {
      items: Json
      $defs?: Record<string, Json>
    }
    for (const [id, one] of Object.entries($defs)) this.#keep(id, finished(one))
    return finished(items)
  }

  /** The schemas with an id, by it. */
  components(): Record<string, Json> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #keep(id: string, json: Json): void {
    const known = this.#components.get(id)
    if (known && !isDeepStrictEqual(known, json))
      throw new Error(`two schemas are called ${id}: one that is read and written needs two`)
    this.#components.set(id, json)
  }
}

function tell({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: object }): void {
  const json = jsonSchema as Json
  const { shown, description } = (z.globalRegistry.get(zodSchema) ?? {}) as { shown?: Json; description?: string }
  if (shown) {
    for (const key of Object.keys(json)) delete json[key]
    Object.assign(json, shown, description === undefined ? {} : { description })
  } else if (JUDGED_BY_CODE.has(zodSchema._zod.def.type)) json[UNTOLD] = zodSchema._zod.def.type
}

/** References lead to the components, and what only repeats a default of JSON schema is left out. */
function finished(json: Json): Json {
  const text = JSON.stringify(json, (key, value) => {
    if (key === UNTOLD) throw new Error(`a schema of type ${value} needs documentedAs: ${JSON.stringify(json)}`)
    if (key === '$ref' && typeof value === 'string') return value.replace('#/$defs/', COMPONENTS)
    // Keys of JSON are text anyway.
    return key === 'propertyNames' && isDeepStrictEqual(value, { type: 'string' }) ? undefined : value
  })
  return JSON.parse(text) as Json
}
