/** Words and tones for findings: use, tier, exploitation, decisions; and for the results of signature checks. */
import type { JsonAnswer } from '../api/answers.ts'
import type { Tone } from './tone.ts'

type Finding = JsonAnswer<'/images/{digest}/vulnerabilities'>['items'][number]
export type UseState = Finding['inUseState']
export type Tier = Finding['tier']
export type Decision = NonNullable<Finding['decision']>['decision']

export interface Word {
  readonly word: string
  readonly tone: Tone
  readonly meaning: string
}

export const USES: Readonly<Record<UseState, Word>> = {
  executed: { word: 'executed', tone: 'bad', meaning: 'A container executed a file of the package.' },
  loaded: {
    word: 'loaded',
    tone: 'warn',
    meaning: 'A container loaded a file of the package; none was seen to execute one.',
  },
  unknown: { word: 'not known', tone: 'plain', meaning: 'Whether a container uses the package is not known.' },
  installed_not_observed: {
    word: 'not seen in use',
    tone: 'good',
    meaning: 'All containers were watched for the whole window, and none used a file of the package.',
  },
}

export const TIERS: Readonly<Record<Tier, Word>> = {
  P0: { word: 'P0', tone: 'bad', meaning: 'Exploited or likely to be, and exposed, or not known to be unexposed.' },
  P1: { word: 'P1', tone: 'warn', meaning: 'Exploited or likely to be, or critical or high.' },
  P2: { word: 'P2', tone: 'info', meaning: 'Of lower severity, or high without a fix and not exposed.' },
  Background: { word: 'Background', tone: 'plain', meaning: 'No container was seen to use the package.' },
}

const FACTORS: Readonly<Record<string, string>> = {
  kev: 'known to be exploited',
  exposed: 'reached from other namespaces or unknown peers',
  'exposed:node_only': 'reached only by nodes and its own namespace',
  internal: 'reached only from its own namespace, as far as seen',
  'exposure:unknown': 'exposure not known, which counts as exposed unless the broker is set otherwise',
  no_fix: 'no fixed version is known',
}

/** A factor of a tier, in words. */
export function factorText(factor: string): string {
  const [name = '', value = ''] = factor.split(':')
  if (name === 'in_use') return `package ${USES[value as UseState]?.word ?? value}`
  if (name === 'severity') return `severity ${value.toLowerCase()}`
  if (factor.startsWith('epss>=')) return `EPSS of ${factor.slice('epss>='.length)} or more`
  return FACTORS[factor] ?? factor
}

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 2 })

/** A share as a percentage of two digits. */
export const percentText = (share: number): string => percent.format(share)

export const DECISIONS: Readonly<Record<Decision, { readonly word: string; readonly tone: Tone }>> = {
  accepted: { word: 'accepted', tone: 'info' },
  not_affected: { word: 'not affected', tone: 'good' },
  will_not_fix: { word: 'will not fix', tone: 'info' },
  fixed: { word: 'fixed', tone: 'good' },
  affected: { word: 'affected', tone: 'bad' },
  under_investigation: { word: 'under investigation', tone: 'warn' },
}

const VERDICTS: Readonly<Record<string, Word>> = {
  verified: { word: 'verified', tone: 'good', meaning: 'A signature verified. Valid is not trusted: see its signer.' },
  key_signed: {
    word: 'unknown key',
    tone: 'warn',
    meaning: 'Signed with a public key that the checker was not given.',
  },
  unsigned: { word: 'unsigned', tone: 'warn', meaning: 'No signature was found, and every look-up answered.' },
  invalid: { word: 'invalid', tone: 'bad', meaning: 'Signatures exist, and none verified.' },
  unknown: { word: 'could not be checked', tone: 'plain', meaning: 'It could not be checked, which is not unsigned.' },
  not_configured: { word: 'not looked for', tone: 'plain', meaning: 'The check for signatures is off.' },
}

/** The result of a signature check; null if the image was not checked or no result is kept. */
export const verdictWord = (verdict: string | null): Word =>
  VERDICTS[verdict ?? ''] ?? {
    word: verdict ?? 'not checked',
    tone: 'plain',
    meaning: 'No result of a check is kept, which is not unsigned.',
  }
