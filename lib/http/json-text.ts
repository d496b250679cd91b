import { HttpError } from './errors.ts'

/** How deep a free-form value may nest. Kubernetes objects stay below 30; PostgreSQL and JSON.stringify give up in the thousands. */
export const MAX_JSON_DEPTH = 100

const MAX_SHOWN_PATH_CHARS = 200

export const deserializeError = (message: string) => new HttpError(400, `Json deserialize error: ${message}`)

/**
 * Parses a body. 400 for text that is not JSON, and for strings that are JSON but that no PostgreSQL text can hold: U+0000
 * and half a surrogate pair. The message names the place.
 */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw deserializeError(`invalid JSON: ${position(error as Error)}`)
  }
  // Only an escape can spell them, since the bytes were valid UTF-8: bodies without one are not walked.
  if (text.includes('\\u') && /\\u(?:0000|[dD][89a-fA-F])/.test(text)) walk(value, checkStrings)
  return value
}

/**
 * Checks a free-form value that is to be stored as it is: nesting beyond `MAX_JSON_DEPTH` and numbers beyond a double are
 * 400, naming the field.
 */
export function checkFreeForm(value: unknown, field: string): void {
  walk(value, (at) => {
    if (at.depth > MAX_JSON_DEPTH) throw deserializeError(`${field}: nested deeper than ${MAX_JSON_DEPTH} levels`)
    if (typeof at.value === 'number' && !Number.isFinite(at.value)) throw deserializeError(`${field}.${at.path}: number out of range`)
  })
}

// Node's own message quotes the body; only the place is told.
const position = (error: Error) => /at position \d+/.exec(error.message)?.[0] ?? 'unexpected end'

interface Place {
  value: unknown
  path: string
  depth: number
}

/** Depth first with a stack of its own: a body of a million brackets must not overflow ours. */
function walk(root: unknown, visit: (at: Place) => void): void {
  const stack: Place[] = [{ value: root, path: '', depth: 0 }]
  for (let at = stack.pop(); at; at = stack.pop()) {
    visit(at)
    const { value, path, depth } = at
    if (typeof value !== 'object' || value === null) continue
    const step = path.length > MAX_SHOWN_PATH_CHARS ? () => path : childPath(path, Array.isArray(value))
    for (const [key, child] of Object.entries(value)) stack.push({ value: child, path: step(key), depth: depth + 1 })
  }
}

const childPath = (path: string, inArray: boolean) => (key: string) => (inArray ? `${path}[${key}]` : `${path}${path ? '.' : ''}${key}`)

function checkStrings({ value, path }: Place): void {
  if (typeof value === 'string') checkString(value, path)
  else if (typeof value === 'object' && value !== null && !Array.isArray(value))
    for (const key of Object.keys(value)) checkString(key, path)
}

function checkString(text: string, path: string): void {
  const where = path ? `${path}: ` : ''
  if (text.includes('\0')) throw deserializeError(`${where}U+0000 is not allowed`)
  if (!text.isWellFormed()) throw deserializeError(`${where}half a surrogate pair is not allowed`)
}
