/** The profile of a workload as rows: a part, its state, and the facts behind it. */
import { timeText } from '../output/cell.ts'
import { counted } from '../output/lines.ts'
import { mebiText, millisText } from '../output/units.ts'
import { type Dimension, type Profile, runningDigests, workloadName } from './profile.ts'

export interface PartRow {
  readonly part: string
  readonly state: string
  readonly detail: string
  readonly workload: string
}

type Part = Omit<PartRow, 'workload'>

const UNKNOWN = 'unknown'
const TIERS = ['P0', 'P1', 'P2', 'Background'] as const

export function rowsOfProfile(profile: Profile): readonly PartRow[] {
  const workload = workloadName(profile)
  const parts: readonly Part[] = [
    posture(profile),
    network(profile),
    syscalls(profile),
    podSecurity(profile),
    images(profile),
    vulnerabilities(profile),
    trust(profile),
    runtime(profile),
    compute(profile),
    ...capabilities(profile),
    ...controls(profile),
    ...readiness(profile),
    ...drift(profile),
    ...findings(profile),
  ]
  return parts.map((part) => ({ ...part, workload }))
}

/** Facts with their reasons, `a, b; because`. */
const detailOf = (facts: readonly (string | null)[], { reasons }: Pick<Dimension, 'reasons'> = { reasons: [] }) =>
  [facts.filter((fact) => fact !== null).join(', '), ...reasons.map(({ message }) => message)]
    .filter((text) => text !== '')
    .join('; ')

function posture({ posture: { status, unknownDimensions }, version, workload }: Profile): Part {
  const facts = [
    counted(workload.pods.live, 'live pod'),
    version === null ? 'no version stored' : `revision ${version.revision} of ${timeText(version.createdAt, true)}`,
    unknownDimensions.length === 0 ? null : `not known: ${unknownDimensions.join(', ')}`,
  ]
  return { part: 'posture', state: status, detail: detailOf(facts) }
}

function network({ dimensions: { network: one } }: Profile): Part {
  const { ingress, egress } = one.summary
  const side = (name: string, { peers, external }: typeof ingress) =>
    `${name} ${counted(peers, 'peer')}${external === 0 ? '' : ` (${external} external)`}`
  const facts = one.coverage.level === 'none' ? [] : [side('ingress', ingress), side('egress', egress)]
  return { part: 'network', state: one.status, detail: detailOf(facts, one) }
}

function syscalls({ dimensions: { syscalls: one } }: Profile): Part {
  const { observed, capture, cr, denials } = one
  const facts = [
    observed === null ? null : `${counted(observed.syscallCount, 'syscall')} observed`,
    capture === null ? null : `capture ${capture.level}${capture.complete ? '' : ' (not complete)'}`,
    cr === null ? null : `resource ${cr.name} (${cr.mode}, ${cr.missing.length} missing)`,
    denials === null ? null : `${denials.total} denied${namesOf(denials.syscalls)}`,
  ]
  return { part: 'syscalls', state: one.status, detail: detailOf(facts, one) }
}

const namesOf = (names: readonly string[]) => (names.length === 0 ? '' : ` (${names.join(', ')})`)

function podSecurity({ dimensions: { podSecurity: one } }: Profile): Part {
  const { level, levelConfidence, unevaluatedChecks } = one
  const facts = [
    level === null ? null : `level ${level}${levelConfidence === 'upper_bound' ? ' at best' : ''}`,
    unevaluatedChecks.length === 0 ? null : `${counted(unevaluatedChecks.length, 'check')} not possible`,
  ]
  return { part: 'pod security', state: one.status, detail: detailOf(facts, one) }
}

function images(profile: Profile): Part {
  const { images: one } = profile.dimensions
  const facts = [
    counted(one.containers.length, 'container'),
    `${counted(runningDigests(profile).size, 'running digest')}`,
  ]
  return { part: 'images', state: one.status, detail: detailOf(facts, one) }
}

