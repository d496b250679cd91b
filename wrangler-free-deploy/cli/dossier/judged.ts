/** The questions that a pipeline asks of a workload. */
import { counted } from '../output/lines.ts'
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

function p0(profile: Profile): Judgement {
  const found = profile.dimensions.images.vulnerabilities
  const running = runningDigests(profile).size
  if (found !== null && found.tiers.P0 > 0) return { answer: true, why: `${found.tiers.P0} of tier P0` }
  const scanned = found?.scannedDigests ?? 0
  if (found !== null && scanned >= running) return { answer: false, why: '' }
  return { answer: null, why: `${scanned} of ${counted(running, 'running digest')} scanned` }
}

function drift({ drift: { items, notEvaluated } }: Profile): Judgement {
  if (items.length > 0) return { answer: true, why: [...new Set(items.map(({ type }) => type))].join(', ') }
  const missing = notEvaluated.map(({ type, reason }) => `${type} (${reason})`)
  return { answer: missing.length > 0 ? null : false, why: missing.join(', ') }
}
