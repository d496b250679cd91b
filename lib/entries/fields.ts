/** Fields of entries. `nullish()` makes one optional: it may be absent or null. */
import { z } from 'zod'
import { documentedAs } from '../openapi/declare.ts'
import { isLongerThan } from '../text/utf8.ts'
import { parseNaive } from '../time/timestamp.ts'
import { jsonSchemaOf } from './entry-schema.ts'

type Json = Readonly<Record<string, unknown>>

/** The longest name in Kubernetes. */
export const MAX_NAME_BYTES = 253
/** Counts of entries and sums of them in the database end here: sums of sums still fit a double. */
export const MAX_COUNT = 1_000_000_000_000

interface FieldDef extends z.core.$ZodTypeDef {
  readonly read: (value: unknown) => unknown
}

const Field = z.core.$constructor<z.ZodType, FieldDef>('EntryField', (inst, def) => {
  z.ZodType.init(inst, def)
  if (def.read(undefined) !== undefined) inst._zod.optin = 'defaulted'
  inst._zod.parse = (payload) => {
    const value = def.read(payload.value)
    if (value === undefined) payload.issues.push({ code: 'custom', input: payload.value, inst })
    else payload.value = value
    return payload
  }
})

/**
 * A field that code reads: `read` returns undefined for a value that is at fault. It may be absent if `read` has a
 * value for undefined. A refusal by `refine` costs ten times as much.
 */
export const field = <T>(json: Json, read: (value: unknown) => T | undefined): z.ZodType<T> =>
  documentedAs(new Field({ type: 'custom', read }) as z.ZodType<T>, json)

/** PostgreSQL cannot hold U+0000, nor half of a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

const readText = (value: unknown, maxBytes: number): string | undefined =>
  typeof value === 'string' && !isLongerThan(value, maxBytes) && isStorable(value) ? value : undefined

/** Text of at most `maxBytes` that can be stored. */
export const text = (
  maxBytes: number,
  { isValid = (_: string) => true, ...json }: Json & { isValid?: (text: string) => boolean } = {},
) =>
  field({ type: 'string', maxLength: maxBytes, description: `At most ${maxBytes} bytes.`, ...json }, (value) => {
    const text = readText(value, maxBytes)
    return text !== undefined && isValid(text) ? text : undefined
  })

/** Such text or null, which stands for an absent value, too. */
export const nullableText = (maxBytes: number) =>
  field({ anyOf: [{ type: 'string', maxLength: maxBytes }, { type: 'null' }] }, (value) =>
    value === undefined || value === null ? null : readText(value, maxBytes),
  )

export const notBlank = (maxBytes = MAX_NAME_BYTES) =>
  text(maxBytes, {
    isValid: (value) => value.trim() !== '',
    minLength: 1,
    description: `Not blank, at most ${maxBytes} bytes.`,
  })

export const notEmpty = (maxBytes: number) => text(maxBytes, { isValid: (value) => value !== '', minLength: 1 })

export const trimmed = (maxBytes = MAX_NAME_BYTES) =>
  text(maxBytes, {
    isValid: (value) => value !== '' && value.trim() === value,
    minLength: 1,
    description: `At most ${maxBytes} bytes, without white space around it.`,
  })

/** A whole number within a range; without `max`, one of any size. */
export const whole = (min: number, max = Number.MAX_VALUE) =>
  field({ type: 'integer', minimum: min, maximum: Math.min(max, Number.MAX_SAFE_INTEGER) }, (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max ? (value as number) : undefined,
  )

export const flag = field({ type: 'boolean' }, (value) => (typeof value === 'boolean' ? value : undefined))

/** One of some words, written exactly so. */
export const oneOf = <W extends string>(words: readonly W[]) =>
  field({ type: 'string', enum: words }, (value) => words.find((word) => word === value))

/** An integer; any other value counts as absent. */
export const lenientInteger = field(jsonSchemaOf(z.int().nullish()), (value) =>
  Number.isSafeInteger(value) ? (value as number) : null,
)

/** A text; any other value counts as absent. `read` returns undefined for a text that drops its entry. */
export const lenientText = (json: Json, read: (text: string) => string | null | undefined) =>
  field({ anyOf: [{ type: 'string', ...json }, { type: 'null' }] }, (value) =>
    typeof value !== 'string' ? null : isStorable(value) ? read(value) : undefined,
  )

/** A naive UTC time in its canonical form; the component of the OpenAPI document is that of `naiveTimeText`. */
export const naiveTime = field({ $ref: '#/$defs/PostedTime' }, (value) =>
  typeof value === 'string' ? (parseNaive(value) ?? undefined) : undefined,
)
