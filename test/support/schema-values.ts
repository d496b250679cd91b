/** Generates values that a JSON schema of the OpenAPI document allows. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { anyCharacter } from './any-character.ts'
import { document } from './contract.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

const { schemas } = document.components as { schemas: Record<string, Json> }
const made = new Map<string, fc.Arbitrary<unknown>>()

/** Texts of any kind: escapes, control characters, and more characters than most columns hold. */
const anyText = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 20 }) },
  { weight: 1, arbitrary: fc.constantFrom('', ' ', '\0', '\u202e', '1', 'x'.repeat(5_000)) },
)

/** U+0000 is excluded, since the schema of an arbitrary value cannot forbid it. */
const hasNull = (value: unknown) => JSON.stringify(value)?.includes('\\u0000') ?? false
const anything = fc.jsonValue({ maxDepth: 3, stringUnit: anyCharacter }).filter((value) => !hasNull(value))
const anyObject = fc.dictionary(fc.string({ maxLength: 10 }), anything, { maxKeys: 3 })

/** Values of a parameter or of any part of a body. */
export function valuesOf(schema: Json): fc.Arbitrary<unknown> {
  if (schema.$ref) {
    const id = schema.$ref.split('/').at(-1)!
    if (!made.has(id)) made.set(id, valuesOf(schemas[id]))
    return made.get(id)!
  }
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return fc.oneof(...choices.map(valuesOf))
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  // Opaque values that are not blank can only come from the broker.
  if (schema['x-opaque']) return fc.constantFrom('', ' ')
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type: string) => valuesOf({ ...schema, type })))
  if (schema.type === undefined) return anything
  const make = MAKERS[schema.type as keyof typeof MAKERS]
  assert.ok(make, JSON.stringify(schema))
  return make(schema)
}

const MAKERS = {
  null: () => fc.constant(null),
  boolean: () => fc.boolean(),
  integer: integers,
  number: ({ minimum, maximum }: Json) =>
    fc.double({ min: minimum, max: maximum, noNaN: true, noDefaultInfinity: true }),
  string: texts,
  array: ({ items, minItems = 0, maxItems = 3 }: Json) =>
    fc.array(valuesOf(items), { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, 3)) }),
  object: objects,
}

const INT64 = [-(2 ** 62), 2 ** 62]

function integers({ minimum: min = Number.MIN_SAFE_INTEGER, maximum: max = Number.MAX_SAFE_INTEGER, format }: Json) {
  const near = fc.integer({ min: Math.max(min, -1_000), max: Math.min(max, 1_000) })
  const all = [near, fc.integer({ min, max }), fc.constantFrom(min, max)]
  return fc.oneof(...(format === 'int64' ? [...all, fc.constantFrom(...INT64)] : all))
}

const zones = fc.constantFrom('Z', 'z', '+00:00', '-07:30', '+14:00', '+23:59')
// The first and the last year are left out, since the zone could move them out of range, which no pattern can express.
const zonedTimes = fc.oneof(
  fc
    .tuple(
      fc.date({ min: new Date('0002-01-01T00:00:00Z'), max: new Date('9998-12-31T23:59:59Z'), noInvalidDate: true }),
      zones,
    )
    .map(([date, zone]) => date.toISOString().replace('Z', zone)),
  fc.constantFrom(
    '2016-12-31T23:59:60Z',
    '2024-02-29t12:00:00Z',
    '2026-01-01T09:00:00.123456789Z',
    '2026-01-01T09:00:00Z',
  ),
)

function texts({
  minLength = 0,
  maxLength = Number.POSITIVE_INFINITY,
  pattern,
  format,
  description = '',
}: Json): fc.Arbitrary<string> {
  // With and without the flag `u`, since generators use either.
  const patterns = pattern === undefined ? [] : [new RegExp(pattern), new RegExp(pattern, 'u')]
  // A schema counts characters; where the broker counts bytes, the description says so, and elsewhere it counts UTF-16
  // units.
  const lengthOf = (text: string) => (/ bytes/.test(description) ? Buffer.byteLength(text) : text.length)
  const made = [anyText]
  if (format === 'date-time') made.unshift(zonedTimes)
  else if (pattern !== undefined) made.unshift(fc.stringMatching(patterns[0]!))
  if (maxLength < 10_000) made.push(fc.constantFrom('x'.repeat(maxLength), '0'.repeat(maxLength)))
  const isAllowed = (text: string) =>
    text.isWellFormed() &&
    [...text].length >= minLength &&
    lengthOf(text) <= maxLength &&
    (format !== 'date-time' || isTime(text)) &&
    patterns.every((one) => one.test(text))
  return (format === 'date-time' ? made[0]! : fc.oneof(...made)).filter(isAllowed)
}

const isTime = (text: string) => /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d/.test(text)

function objects({
  properties = {},
  required = [],
  additionalProperties,
  propertyNames = { type: 'string' },
}: Json): fc.Arbitrary<unknown> {
  const names = Object.keys(properties)
  if (names.length === 0 && !additionalProperties) return anyObject
  const fields = Object.fromEntries(names.map((name) => [name, valuesOf(properties[name])]))
  const known = fc.record(fields, { requiredKeys: required })
  const others = additionalProperties
    ? fc.dictionary(
        valuesOf({ type: 'string', ...propertyNames }) as fc.Arbitrary<string>,
        valuesOf(additionalProperties),
        { maxKeys: 3 },
      )
    : fc.option(fc.record({ 'x-unknown': anything }), { nil: {} })
  return fc.tuple(others, known).map(([more, told]) => ({ ...more, ...told }))
}
