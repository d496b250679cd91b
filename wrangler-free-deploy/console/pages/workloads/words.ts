/** Words for the rows of the list of workloads. */
import type { JsonAnswer } from '../../api/answers.ts'

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
