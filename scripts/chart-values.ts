/** The values of the chart: name, type, default, and the comment above each in values.yaml. */
import { readFileSync } from 'node:fs'
import { load } from 'js-yaml'

export const CHART = new URL('../wrangler-free-deploy/chart/', import.meta.url)

export interface Value {
  /** As in Helm: `broker.auth.mode`. */
  readonly path: string
  readonly fallback: unknown
  /** The comment above it; empty without one. */
  readonly meaning: string
}

/** The part of JSON Schema that the chart uses. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly definitions?: Readonly<Record<string, Schema>>
}

const read = (name: string) => readFileSync(new URL(name, CHART), 'utf8')

export const readSchema = (): Schema => JSON.parse(read('values.schema.json'))

/** Resolves a reference to a definition. */
export function resolved(schema: Schema, root: Schema): Schema {
  return schema.$ref === undefined ? schema : root.definitions![schema.$ref.replace('#/definitions/', '')]!
}

/** The paths of all leaves of the schema. `global` belongs to Helm. */
export function schemaPaths(root: Schema): string[] {
  const below = (schema: Schema, path: string): string[] => {
    const { properties } = resolved(schema, root)
    if (properties === undefined) return [path]
    return Object.entries(properties).flatMap(([name, child]) => below(child, path === '' ? name : `${path}.${name}`))
  }
  return below(root, '').filter((path) => path !== 'global')
}

/** The schema of a value. */
export function schemaAt(path: string, root: Schema): Schema {
  return path.split('.').reduce((schema, name) => resolved(resolved(schema, root).properties![name]!, root), root)
}

export function at(values: unknown, path: string): unknown {
  return path.split('.').reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], values)
}

export const readValues = (): Record<string, unknown> => load(read('values.yaml')) as Record<string, unknown>

/** The comment right above each key of values.yaml, by path. */
export function comments(text: string): Map<string, string> {
  const found = new Map<string, string>()
  const trail: string[] = []
  let above = ''
  for (const line of text.split('\n')) {
    const [, comment] = /^\s*# (.*)$/.exec(line) ?? []
    const [, indent, key] = /^( *)([A-Za-z]\w*):/.exec(line) ?? []
    if (key !== undefined) {
      trail.splice(indent!.length / 2, trail.length, key)
      found.set(trail.join('.'), above)
    }
    above = comment ?? ''
  }
  return found
}

export function chartValues(): Value[] {
  const values = readValues()
  const meanings = comments(read('values.yaml'))
  return schemaPaths(readSchema()).map((path) => ({
    path,
    fallback: at(values, path),
    meaning: meanings.get(path) ?? '',
  }))
}

/** The comments above groups of values, by path. */
export function groupMeanings(): Map<string, string> {
  const leaves = new Set(schemaPaths(readSchema()))
  return new Map([...comments(read('values.yaml'))].filter(([path, meaning]) => meaning !== '' && !leaves.has(path)))
}
