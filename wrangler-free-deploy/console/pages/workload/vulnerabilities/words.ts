/** Words for findings: their use, their urgency, and the decisions about them. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { DECISIONS } from '../../../parts/finding-words.ts'
import { counted } from '../../../parts/plural.ts'
import { reasonText } from '../../../parts/reason-words.ts'

export type Finding = JsonAnswer<'/images/{digest}/vulnerabilities'>['items'][number]

/** The reason for the state of use. `windowHours` is how long a container must be watched for a verdict. */
export function useReason({ state, reason, containers, windowHours }: Finding['inUseDetail']): string {
  const judged = `${counted(containers, 'container')} judged`
  switch (state) {
    case 'executed':
      return `a container executed a file of the package (${judged})`
    case 'loaded':
      return `a container loaded a file of the package, and none executed one (${judged})`
    case 'installed_not_observed':
      return `all containers were watched for ${windowHours} hours or more, and none used a file of it (${judged})`
    case 'unknown':
      return reason === null ? 'it is not known why' : reasonText(reason)
  }
}

/** A short form; the reason for an unknown state is not shortened. */
export function useShort(detail: Finding['inUseDetail']): string {
  switch (detail.state) {
    case 'executed':
    case 'loaded':
      return `by a container of ${detail.containers}`
    case 'installed_not_observed':
      return `watched for ${detail.windowHours} h or more`
    case 'unknown':
      return useReason(detail)
  }
}

const STATUSES: Readonly<Record<NonNullable<Finding['status']>, string>> = {
  affected: 'no fix announced',
  will_not_fix: 'will not be fixed',
  end_of_life: 'end of life',
  fix_deferred: 'fix deferred',
  under_investigation: 'under investigation',
  unknown: 'unknown',
  fixed: 'fixed in a newer version',
  not_affected: 'not affected',
}

export const statusText = (status: Finding['status']): string => (status === null ? 'not stated' : STATUSES[status])

type Decision = NonNullable<Finding['decision']>

export function scopeText(scope: Decision['scope']): string {
  switch (scope.type) {
    case 'workload':
      return `in ${scope.namespace}/${scope.kind}/${scope.name}`
    case 'image':
      return 'in this image'
    case 'repository':
      return `in images of ${scope.repository}`
    case 'namespace':
      return `in the namespace ${scope.namespace}`
    case 'all':
      return 'everywhere'
  }
}

export const decisionText = ({ decision, justification }: Pick<Decision, 'decision' | 'justification'>): string =>
  [DECISIONS[decision].word, justification?.replaceAll('_', ' ')].filter(Boolean).join(': ')

/** With these decisions work is left; all others settle a finding. */
const UNSETTLED: ReadonlySet<Decision['decision']> = new Set(['affected', 'under_investigation'])

/** A decision may settle the finding in some of the workloads only, which must not look settled. */
export const isPartial = ({ decision, decided }: Pick<Finding, 'decision' | 'decided'>): boolean =>
  decision !== null && !decided && !UNSETTLED.has(decision.decision)

export function decisionShort(finding: Pick<Finding, 'decision' | 'decided'>): string {
  const word = finding.decision === null ? '' : DECISIONS[finding.decision.decision].word
  return isPartial(finding) ? `${word}, not in all workloads` : word
}

/** Identifies a finding in the address: one vulnerability may be in several packages. */
export const findingKey = ({ id, package: { name }, installedVersion }: Finding): string =>
  `${id} ${name} ${installedVersion}`

/** The most likely field for a word without one. */
export function fieldOfWord(word: string): string {
  if (/^P[0-2]$|^background$/i.test(word)) return 'tier'
  if (/^(CVE|GHSA|RHSA|DSA|ELSA|GO|PYSEC|RUSTSEC)-/i.test(word)) return 'vuln_id'
  return /^(critical|high|medium|low)$/i.test(word) ? 'severity' : 'package'
}
