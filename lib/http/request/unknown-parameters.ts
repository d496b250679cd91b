import { routePath } from 'hono/route'
import { HttpError } from '../errors.ts'
import type { Context } from '../route.ts'

/** A name that is sent back is cut here. */
const MAX_SHOWN_CHARS = 64

/** Judges the names that were sent: 400 for the first that is not among `known`, or, where such are ignored, a note of how many there were. */
export function validateParameters(known: readonly string[], unknown: 'refused' | 'ignored') {
  const names = new Set(known)
  const rule =
    known.length > 0 ? `the parameters of this route are ${known.join(', ')}` : 'this route has no parameters'
  return (c: Context, sent: readonly string[]): void => {
    let ignored = 0
    for (const name of sent) {
      if (names.has(name)) continue
      if (unknown === 'refused')
        throw new HttpError(400, `Query deserialize error: ${shown(name)}: not known here: ${rule}`)
      ignored++
    }
    if (ignored > 0) c.get('deps').noteIgnored(routePath(c, -1), ignored)
  }
}

const shown = (name: string) =>
  (name.length > MAX_SHOWN_CHARS ? `${name.slice(0, MAX_SHOWN_CHARS)}…` : name).replace(/[^\x20-\x7e…]/g, '?')
