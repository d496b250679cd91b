/** The two requests of the map, with the filter of the page. */
import type { Edge } from '../../api/edge.ts'

/** Limit of edges in one answer: about 40 compressed bytes each. */
export const MAX_ANSWER_EDGES = 3_000
/** Groups external addresses by network, because single addresses would use up the limit of edges. */
export const NETWORK_BITS = 24
/** The value of `open` that shows external peers by network; other values are names of namespaces. */
export const EXTERNAL = 'external'
/** The API takes 64 values of a parameter; some of them are left for the filter. */
export const MAX_OPEN = 40

/** The distinct open namespaces of the address, split at the limit. */
export function splitOpen(given: readonly string[]): { readonly open: string[]; readonly leftOut: string[] } {
  const distinct = [...new Set(given)]
  return { open: distinct.slice(0, MAX_OPEN), leftOut: distinct.slice(MAX_OPEN) }
}

/** The filter and the time window of the page, as query parameters of the API. */
export type MapFilter = { readonly namespace?: readonly string[] } & Readonly<Record<string, unknown>>

/**
 * The values of the `namespace` parameter. The filter of the page may have the same parameter, whose values are
 * alternatives, so only its exclusions are sent; `matchesNamespaces` applies the rest.
 */
export function askedNamespaces(open: readonly string[], filter: MapFilter): string[] {
  return [...open, ...(filter.namespace ?? []).filter((value) => value.startsWith('!'))]
}

/** A predicate: whether an edge has an end in one of the namespaces of the filter. */
export function matchesNamespaces(filter: MapFilter): (edge: Edge) => boolean {
  const wanted = new Set((filter.namespace ?? []).filter((value) => !value.startsWith('!')))
  if (wanted.size === 0) return () => true
  return ({ from, to }) => [from, to].some(({ namespace }) => namespace !== null && wanted.has(namespace))
}
