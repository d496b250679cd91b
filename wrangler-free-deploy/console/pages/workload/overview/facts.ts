/**
 * The dimensions of a profile as cards: a state, its facts, and the reasons for a state that is not good or not known.
 */
import { bytesText } from '../../../parts/bytes.ts'
import { verdictWord } from '../../../parts/finding-words.ts'
import { counted } from '../../../parts/plural.ts'
import type { Tone } from '../../../parts/tone.ts'
import type { TabName } from '../name.ts'
import { DIMENSIONS, driftText, notEvaluatedText, type Profile, STATUS_TONES } from '../words.ts'

const MILLIS_PER_CORE = 1_000

export interface Card {
  readonly name: keyof typeof DIMENSIONS
  readonly title: string
  readonly state: string
  readonly tone: Tone
  readonly facts: readonly string[]
  /** The reasons for the state, in the broker's words. */
  readonly reasons: readonly string[]
  /** A limit of the facts; null if there is none. */
  readonly limit: string | null
  readonly tab: TabName
}

type Dimensions = Profile['dimensions']

export function cardsOf(profile: Profile): readonly Card[] {
  const { network, syscalls, podSecurity, images, compute } = profile.dimensions
  return [
    card('network', network, networkFacts(network), 'flows'),
    card('syscalls', syscalls, syscallFacts(syscalls), 'seccomp'),
    card('podSecurity', podSecurity, podSecurityFacts(podSecurity), ''),
    card('images', images, imageFacts(images), 'vulnerabilities'),
    card('compute', compute, computeFacts(compute), 'compute'),
    driftCard(profile.drift),
  ]
}

function card(
  name: keyof Dimensions,
  { status, reasons, coverage }: Dimensions[keyof Dimensions],
  facts: readonly (string | null)[],
  tab: TabName,
): Card {
  return {
    name,
    title: DIMENSIONS[name],
    state: status,
    tone: STATUS_TONES[status],
    facts: facts.filter((fact) => fact !== null),
    reasons: reasons.map(({ message }) => message),
    limit: coverage.level === 'full' ? null : coverage.note || null,
    tab,
  }
}

type Side = Dimensions['network']['summary']['ingress']

function networkFacts({ coverage, summary, truncated, policy: { audit } }: Dimensions['network']) {
  if (coverage.level === 'none') return []
  const side = (word: string, { peers, external }: Side) =>
    `${word} ${counted(peers, 'peer')}${external > 0 ? `, ${external} outside of the cluster` : ''}`
  const listed = truncated ? ' (of those listed)' : ''
  return [
    `${side('reached by', summary.ingress)}${listed}`,
    `${side('reaches', summary.egress)}${listed}`,
    audit === null
      ? null
      : `audited policies would deny ${audit.wouldDeny} of ${audit.allow + audit.wouldDeny} connections of 24 hours`,
  ]
}

function syscallFacts({ observed, capture, cr, denials }: Dimensions['syscalls']) {
  return [
    observed && `${counted(observed.syscallCount, 'syscall')} observed`,
    capture &&
      `capture level ${capture.level}${
        capture.complete ? '' : `, not complete in ${counted(capture.incompletePods, 'pod')}`
      }`,
    cr && `resource ${cr.name}: ${cr.mode}, ${crText(cr)}`,
    denials && (denials.total === 0 ? 'the kernel denied nothing' : `the kernel denied or logged ${denials.total}`),
  ]
}

function crText({ inSync, missing, distribution }: NonNullable<Dimensions['syscalls']['cr']>): string {
  const drift = inSync ? 'allows all that was observed' : `lacks ${counted(missing.length, 'observed syscall')}`
  return `${drift}, on ${distribution.ready} of ${distribution.total} nodes`
}

function podSecurityFacts({ level, levelConfidence, unevaluatedChecks }: Dimensions['podSecurity']) {
  return [
    level && `level ${level}${levelConfidence === 'upper_bound' ? ' at best' : ''}`,
    unevaluatedChecks.length === 0 ? null : `${counted(unevaluatedChecks.length, 'check')} cannot be made`,
  ]
}

const TIERS = ['P0', 'P1', 'P2', 'Background'] as const

function imageFacts({ containers, vulnerabilities, supplyChain }: Dimensions['images']) {
  const digests = new Set(containers.flatMap(({ running }) => running.map(({ digest }) => digest)))
  return [
    `${counted(containers.length, 'container')}, ${counted(digests.size, 'running image')}`,
    vulnerabilities === null
      ? 'vulnerabilities are not known: no report answers for a running image'
      : `vulnerabilities: ${TIERS.map((tier) => `${tier} ${vulnerabilities.tiers[tier]}`).join(', ')}`,
    vulnerabilities && `${vulnerabilities.inUse} in use, ${vulnerabilities.fixable} with a fix`,
    supplyChain && `signatures: ${verdictWord(supplyChain.verdict).word}`,
  ]
}

function computeFacts({ containers, truncated }: Dimensions['compute']) {
  if (containers.length === 0) return []
  const sum = (values: readonly (number | null)[]) => values.reduce((total: number, value) => total + (value ?? 0), 0)
  const cpu = sum(containers.map(({ cpuUsageMillis }) => cpuUsageMillis))
  const memory = sum(containers.map(({ memWorkingSetBytes }) => memWorkingSetBytes))
  const kills = sum(containers.map(({ oomKills }) => oomKills))
  const throttled = containers.filter(({ throttledRatio }) => throttledRatio !== null && throttledRatio > 0).length
  return [
    `${counted(containers.length, 'container')} sampled${truncated ? ', more are there' : ''}`,
    `${(cpu / MILLIS_PER_CORE).toFixed(2)} cores and ${bytesText(memory)} together`,
    throttled > 0 ? `${counted(throttled, 'container')} throttled in the last sample` : null,
    kills > 0 ? `memory ran out ${counted(kills, 'time')}` : null,
  ]
}

/** The absence of drift is good only if every check was evaluated. */
function driftCard({ items, notEvaluated }: Profile['drift']): Card {
  const state = items.length > 0 ? 'drifted' : notEvaluated.length > 0 ? 'unknown' : 'none'
  return {
    name: 'drift',
    title: DIMENSIONS.drift,
    state,
    tone: state === 'drifted' ? 'warn' : state === 'none' ? 'good' : 'plain',
    facts: items.map(
      ({ type, container, severity }) => `${driftText(type)}, in ${container ?? 'the pod'} (${severity})`,
    ),
    reasons: notEvaluated.map(({ type, container, reason }) =>
      [
        `Not evaluated: ${driftText(type).toLowerCase()}`,
        container === null ? '' : ` (${container})`,
        `, because ${notEvaluatedText(type, reason)}`,
      ].join(''),
    ),
    limit: null,
    tab: 'changes',
  }
}

/** The tab that shows the rows of a finding. */
export function tabOfFinding({ dimension, id }: Pick<Profile['findings'][number], 'dimension' | 'id'>): TabName {
  switch (dimension) {
    case 'network':
      return 'flows'
    case 'syscalls':
      return 'seccomp'
    case 'images':
      return id.includes('vulnerabilit') ? 'vulnerabilities' : 'trust'
    case 'compute':
      return 'compute'
    case 'drift':
      return id.includes('unshipped') ? 'runtime' : id.includes('tag') ? 'trust' : 'changes'
    case 'podSecurity':
      return ''
  }
}
