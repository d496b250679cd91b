import { routePath } from 'hono/route'
import { HttpError } from '../../errors.ts'
import type { Context } from '../route.ts'

/** Longer names are cut in the error text. */
const MAX_SHOWN_CHARS = 64

/**
 * Validates the names of the parameters: 400 for the first that is not among `known`, or, where such are ignored,
 * counts them.
 */
export function validateParameters(known: readonly string[], unknown: 'refused' | 'ignored') {
  const names = new Set(known)
  const rule =
    known.length > 0 ? `the parameters of this route are ${known.join(', ')}` : 'this route has no parameters'
  return (c: Context, sent: readonly string[]): void => {
    let ignored = 0
    for (const name of sent) {
      if (names.has(name)) continue
      if (unknown === 'refused')
        throw new HttpError(400, `Query deserialize error: ${displayName(name)}: not known here: ${rule}`)
      ignored++
    }
    if (ignored > 0) c.get('deps').noteIgnored(routePath(c, -1), ignored)
  }
}

const displayName = (name: string) =>
  (name.length > MAX_SHOWN_CHARS ? `${name.slice(0, MAX_SHOWN_CHARS)}…` : name).replace(/[^\x20-\x7e…]/g, '?')
