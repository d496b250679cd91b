/** The part of a profile that GET /workloads shows of it (docs/contract.md#workload-profiles). Keys are sorted. */
import { z } from 'zod'
import { CORE_DIMENSIONS, count, SEVERITIES, status } from '../record/common.ts'
import { DRIFT_TYPES } from '../record/drift.ts'
import { VERDICTS } from '../record/images.ts'
import { LEVELS } from '../record/pod-security.ts'
import { Posture, type Profile } from '../record/profile.ts'

const judged = z.strictObject({ status })

export const SummaryDimensions = z.strictObject({
  compute: judged,
  images: z.strictObject({
    mixedDigests: z.boolean().nullable().describe('Whether a container runs more than one digest.'),
    runningDigests: count.nullable().describe('Distinct ones. Null, like the keys beside it, without an inventory.'),
    signature: z
      .enum([...VERDICTS, 'not_configured'])
      .nullable()
      .describe('The worst verdict of the running images.'),
    status,
  }),
  network: judged,
  podSecurity: z.strictObject({
    level: z.enum(LEVELS).nullable().describe('Null without a current container.'),
    levelConfidence: z.enum(['confirmed', 'upper_bound']).nullable(),
    status,
  }),
  syscalls: judged,
})

export const SummaryDrift = z.strictObject({
  byType: z.partialRecord(z.enum(DRIFT_TYPES), z.int().min(1)).describe('Only types that occur.'),
  count,
})

export const FindingCounts = z.strictObject({ critical: count, high: count, info: count, low: count, medium: count })

export const SummaryPosture = z.strictObject({
  coverage: Posture.shape.coverage,
  status,
  unknownDimensions: Posture.shape.unknownDimensions,
})

export interface ProfileSummary {
  readonly dimensions: z.output<typeof SummaryDimensions>
  readonly drift: z.output<typeof SummaryDrift>
  readonly findingCounts: z.output<typeof FindingCounts>
  readonly posture: z.output<typeof SummaryPosture>
}

export function summaryOf({ posture, dimensions, drift, findings }: Profile): ProfileSummary {
  const { compute, network, podSecurity, syscalls } = dimensions
  const { status, coverage, unknownDimensions } = posture
  const counts = SEVERITIES.map((one) => [one, findings.filter(({ severity }) => severity === one).length])
  return {
    dimensions: {
      compute: { status: compute.status },
      images: imagesOf(dimensions.images),
      network: { status: network.status },
      podSecurity: {
        level: podSecurity.level,
        levelConfidence: podSecurity.levelConfidence,
        status: podSecurity.status,
      },
      syscalls: { status: syscalls.status },
    },
    drift: driftOf(drift),
    findingCounts: Object.fromEntries(counts),
    posture: { coverage, status, unknownDimensions },
  }
}

function imagesOf({ containers, status, supplyChain }: Profile['dimensions']['images']) {
  if (containers.length === 0) return { mixedDigests: null, runningDigests: null, signature: null, status }
  const running = new Set(containers.flatMap((one) => one.running.map(({ digest }) => digest)))
  return {
    mixedDigests: containers.some(({ mixedDigests }) => mixedDigests),
    runningDigests: running.size,
    signature: supplyChain?.verdict ?? null,
    status,
  }
}

function driftOf({ items }: Profile['drift']) {
  const counts = DRIFT_TYPES.map((type) => [type, items.filter((item) => item.type === type).length] as const)
  return { byType: Object.fromEntries(counts.filter(([, count]) => count > 0)), count: items.length }
}

/** The list shows this of a workload that has no profile yet: unknown, never safe. */
export const NO_SUMMARY = {
  dimensions: {
    compute: { status: 'unknown' },
    images: { mixedDigests: null, runningDigests: null, signature: null, status: 'unknown' },
    network: { status: 'unknown' },
    podSecurity: { level: null, levelConfidence: null, status: 'unknown' },
    syscalls: { status: 'unknown' },
  },
  posture: { coverage: 0, status: 'unknown', unknownDimensions: CORE_DIMENSIONS },
} as const
