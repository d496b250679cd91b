/** The two requests of the map, with the filter of the page. */
import type { Edge } from '../../api/edge.ts'

/** Edges of one answer at most: about 40 bytes each on the wire, since answers are compressed. */
export const MAX_ANSWER_EDGES = 3_000
/** Each external address would use up a part of the answer. */
export const NETWORK_BITS = 24
/** Opens the external peers into their networks, as the name of a namespace opens that. */
export const EXTERNAL = 'external'
/** The API takes 64 values of a parameter, of which the filter may have some. */
export const MAX_OPEN = 40

/** What the address has open, each once: as many as can be asked for, and those that are not. */
export function splitOpen(given: readonly string[]): { readonly open: string[]; readonly leftOut: string[] } {
  const distinct = [...new Set(given)]
  return { open: distinct.slice(0, MAX_OPEN), leftOut: distinct.slice(MAX_OPEN) }
}

/** The filter and the window of the page, as parameters of the API. */
export type MapFilter = { readonly namespace?: readonly string[] } & Readonly<Record<string, unknown>>

/**
 * The namespaces to ask for. The filter of the page may have the same parameter, of which the values are
 * alternatives; so only what it excludes is sent along, and `keptBy` applies the rest.
 */
export function askedNamespaces(open: readonly string[], filter: MapFilter): string[] {
  return [...open, ...(filter.namespace ?? []).filter((value) => value.startsWith('!'))]
}

/** Whether an edge has an end in a namespace that the filter asks for. */
export function keptBy(filter: MapFilter): (edge: Edge) => boolean {
  const wanted = new Set((filter.namespace ?? []).filter((value) => !value.startsWith('!')))
  if (wanted.size === 0) return () => true
  return ({ from, to }) => [from, to].some(({ namespace }) => namespace !== null && wanted.has(namespace))
}
