/** Where something stands in the posted text, and the refusal of it (docs/contract.md#network-policies). */
import { z } from 'zod'
import { HttpError } from '../../errors.ts'

/** `path` is empty for the document itself. */
export interface Place {
  /** From 1; documents without content are not counted. */
  readonly document: number
  readonly path: string
}

const MAX_SHOWN_KEY_CHARS = 80
/** Most members of a list inside one rule, peer or port. */
export const MAX_MEMBERS = 10_000

/** The place of a member. Keys that are no words, such as those of labels, are quoted. */
export const at = ({ document, path }: Place, ...keys: readonly PropertyKey[]): Place => ({
  document,
  path: keys.reduce<string>((before, key) => `${before}${step(key, before === '')}`, path),
})

function step(key: PropertyKey, isFirst: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  const shown = String(key).slice(0, MAX_SHOWN_KEY_CHARS)
  if (!/^\w+$/.test(shown)) return `[${JSON.stringify(shown)}]`
  return isFirst ? shown : `.${shown}`
}

/** Throws the 400. `rule` is what the place breaks, such as `expected an integer`. */
export function refuse({ document, path }: Place, rule: string): never {
  throw new HttpError(400, `document ${document}: ${path === '' ? '' : `${path}: `}${rule}`)
}

/** The output of a schema. 400 with the place and the rule of the first fault. */
export function read<S extends z.ZodType>(schema: S, value: unknown, place: Place): z.output<S> {
  const { data, error } = schema.safeParse(value, { reportInput: true })
  if (!error) return data as z.output<S>
  const issue = error.issues[0]!
  const unknownKey = issue.code === 'unrecognized_keys' ? [issue.keys[0]!] : []
  refuse(at(place, ...issue.path, ...unknownKey), ruleOf(issue))
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  int: 'an integer',
  number: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

function ruleOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type' && issue.expected === 'string' && isUnquoted(issue.input))
    return 'expected a string: numbers, and words such as yes, n and off, need quotes'
  if (issue.code === 'invalid_type') return `expected ${TYPES[issue.expected] ?? issue.expected}`
  if (issue.code === 'invalid_value') return `expected ${oneOf(issue.values.map(String))}`
  if (issue.code === 'too_big' && issue.origin === 'array') return `expected at most ${issue.maximum} members`
  return issue.message
}

const isUnquoted = (input: unknown) => typeof input === 'number' || typeof input === 'boolean'

const oneOf = (words: readonly string[]) => (words.length === 1 ? words[0] : `one of ${words.join(', ')}`)

/** An object without other fields, as the API server's strict validation demands. Null stands for an absent field. */
export const strict = <S extends z.ZodRawShape>(shape: S) =>
  z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? `unknown field, expected ${oneOf(Object.keys(shape))}` : undefined,
  })

/** A list whose members are read one by one, in slices of the event loop. */
export const list = z.custom<readonly unknown[]>(Array.isArray, 'expected a list')

/** A string that follows a rule, which `message` states. */
export const text = (isValid: (value: string) => boolean, message: string) =>
  z.string().refine(isValid, { error: message, abort: true })
