/** Filters of findings, as the route takes them. */
import type { paths } from '../../../api/schema.d.ts'

type FindingQuery = NonNullable<paths['/images/{digest}/vulnerabilities']['get']['parameters']['query']>

const LISTS = ['tier', 'severity', 'in_use'] as const
const TEXTS = ['vuln_id', 'package', 'source'] as const
const FLAGS = ['fixable', 'kev'] as const

/** The address repeats a parameter; the route takes a list separated by commas. */
export function findingFilter(query: URLSearchParams): FindingQuery {
  const filter: FindingQuery = {}
  for (const name of LISTS) {
    const values = query.getAll(name).filter((value) => value !== '')
    if (values.length > 0) filter[name] = values.join(',')
  }
  for (const name of TEXTS) {
    const value = query.get(name)
    if (value) filter[name] = value
  }
  for (const name of FLAGS) {
    const value = query.get(name)
    if (value === 'true' || value === 'false') filter[name] = value === 'true'
  }
  const least = query.get('epss_min')
  if (least) filter.epss_min = Number(least)
  return filter
}

export function fieldOfWord(word: string): string {
  if (/^P[0-2]$|^background$/i.test(word)) return 'tier'
  if (/^(CVE|GHSA|RHSA|DSA|ELSA|GO|PYSEC|RUSTSEC)-/i.test(word)) return 'vuln_id'
  return /^(critical|high|medium|low)$/i.test(word) ? 'severity' : 'package'
}

export function ctbFlags(filter: FindingQuery): readonly string[] {
  return Object.entries(filter).flatMap(([name, value]) => [`--${name.replaceAll('_', '-')}`, String(value)])
}
