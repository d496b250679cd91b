/** The read token: in memory, and in the tab's session storage if the user chose that. */
import { useSyncExternalStore } from '../hooks.ts'

const KEY = 'console.token'

/**
 * Source of the token: the browser sends it, the edge proxy adds it, or the broker asks for none. The server writes it
 * into the page.
 */
export type TokenSource = 'browser' | 'proxy' | 'none'

export const tokenSource = ((): TokenSource => {
  const text = document.querySelector('meta[name="console-token"]')?.getAttribute('content')
  return text === 'proxy' || text === 'none' ? text : 'browser'
})()

let token = stored()
let isRefused = false
const listeners = new Set<() => void>()

function stored(): string | null {
  try {
    return window.sessionStorage.getItem(KEY)
  } catch {
    return null // Storage is off in this browser.
  }
}

export const currentToken = (): string | null => token

/** Sets the token that the user typed. */
export function signIn(value: string, { remember }: { remember: boolean }): void {
  token = value
  isRefused = false
  try {
    if (remember) window.sessionStorage.setItem(KEY, value)
    else window.sessionStorage.removeItem(KEY)
  } catch {} // Storage is off in this browser.
  for (const listener of listeners) listener()
}

/** Forgets a token that is valid but may not read the requested data. */
export function signOut(): void {
  token = null
  refused()
}

/** Called when the broker refused the current token, or asks for one and there is none. */
export function refused(): void {
  if (isRefused) return
  isRefused = true
  try {
    window.sessionStorage.removeItem(KEY)
  } catch {} // Storage is off in this browser.
  for (const listener of listeners) listener()
}

/** Whether the page has to ask for a token. */
export function useIsRefused(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => isRefused,
  )
}
