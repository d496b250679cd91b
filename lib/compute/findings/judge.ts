import type { Finding } from './contract.ts'
import { cpuFinding } from './cpu.ts'
import { memoryFinding } from './memory.ts'
import type { FindNeighbor, Victim } from './rows.ts'
import type { Thresholds } from './thresholds.ts'

/** Returns the findings of a container: at most one of CPU, then at most one of memory. */
export const judge = (victim: Victim, find: FindNeighbor, thresholds: Thresholds): Finding[] =>
  [cpuFinding(victim, find, thresholds), memoryFinding(victim, thresholds)].filter((one) => one !== null)
