/**
 * What people have in the works for each target: their edits, and the last trial. It lives as long as the document, so
 * that a look at the flows of an edge, and the way back, lose nothing. Closing the tab with edits that were not
 * downloaded asks first.
 */
import { useSyncExternalStore } from '../../../hooks.ts'
import type { Trial } from './try-policies.ts'

export interface Tried {
  readonly text: string
  readonly days: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly outcome: { readonly trial: Trial } | { readonly error: Error }
}

export interface Edits {
  readonly text: string
  /** The generated text that they began with. */
  readonly base: string
  readonly isSaved: boolean
}

export interface Work {
  readonly edits: Edits | null
  readonly tried: Tried | null
}

/** Trials are up to half a megabyte. Edits are kept all the same. */
const MAX_TRIALS = 8
const NONE: Work = { edits: null, tried: null }
const all = new Map<string, Work>()
const listeners = new Set<() => void>()

export function setWork(key: string, change: Partial<Work>): void {
  const work = { ...(all.get(key) ?? NONE), ...change }
  all.delete(key)
  if (work.edits !== null || work.tried !== null) all.set(key, work)
  const tried = [...all].filter(([, one]) => one.tried !== null)
  for (const [old, { edits }] of tried.slice(0, Math.max(0, tried.length - MAX_TRIALS)))
    if (edits === null) all.delete(old)
    else all.set(old, { edits, tried: null })
  for (const listener of listeners) listener()
}

/** The key of a component must not change. */
export function useWork(key: string): Work {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => all.get(key) ?? NONE,
  )
}

window.addEventListener('beforeunload', (event) => {
  if ([...all.values()].some(({ edits }) => edits !== null && !edits.isSaved)) event.preventDefault()
})
