/** Filters of lists: fields that several routes share, and their values as query parameters. */
import { read } from '../api/client.ts'
import { usePlace } from '../place.ts'
import type { FilterField } from './filter-bar.tsx'
import { listFilter } from './filter-values.ts'

export { flagsOf } from './filter-values.ts'

const MAX_FOUND = 8

export const SEVERITY: FilterField = {
  name: 'severity',
  meaning: 'how severe scanners say it is',
  values: ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'],
  isRepeated: true,
}
export const TIER: FilterField = {
  name: 'tier',
  meaning: 'how urgent it is here',
  values: ['P0', 'P1', 'P2', 'Background'],
  isRepeated: true,
}
export const IN_USE: FilterField = {
  name: 'in_use',
  meaning: 'whether a container used a file of the package',
  values: ['executed', 'loaded', 'unknown', 'installed_not_observed'],
  isRepeated: true,
}
export const KEV: FilterField = { name: 'kev', meaning: 'known to be exploited', values: ['true', 'false'] }
export const FIXABLE: FilterField = { name: 'fixable', meaning: 'a fixed version is known', values: ['true', 'false'] }
export const EPSS_MIN: FilterField = {
  name: 'epss_min',
  meaning: 'probability of exploitation, at least',
  values: ['0.01', '0.1', '0.5', '0.9'],
}
export const VULN_ID: FilterField = { name: 'vuln_id', meaning: 'an id or alias, whole' }
export const PACKAGE: FilterField = { name: 'package', meaning: 'the exact name of a package' }
const hints = (field: 'namespace' | 'node') => async (prefix: string, signal: AbortSignal) =>
  (await read('/flows/hints', { query: { field, prefix } }, signal)).values

export const NAMESPACE: FilterField = { name: 'namespace', meaning: 'a namespace', complete: hints('namespace') }
export const NODE: FilterField = { name: 'node', meaning: 'a node', complete: hints('node') }
export const REPOSITORY: FilterField = {
  name: 'repository',
  meaning: 'the exact repository of an image',
  complete: async (prefix, signal) => {
    if (prefix.trim() === '') return []
    const { hits } = await read('/search', { query: { q: prefix, limit: MAX_FOUND } }, signal)
    return [...new Set(hits.flatMap((hit) => (hit.type === 'repository' ? [hit.repository] : [])))]
  },
}

/** The most likely field for a word without one, in lists of vulnerabilities. */
export function vulnerabilityFieldOf(word: string): string {
  const isOneOf = ({ values }: FilterField) => values?.some((one) => one.toLowerCase() === word.toLowerCase())
  if (/^(CVE|GHSA|DSA|DLA|USN|RHSA|ELSA|ALAS|GO|RUSTSEC|PYSEC)-/i.test(word)) return 'vuln_id'
  return [SEVERITY, TIER, IN_USE].find(isOneOf)?.name ?? 'package'
}

/** The filter of the address, for a list with these fields. */
export const useListFilter = (fields: readonly FilterField[]) => listFilter(usePlace().query, fields)
