import type { Config } from '../../config/index.ts'

/** The configured thresholds of findings (docs/contract.md#compute). */
export interface Thresholds {
  /** Percent of CPU pressure from which a container is stalled. */
  readonly stallSome: number
  readonly runqP99Ms: number
  /** With fewer events a minute the p99 is ignored. */
  readonly minRunqEvents: number
  readonly throttledRatio: number
  /** Above it, the container's own limit is the cause and no culprit is named. */
  readonly throttledRatioMax: number
  /** The share of a container's wait from which a culprit is named. */
  readonly blameShare: number
  readonly memStallSome: number
  readonly refaultPerMin: number
}

export const thresholdsOf = (config: Config): Thresholds => ({
  stallSome: config.computeStallSome,
  runqP99Ms: config.computeRunqP99Ms,
  minRunqEvents: config.computeMinRunqEvents,
  throttledRatio: config.computeThrottledRatio,
  throttledRatioMax: config.computeThrottledRatioMax,
  blameShare: config.computeBlameShare,
  memStallSome: config.computeMemStallSome,
  refaultPerMin: config.computeRefaultPerMin,
})
