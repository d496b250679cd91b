/** The fields of the filter bar of findings. */
import type { FilterField } from '../../../parts/filter-bar.tsx'

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
