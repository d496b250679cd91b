/**
 * Unsaved edits and the last trial of each target. They stay in memory until the page is closed or reloaded, so that
 * visiting the flows of an edge and coming back loses nothing. The browser asks before it closes a tab with edits that
 * were not downloaded.
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
  /** The generated text from which the edits started. */
  readonly base: string
  readonly isSaved: boolean
}

export interface Draft {
  readonly edits: Edits | null
  readonly tried: Tried | null
}

/** Limits memory: a trial can be half a megabyte. Edits are never dropped. */
const MAX_TRIALS = 8
const NONE: Draft = { edits: null, tried: null }
const all = new Map<string, Draft>()
const listeners = new Set<() => void>()

export function setDraft(key: string, change: Partial<Draft>): void {
  const draft = { ...(all.get(key) ?? NONE), ...change }
  all.delete(key)
  if (draft.edits !== null || draft.tried !== null) all.set(key, draft)
  const tried = [...all].filter(([, one]) => one.tried !== null)
  for (const [old, { edits }] of tried.slice(0, Math.max(0, tried.length - MAX_TRIALS)))
    if (edits === null) all.delete(old)
    else all.set(old, { edits, tried: null })
  for (const listener of listeners) listener()
}

/** The key must stay the same during the life of a component. */
export function useDraft(key: string): Draft {
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
