import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'

export type Json = Record<string, unknown>

const COMPONENTS = '#/components/schemas/'
/**
 * Marks a schema that could not be translated. When the schema is finished, no mark may be left: an outer
 * `documentedAs` must have replaced it.
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

/** Turns zod schemas into JSON schemas of OpenAPI 3.1, whose dialect zod writes, and collects those with an id. */
export class SchemaBook {
  readonly #components = new Map<string, Json>()

  /**
   * @throws Error for a schema that is checked by code only and has no `documentedAs`, and for two different schemas
   * with one id
   */
  add(schema: z.ZodType, io: 'input' | 'output'): Json {
    // A schema with an id is written in full at the root, and as a reference below it.
    const { items, $defs = {} } = z.toJSONSchema(z.array(schema), { io, unrepresentable: 'any', override: tell }) as {
      items: Json
      $defs?: Record<string, Json>
    }
    for (const [id, one] of Object.entries($defs)) this.#keep(id, finished(one))
    return finished(items)
  }

  /** The schemas with an id, by id. */
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

/** Points references to the components, and drops keywords that only repeat a default of JSON schema. */
function finished(json: Json): Json {
  const text = JSON.stringify(json, (key, value) => {
    if (key === UNTOLD) throw new Error(`a schema of type ${value} needs documentedAs: ${JSON.stringify(json)}`)
    if (key === '$ref' && typeof value === 'string') return value.replace('#/$defs/', COMPONENTS)
    // JSON keys are text anyway.
    return key === 'propertyNames' && isDeepStrictEqual(value, { type: 'string' }) ? undefined : value
  })
  return JSON.parse(text) as Json
}
