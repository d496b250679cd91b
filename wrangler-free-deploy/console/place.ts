/**
 * The router. The address bar is the state: each view has a path below the base, with its filters and time window as
 * query parameters. A copied address therefore shows the same view to a colleague.
 */
import { useSyncExternalStore } from './hooks.ts'

/** The base path, with a slash at the end. The edge proxy also serves the console at `/`. */
export const BASE = import.meta.env.BASE_URL

export interface Place {
  /** Decoded segments below the base: `['workload', 'shop', 'Deployment', 'api']`; empty for the start page. */
  readonly segments: readonly string[]
  readonly query: URLSearchParams
}

/** Query parameters. An array repeats the parameter; an empty value leaves it out. */
export type Query = Readonly<Record<string, string | readonly string[] | null | undefined>>

/** Parameters of the whole console, which links keep. */
const KEPT = ['since', 'until']

const listeners = new Set<() => void>()
let current = read()

function read(): Place & { readonly text: string } {
  const { pathname, search } = window.location
  const below = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : ''
  const segments = below.split('/').filter((one) => one !== '')
  return { segments: segments.map(decode), query: new URLSearchParams(search), text: `${pathname}${search}` }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function changed(): void {
  current = read()
  for (const listener of listeners) listener()
}

export const currentPlace = (): Place => current

/** The current place. The component renders again when it changes. */
export function usePlace(): Place {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, currentPlace)
}

/** An address of the console. It keeps the time window unless `query` has one, even if only a beginning. */
export function href(segments: readonly string[], query: Query = {}): string {
  const kept = KEPT.some((name) => name in query) ? [] : [...current.query].filter(([name]) => KEPT.includes(name))
  return address(segments, toParameters(query, new URLSearchParams(kept)))
}

/** The current address with some parameters replaced; an empty value removes one. */
export function hrefWith(query: Query): string {
  const parameters = new URLSearchParams(current.query)
  for (const name of Object.keys(query)) parameters.delete(name)
  return address(current.segments, toParameters(query, parameters))
}

function toParameters(query: Query, parameters: URLSearchParams): URLSearchParams {
  for (const [name, value] of Object.entries(query))
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) if (one !== '') parameters.append(name, one)
  return parameters
}

function address(segments: readonly string[], parameters: URLSearchParams): string {
  const text = parameters.toString()
  return `${BASE}${segments.map(encodeSegment).join('/')}${text === '' ? '' : `?${text}`}`
}

/** Leaves `:` unencoded, as in digests, because the edge proxy refuses encoded paths. */
export function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll('%3A', ':').replaceAll('%40', '@')
}

/** Goes to an address of the console. `replace` adds no entry to the history, for example while the user types. */
export function go(to: string, { replace = false }: { replace?: boolean } = {}): void {
  if (to === `${window.location.pathname}${window.location.search}`) return
  const before = window.location.pathname
  if (replace) window.history.replaceState(null, '', to)
  else window.history.pushState(null, '', to)
  changed()
  if (window.location.pathname !== before) window.scrollTo(0, 0)
}

/** Handles clicks on links of the console without loading the page again, and the back button. */
export function startRouter(): void {
  window.addEventListener('popstate', changed)
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    if (link.origin !== window.location.origin || !link.pathname.startsWith(BASE) || link.hash !== '') return
    event.preventDefault()
    go(`${link.pathname}${link.search}`)
  })
}
