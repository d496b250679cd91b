import { randomUUID } from 'node:crypto'

/**
 * Whether `JSON.parse` of this process may take an escaped key for another that it has read: in V8 12.8 and later (Node 24 to 26), a key with a
 * backslash makes it so in objects that begin with the same keys as the one that had it (nodejs/node#63785). Whoever may post could make keys for
 * having those of others stored wrongly; none that Kubernetes makes does. Such keys cannot be refused: mount paths of Windows are in `managedFields`.
 */
export function misreadsEscapedKeys(): boolean {
  // No other object begins with it, so that the question harms none.
  const before = `"${randomUUID()}":0`
  JSON.parse(`{${before},"\\\\":0}`)
  return Object.keys(JSON.parse(`{${before},"\\n":0}`))[1] !== '\n'
}

export const MISREADS =
  'this Node may misread keys of bodies that are escaped (nodejs/node#63785): use Node 22, as the image does'
