/** The questions that a pipeline asks of a workload. */
import { type Profile, runningDigests } from './profile.ts'

export const FAIL_ON = ['risk', 'p0', 'drift'] as const

export interface Judgement {
  /** Null where nobody knows. */
  readonly answer: boolean | null
  readonly why: string
}

export function judged(profile: Profile, question: (typeof FAIL_ON)[number]): Judgement {
  return { risk, p0, drift }[question](profile)
}

function risk({ posture: { status, unknownDimensions } }: Profile): Judgement {
  if (status === 'risk') return { answer: true, why: 'the posture is risk' }
  return { answer: unknownDimensions.length > 0 ? null : false, why: unknownDimensions.join(', ') }
}

/** Counts are those of all running images, or none: then the urgent vulnerabilities of some of them are a finding. */
function p0(profile: Profile): Judgement {
  const { reasons, vulnerabilities: found } = profile.dimensions.images
  if (found !== null && found.tiers.P0 > 0) return { answer: true, why: `${found.tiers.P0} of tier P0` }
  if (found !== null && found.scannedDigests >= runningDigests(profile).size) return { answer: false, why: '' }
  const urgent = profile.findings.filter(({ id }) => id === 'images.vulnerabilities.critical')
  const texts = [...reasons.slice(0, 1).map(({ message }) => message), ...urgent.map(({ title }) => title)]
  return { answer: null, why: texts.join('; ') }
}

function drift({ drift: { items, notEvaluated } }: Profile): Judgement {
  if (items.length > 0) return { answer: true, why: [...new Set(items.map(({ type }) => type))].join(', ') }
  const missing = notEvaluated.map(({ type, reason }) => `${type} (${reason})`)
  return { answer: missing.length > 0 ? null : false, why: missing.join(', ') }
}
