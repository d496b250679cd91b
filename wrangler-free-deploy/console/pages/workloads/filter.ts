/** Filters of the list of workloads, and words for its rows. */
import type { JsonAnswer } from '../../api/answers.ts'
import type { paths } from '../../api/schema.d.ts'

type ListQuery = NonNullable<paths['/workloads']['get']['parameters']['query']>

/** The filters of the address that the route takes. */
export function listFilter(query: URLSearchParams): Omit<ListQuery, 'limit' | 'after'> {
  const search = query.get('search')
  const namespace = query.get('namespace')
  const kind = query.get('kind')
  const status = query.get('status')
  return {
    ...(search && { search }),
    ...(namespace && { namespace }),
    ...(kind && { kind }),
    // The route refuses other values, and its message lists the valid ones.
    ...(status && { status: status as NonNullable<ListQuery['status']> }),
    ...(query.get('include_gone') === 'true' && { include_gone: true }),
  }
}

export function ctbArguments({ search, namespace, kind, status, include_gone }: ListQuery): readonly string[] {
  return [
    'workloads',
    ...(namespace ? ['-n', namespace] : []),
    ...(kind ? ['--kind', kind] : []),
    ...(status ? ['--status', status] : []),
    ...(search ? ['--search', search] : []),
    ...(include_gone ? ['--include-gone', 'true'] : []),
  ]
}

const SHOWN_SEVERITIES = ['critical', 'high', 'medium'] as const

/** `1 critical, 2 high`, at most so many words; a question mark if the counts are not known. */
export function findingsText(
  counts: JsonAnswer<'/workloads'>['items'][number]['findingCounts'],
  most: number = SHOWN_SEVERITIES.length,
): string {
  if (counts === null) return '?'
  const found = SHOWN_SEVERITIES.filter((severity) => counts[severity] > 0).slice(0, most)
  return found.length === 0 ? 'none above low' : found.map((one) => `${counts[one]} ${one}`).join(', ')
}
