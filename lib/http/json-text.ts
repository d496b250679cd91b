import { HttpError } from './errors.ts'
import { noteSource } from './exact-json.ts'

/** How deep a free-form value may nest. Kubernetes objects stay below 30; PostgreSQL and JSON.stringify give up in the thousands. */
export const MAX_JSON_DEPTH = 100

const MAX_SHOWN_PATH_CHARS = 200
const MAX_SHOWN_KEY_CHARS = 60

export const deserializeError = (message: string) => new HttpError(400, `Json deserialize error: ${message}`)

/**
 * Parses a body. 400 for text that is not JSON, and for strings that are JSON but that no PostgreSQL text can hold: U+0000
 * and half a surrogate pair. The message names the place. What stands under the keys `tolerated` of the outermost object is
 * not looked at: who reads it takes care of that.
 */
export function parseJson(text: string, tolerated: readonly string[] = []): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw deserializeError(`invalid JSON: ${position(error as Error)}`)
  }
  noteSource(text, value)
  // Only an escape can spell them, since the bytes were valid UTF-8: bodies without one are not walked.
  if (text.includes('\\u') && /\\u(?:0000|[dD][89a-fA-F])/.test(text)) refuse(findFault(without(value, tolerated), textFault), '')
  return value
}

function without(value: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0 || typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)))
}

/**
 * Checks a free-form value that is to be stored as it is: nesting beyond `MAX_JSON_DEPTH` and numbers beyond a double are
 * 400, naming the field.
 */
export function checkFreeForm(value: unknown, field: string): void {
  refuse(findFault(value, storableFault), field)
}

// Node's own message quotes the body; only the place is told.
const position = (error: Error) => /at position \d+/.exec(error.message)?.[0] ?? 'unexpected end'

interface Place {
  value: unknown
  /** The key or index under which `value` stands in `parent`. */
  key: string
  parent: Place | null
  depth: number
}

/** What is wrong with a value; a bad key is a fault of the object that has it. */
function textFault({ value }: Place): string | null {
  if (typeof value === 'string') return faultOf(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  for (const key of Object.keys(value)) {
    const fault = faultOf(key)
    if (fault !== null) return fault
  }
  return null
}

function faultOf(text: string): string | null {
  if (text.includes('\0')) return 'U+0000 is not allowed'
  return text.isWellFormed() ? null : 'half a surrogate pair is not allowed'
}

const TOO_DEEP = `nested deeper than ${MAX_JSON_DEPTH} levels`

function storableFault({ value, depth }: Place): string | null {
  if (depth > MAX_JSON_DEPTH) return TOO_DEEP
  return typeof value === 'number' && !Number.isFinite(value) ? 'number out of range' : null
}

/** Depth first with a stack of its own: a body of a million brackets must not overflow ours. */
function findFault(root: unknown, judge: (at: Place) => string | null): { at: Place; fault: string } | null {
  const stack: Place[] = [{ value: root, key: '', parent: null, depth: 0 }]
  for (let at = stack.pop(); at; at = stack.pop()) {
    const fault = judge(at)
    if (fault !== null) return { at, fault }
    const { value } = at
    if (typeof value !== 'object' || value === null) continue
    for (const key of Object.keys(value))
      stack.push({ value: (value as Record<string, unknown>)[key], key, parent: at, depth: at.depth + 1 })
  }
  return null
}

function refuse(found: { at: Place; fault: string } | null, field: string): void {
  if (found === null) return
  let path = ''
  // The innermost steps say most; a hostile path may be a million steps long.
  for (let at = found.at; found.fault !== TOO_DEEP && at.parent !== null && path.length < MAX_SHOWN_PATH_CHARS; at = at.parent) {
    const step = at.key.slice(0, MAX_SHOWN_KEY_CHARS)
    path = (Array.isArray(at.parent.value) ? `[${step}]` : `.${step}`) + path
  }
  const where = `${field}${path}`.replace(/^\./, '')
  throw deserializeError(where ? `${where}: ${found.fault}` : found.fault)
}
