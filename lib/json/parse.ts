import { HttpError } from '../errors.ts'
import { MAX_JSON_DEPTH } from '../limits/limits.ts'
import { noteSource } from './exact-integers.ts'

const MAX_SHOWN_PATH_CHARS = 200
const MAX_SHOWN_KEY_CHARS = 60

export const deserializeError = (message: string) => new HttpError(400, `Json deserialize error: ${message}`)

/**
 * Keys of the outermost object whose texts are not checked for what PostgreSQL cannot store, or `all`: the route checks
 * them itself.
 */
export type Tolerated = readonly string[] | 'all'

/**
 * Parses a body. 400 for text that is not JSON, and for strings that PostgreSQL cannot store: U+0000 and half a
 * surrogate pair. The message names the place. Without `isNoted` its long integers cannot be had from `exactly`: in a
 * body with much text, looking for them takes as long as parsing.
 */
export function parseJson(text: string, tolerated: Tolerated = [], isNoted = true): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw deserializeError(`invalid JSON: ${position(error as Error)}`)
  }
  if (isNoted) noteSource(text, value)
  // In valid UTF-8 only an escape can spell them: bodies without one need no walk.
  if (tolerated !== 'all' && text.includes('\\u') && /\\u(?:0000|[dD][89a-fA-F])/.test(text))
    refuse(findFault(without(value, tolerated), textFault), '')
  return value
}

function without(value: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0 || typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)))
}

/**
 * Checks a value that is stored as it was sent. 400, naming the field, for nesting beyond `MAX_JSON_DEPTH`, numbers
 * beyond a double, and text that PostgreSQL cannot store.
 */
export function checkFreeForm(value: unknown, field: string): void {
  refuse(findFault(value, storableFault), field)
}

// Node's own message quotes the body: only the position is shown.
const position = (error: Error) => /at position \d+/.exec(error.message)?.[0] ?? 'unexpected end'

/**
 * Returns the fault of one value, without its members, at its depth below the root. A bad key is a fault of its object.
 */
type Check = (value: unknown, depth: number) => string | null

const textFault: Check = (value) => {
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

const storableFault: Check = (value, depth) => {
  if (depth > MAX_JSON_DEPTH) return TOO_DEEP
  return typeof value === 'number' && !Number.isFinite(value) ? 'number out of range' : textFault(value, depth)
}

/** A container on the way down; `next` is the index of the member that comes next. */
interface Frame {
  readonly members: Record<string, unknown> | readonly unknown[]
  /** Null for an array. */
  readonly keys: readonly string[] | null
  next: number
}

interface Found {
  readonly fault: string
  /** The containers around it, the outermost first; `next` of each is one past the member that was entered. */
  readonly way: readonly Frame[]
}

/**
 * The first fault in the order of the text. Without recursion: a body of a hundred thousand brackets must not overflow
 * the stack.
 */
function findFault(root: unknown, check: Check): Found | null {
  const fault = check(root, 0)
  const way: Frame[] = []
  if (fault !== null) return { fault, way }
  if (isContainer(root)) way.push(frameOf(root))
  for (let at = way.at(-1); at; at = way.at(-1)) {
    if (at.next === (at.keys ?? (at.members as readonly unknown[])).length) {
      way.pop()
      continue
    }
    const value = at.keys
      ? (at.members as Record<string, unknown>)[at.keys[at.next]!]
      : (at.members as readonly unknown[])[at.next]
    at.next++
    const fault = check(value, way.length)
    if (fault !== null) return { fault, way }
    if (isContainer(value)) way.push(frameOf(value))
  }
  return null
}

const isContainer = (value: unknown): value is Frame['members'] => typeof value === 'object' && value !== null

const frameOf = (members: Frame['members']): Frame => ({
  members,
  keys: Array.isArray(members) ? null : Object.keys(members),
  next: 0,
})

function refuse(found: Found | null, field: string): void {
  if (found === null) return
  let path = ''
  // Only the innermost steps are shown: a hostile path may be thousands of steps long.
  for (let i = found.way.length - 1; found.fault !== TOO_DEEP && i >= 0 && path.length < MAX_SHOWN_PATH_CHARS; i--) {
    const { keys, next } = found.way[i]!
    path = (keys ? `.${keys[next - 1]!.slice(0, MAX_SHOWN_KEY_CHARS)}` : `[${next - 1}]`) + path
  }
  const where = `${field}${path}`.replace(/^\./, '')
  throw deserializeError(where ? `${where}: ${found.fault}` : found.fault)
}
