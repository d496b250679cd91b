/** Edges, in a module that does not need a browser. */
import type { paths } from './schema.d.ts'

/** An edge: one side opens connections to the other. An item of `GET /flows/edges`. */
export type Edge = paths['/flows/edges']['get']['responses'][200]['content']['application/json']['items'][number]
export type Side = Edge['from']

/** The value of the filter of flows that matches a verdict: agents may send others than the filter knows. */
export const verdictFilter = (verdict: string | null): string | null =>
  verdict === null || verdict === 'ALLOW' || verdict === 'DROP' ? verdict : '!DROP'
