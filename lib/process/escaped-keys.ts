import { randomUUID } from 'node:crypto'

/**
 * Whether `JSON.parse` of this process may read an escaped key as another one. In V8 12.8 and later (Node 24 to 26) a
 * key with a backslash causes this in objects that begin with the same keys (nodejs/node#63785). A client with a write
 * token could so corrupt the keys of others; keys that Kubernetes makes do not. The broker cannot refuse such keys:
 * `managedFields` of Windows pods contain mount paths.
 */
export function misreadsEscapedKeys(): boolean {
  // A unique first key keeps the fault away from all other objects.
  const before = `"${randomUUID()}":0`
  JSON.parse(`{${before},"\\\\":0}`)
  return Object.keys(JSON.parse(`{${before},"\\n":0}`))[1] !== '\n'
}

export const MISREADS = 'this Node may misread escaped keys of bodies (nodejs/node#63785): use Node 22'