function vulnerabilities({ dimensions: { images: one } }: Profile): Part {
  const part = 'vulnerabilities'
  const found = one.vulnerabilities
  if (found === null) return { part, state: UNKNOWN, detail: 'no report answers for a running image' }
  const worst = TIERS.find((tier) => found.tiers[tier] > 0)
  const facts = [
    ...TIERS.map((tier) => `${tier} ${found.tiers[tier]}`),
    `fixable ${found.fixable}`,
    `in use ${found.inUse}`,
    `${counted(found.scannedDigests, 'digest')} scanned, the oldest ${timeText(found.oldestScanAt, true)}`,
  ]
  return { part, state: worst ?? 'none', detail: detailOf(facts) }
}

function trust({ dimensions: { images: one } }: Profile): Part {
  const part = 'trust'
  const chain = one.supplyChain
  if (chain === null) return { part, state: UNKNOWN, detail: 'no image is known' }
  const { verdict, reason, container, imageTrust } = chain
  const policies = imageTrust?.available ? `policies would deny ${imageTrust.wouldDeny} of ${imageTrust.total}` : null
  return { part, state: verdict, detail: detailOf([container, reason, policies]) }
}

/** No file that an image did not ship is good news only where that was evaluated. */
function runtime({ drift: { items, evaluated, notEvaluated } }: Profile): Part {
  const part = 'runtime'
  const type = 'unshippedExecutable'
  const found = items.filter((item) => item.type === type)
  if (found.length > 0)
    return { part, state: 'unshipped', detail: `files that no image shipped ran in ${containersOf(found)}` }
  if (evaluated.includes(type)) return { part, state: 'ok', detail: 'only files that the images shipped ran' }
  const missing = notEvaluated.find((one) => one.type === type)
  return { part, state: UNKNOWN, detail: detailOf([missing?.container ?? null, missing?.reason ?? null]) }
}

const containersOf = (items: readonly { readonly container: string | null }[]): string =>
  items.map(({ container }) => container ?? 'the pod').join(', ')

function compute({ dimensions: { compute: one } }: Profile): Part {
  const facts = one.containers.map(({ pod, container, cpuUsageMillis: cpu, memWorkingSetBytes: memory }) =>
    [`${pod}/${container}`, cpu === null ? null : millisText(cpu), memory === null ? null : mebiText(memory)]
      .filter((text) => text !== null)
      .join(' '),
  )
  return { part: 'compute', state: one.status, detail: detailOf(facts, one) }
}

const capabilities = ({ capabilities: { containers } }: Profile): Part[] =>
  containers.map(({ container, evidence, reason, used, denied, recommendation }) => ({
    ...{ part: `capabilities ${container}`, state: evidence },
    detail: detailOf([
      `used ${listOf(used)}`,
      denied.length === 0 ? null : `denied ${listOf(denied)}`,
      recommendation === null ? reason : `recommended: drop ALL, add ${recommendation.add.join(' ') || 'none'}`,
    ]),
  }))

const listOf = (rows: readonly { readonly capability: string }[]): string =>
  rows.map(({ capability }) => capability).join(' ') || 'none'

const controls = ({ controls: rows }: Profile): Part[] =>
  rows.map(({ control, state, detail, inSync }) => ({
    ...{ part: `control ${control}`, state: state ?? UNKNOWN },
    detail: detailOf([detail, inSync === false ? 'not in sync' : null]),
  }))

const readiness = ({ readiness: rows }: Profile): Part[] =>
  rows.map(({ id, ok, message }) => ({
    ...{ part: `ready ${id}`, state: ok === null ? UNKNOWN : ok ? 'yes' : 'no' },
    detail: message,
  }))

const drift = ({ drift: { items } }: Profile): Part[] =>
  items.map(({ type, severity, container }) => ({
    ...{ part: `drift ${type}`, state: severity },
    detail: container ?? 'the pod',
  }))

const findings = ({ findings: rows }: Profile): Part[] =>
  rows.map(({ severity, title, detail }) => ({
    ...{ part: 'finding', state: severity },
    detail: detail === '' ? title : `${title}: ${detail}`,
  }))
