import { HttpError } from '../http/errors.ts'
import { noteSource } from './exact-integers.ts'

/** How deep a free-form value may nest. Kubernetes objects stay below 30; PostgreSQL and JSON.stringify give up in the thousands. */
export const MAX_JSON_DEPTH = 100

const MAX_SHOWN_PATH_CHARS = 200
const MAX_SHOWN_KEY_CHARS = 60

export const deserializeError = (message: string) => new HttpError(400, `Json deserialize error: ${message}`)

/** Keys of the outermost object whose texts may be such that no PostgreSQL text can hold them, or all of the body: who reads it takes care of that. */
export type Tolerated = readonly string[] | 'all'

/**
 * Parses a body. 400 for text that is not JSON, and for strings that are JSON but that no PostgreSQL text can hold: U+0000
 * and half a surrogate pair. The message names the place. What is `tolerated` is not looked at. Unless it `isNoted`, `exactly` does not know of it:
 * looking for long integers takes as long as parsing where there is much text.
 */
export function parseJson(text: string, tolerated: Tolerated = [], isNoted = true): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw deserializeError(`invalid JSON: ${position(error as Error)}`)
  }
  if (isNoted) noteSource(text, value)
  // Only an escape can spell them, since the bytes were valid UTF-8: bodies without one are not walked.
  if (tolerated !== 'all' && text.includes('\\u') && /\\u(?:0000|[dD][89a-fA-F])/.test(text))
    refuse(findFault(without(value, tolerated), textFault), '')
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

/** What is wrong with a value by itself, at its depth below the root; a bad key is a fault of the object that has it. */
type Judge = (value: unknown, depth: number) => string | null

const textFault: Judge = (value) => {
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

const storableFault: Judge = (value, depth) => {
  if (depth > MAX_JSON_DEPTH) return TOO_DEEP
  return typeof value === 'number' && !Number.isFinite(value) ? 'number out of range' : null
}

/** A container on the way down; `next` is which of its members comes next. */
interface Frame {
  readonly members: Record<string, unknown> | readonly unknown[]
  /** Null for an array. */
  readonly keys: readonly string[] | null
  next: number
}

interface Found {
  readonly fault: string
  /** The containers around it, the outermost first, each one past the step that was taken. */
  readonly way: readonly Frame[]
}

/** The first fault in the order of the text, with a stack of its own: a body of a hundred thousand brackets must not overflow ours. */
function findFault(root: unknown, judge: Judge): Found | null {
  const fault = judge(root, 0)
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
    const fault = judge(value, way.length)
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
  // The innermost steps say most; a hostile path may be thousands of steps long.
  for (let i = found.way.length - 1; found.fault !== TOO_DEEP && i >= 0 && path.length < MAX_SHOWN_PATH_CHARS; i--) {
    const { keys, next } = found.way[i]!
    path = (keys ? `.${keys[next - 1]!.slice(0, MAX_SHOWN_KEY_CHARS)}` : `[${next - 1}]`) + path
  }
  const where = `${field}${path}`.replace(/^\./, '')
  throw deserializeError(where ? `${where}: ${found.fault}` : found.fault)
}
