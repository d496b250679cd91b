/**
 * Keys that an object has twice. `JSON.parse` keeps the last one, so that what is stored would not be what was sent.
 */

/** The number of keys of a parsed value and everything in it. */
export function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members = Object.values(value)
  let keys = Array.isArray(value) ? 0 : members.length
  for (const member of members) keys += countKeys(member)
  return keys
}

/** A string, with the colon behind it where it is a key; or a bracket. */
const TOKENS = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\]]/g

/** The first key that an object of the text has twice, or undefined. The text must be JSON. */
export function repeatedKey(json: string): string | undefined {
  const open: Set<string>[] = []
  for (const [token, string, colon] of json.matchAll(TOKENS)) {
    if (token === '{' || token === '[') open.push(new Set())
    else if (string === undefined) open.pop()
    else if (colon !== undefined) {
      const key = JSON.parse(string) as string
      const keys = open.at(-1)!
      if (keys.has(key)) return key
      keys.add(key)
    }
  }
  return undefined
}

const MAX_SHOWN_KEY_CHARS = 60

/** The error text for a key that an object has twice. */
export const repeatedKeyText = (key: string) => `${JSON.stringify(key.slice(0, MAX_SHOWN_KEY_CHARS))} is there twice`
