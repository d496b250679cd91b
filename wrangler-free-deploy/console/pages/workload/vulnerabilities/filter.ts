/** The filters of findings, as the route has them. */
import type { Params } from '../../../api/client.ts'
import type { FilterField } from '../../../parts/filter-bar.tsx'

type FindingQuery = NonNullable<Params<'/images/{digest}/vulnerabilities'>['query']>

export const FINDING_FIELDS: readonly FilterField[] = [
  { name: 'tier', meaning: 'how urgent', values: ['P0', 'P1', 'P2', 'Background'], isRepeated: true },
  {
    name: 'severity',
    meaning: 'as rated',
    values: ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'],
    isRepeated: true,
  },
  {
    name: 'in_use',
    meaning: 'whether a container used the package',
    values: ['executed', 'loaded', 'unknown', 'installed_not_observed'],
    isRepeated: true,
  },
  { name: 'fixable', meaning: 'whether a fix exists', values: ['true', 'false'] },
  { name: 'kev', meaning: 'whether it is known to be exploited', values: ['true', 'false'] },
  { name: 'epss_min', meaning: 'EPSS of at least, 0 to 1' },
  { name: 'vuln_id', meaning: 'an id or alias' },
  { name: 'package', meaning: 'the exact name of a package' },
  { name: 'source', meaning: 'a kind of scanner', values: ['operator-scanner', 'db-matcher', 'registry'] },
]

const LISTS = ['tier', 'severity', 'in_use'] as const
const TEXTS = ['vuln_id', 'package', 'source'] as const
const FLAGS = ['fixable', 'kev'] as const

/** The address repeats a parameter; the route wants a list with commas. */
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
