import type { Gate } from '../../db/index.ts'
import { Slice } from '../../event-loop/slices.ts'
import type { Finding, Findings } from './contract.ts'
import { cpuFinding } from './cpu.ts'
import { memoryFinding } from './memory.ts'
import { load } from './read.ts'
import type { FindNeighbor, Victim } from './rows.ts'
import type { Scope } from './statement.ts'
import type { Thresholds } from './thresholds.ts'

/** Returns the findings of a container: at most one of CPU, then at most one of memory. */
export const findingsOfVictim = (victim: Victim, find: FindNeighbor, thresholds: Thresholds): Finding[] =>
  [cpuFinding(victim, find, thresholds), memoryFinding(victim, thresholds)].filter((one) => one !== null)

const asBody = (findings: readonly string[], tail: Omit<Findings, 'findings'>) =>
  `{"findings":[${findings}],${JSON.stringify(tail).slice(1)}`

/** The answer if no history is kept. */
export const WITHOUT_HISTORY = asBody([], { truncated: false, victims_evaluated: 0, history_disabled: true })

/**
 * Returns the findings of a scope as JSON (docs/contract.md#compute). Containers are evaluated in slices: each takes a
 * fraction of a millisecond.
 */
export async function findingsOf(gate: Gate, scope: Scope, thresholds: Thresholds): Promise<string> {
  const slice = new Slice()
  const { victims, isTruncated, victimOf, find } = await load(gate, scope, thresholds, slice)
  const findings: string[] = []
  for (const row of victims) {
    for (const finding of findingsOfVictim(victimOf(row), find, thresholds)) findings.push(JSON.stringify(finding))
    if (slice.isOver) await slice.next()
  }
  return asBody(findings, { truncated: isTruncated, victims_evaluated: victims.length, history_disabled: false })
}
