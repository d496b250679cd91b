import type { Finding } from './contract.ts'
import { cpuFinding } from './cpu.ts'
import { memoryFinding } from './memory.ts'
import type { FindNeighbor, Victim } from './rows.ts'
import type { Thresholds } from './thresholds.ts'

/** What is found of a container: at most one of CPU and one of memory, in this order. */
export const judge = (victim: Victim, find: FindNeighbor, thresholds: Thresholds): Finding[] =>
  [cpuFinding(victim, find, thresholds), memoryFinding(victim, thresholds)].filter((one) => one !== null)
