/** Hits by type, in the broker's ranking. */
import type { Hit } from '../../frame/hits.ts'

export const PLURALS: Readonly<Record<Hit['type'], string>> = {
  vulnerability: 'Vulnerabilities',
  package: 'Packages',
  image: 'Images',
  repository: 'Repositories',
  workload: 'Workloads',
  pod: 'Pods',
  service: 'Services',
  namespace: 'Namespaces',
  node: 'Nodes',
  address: 'Addresses',
}

export interface Group {
  readonly type: Hit['type']
  readonly hits: readonly Hit[]
}

/** Types ordered by their best hit. */
export function hitsByType(hits: readonly Hit[]): readonly Group[] {
  return [...new Set(hits.map(({ type }) => type))].map((type) => ({
    type,
    hits: hits.filter((hit) => hit.type === type),
  }))
}
