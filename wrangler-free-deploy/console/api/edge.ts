/** Edges, in a module that does not need a browser. */
import type { paths } from './schema.d.ts'

/** An edge: one side opens connections to the other. An item of `GET /flows/edges`. */
export type Edge = paths['/flows/edges']['get']['responses'][200]['content']['application/json']['items'][number]
export type Side = Edge['from']
/** Query parameters of a link; null leaves one out. */
export type Query = Readonly<Record<string, string | readonly string[] | null>>

/** The value of the filter of flows that matches a verdict: agents may send others than the filter knows. */
export const verdictFilter = (verdict: string | null): string | null =>
  verdict === null || verdict === 'ALLOW' || verdict === 'DROP' ? verdict : '!DROP'

/** The filter that matches the flows of the edge. Sides without a name are matched by address. */
export function flowsQuery({ from, to, port, protocol, verdict }: Edge): Query {
  return {
    ...sideQuery('from_', from),
    ...sideQuery('to_', to),
    port,
    // Agents may send others, which the filter refuses.
    protocol: ['TCP', 'UDP', 'SCTP'].includes(protocol ?? '') ? protocol : null,
    verdict: verdictFilter(verdict),
  }
}

function sideQuery(prefix: 'from_' | 'to_', { kind, namespace, name, workload, ip }: Side): Query {
  if (kind === 'workload') return { [`${prefix}workload`]: `${namespace}/${workload}` }
  if (kind === 'pod' || kind === 'service') return { [`${prefix}${kind}`]: `${namespace}/${name}` }
  if (kind === 'namespace') return { [`${prefix}namespace`]: namespace }
  return { [`${prefix}ip`]: ip }
}
