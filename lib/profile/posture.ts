/** The posture of a workload from its dimensions (docs/contract.md#workload-profiles). */
import { CORE_DIMENSIONS, type CoreDimension, type Finding, SEVERITIES, type Status } from './record/common.ts'
import type { Posture, Profile } from './record/profile.ts'

export type Dimensions = Profile['dimensions']

/** Findings in the order of answers: the most severe first, then by id. */
export const inOrder = (findings: readonly Finding[]): Finding[] =>
  [...findings].sort(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || (a.id < b.id ? -1 : a.id === b.id ? 0 : 1),
  )

export const isMediumOrWorse = ({ severity }: Finding): boolean =>
  SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf('medium')

/** `findings` in the order of answers. */
export function postureOf(dimensions: Dimensions, findings: readonly Finding[]): Posture {
  const statuses = CORE_DIMENSIONS.map((name) => dimensions[name].status)
  const unknownDimensions = CORE_DIMENSIONS.filter((name) => dimensions[name].status === 'unknown')
  const known = CORE_DIMENSIONS.length - unknownDimensions.length
  return {
    status: worst(statuses),
    coverage: known / CORE_DIMENSIONS.length,
    unknownDimensions,
    reasons: CORE_DIMENSIONS.filter((name) => dimensions[name].status !== 'ok').map((name) => ({
      dimension: name,
      status: dimensions[name].status,
      message: messageOf(name, dimensions, findings),
    })),
  }
}

/** The worst known status, but never ok while something is unknown. */
function worst(statuses: readonly Status[]): Status {
  return (['risk', 'warn', 'unknown', 'ok'] as const).find((status) => statuses.includes(status))!
}

function messageOf(name: CoreDimension, dimensions: Dimensions, findings: readonly Finding[]): string {
  const { status, reasons } = dimensions[name]
  const reason = reasons[0]?.message ?? ''
  if (name === 'podSecurity' || status === 'unknown') return reason
  return findings.find((one) => one.dimension === name && isMediumOrWorse(one))?.title ?? reason
}
