import type { Config } from '../../config.ts'

/** The configured thresholds of findings (docs/contract.md#findings). */
export interface Thresholds {
  /** Percent of CPU pressure of a container that is stalled. */
  readonly stallSome: number
  readonly runqP99Ms: number
  /** Events a minute below which a p99 says nothing. */
  readonly minRunqEvents: number
  readonly throttledRatio: number
  /** Beyond it nobody else is to blame. */
  readonly throttledRatioMax: number
  /** Of what a container waited: the share that names a culprit. */
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
