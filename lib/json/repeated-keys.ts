/** Keys that an object has twice: of them JSON.parse keeps the last, so that what was sent and what is stored are not the same. */

/** Keys of a parsed value, those of all that is in it included. */
export function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members = Object.values(value)
  let keys = Array.isArray(value) ? 0 : members.length
  for (const member of members) keys += countKeys(member)
  return keys
}

/** A string, with the colon behind it where it is a key; and what opens and closes. */
const TOKENS = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\]]/g

/** The first key that an object of a text has twice; undefined without one. The text must be JSON. */
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

/** How a key that is there twice is told. */
export const repeatedKeyText = (key: string) => `${JSON.stringify(key.slice(0, MAX_SHOWN_KEY_CHARS))} is there twice`
