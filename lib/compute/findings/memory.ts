import type { Culprit, Finding } from './contract.ts'
import { culpritOf, refOf } from './culprit.ts'
import { CRITICAL_FULL10, findingOf, severityOf } from './finding.ts'
import { pressed, thrashing } from './message.ts'
import type { Minute, Neighbor, Usage, Victim } from './rows.ts'
import { greatest, spanOf, sustained, total } from './series.ts'
import type { Thresholds } from './thresholds.ts'

/** A node with at least this memory pressure, in percent, is short of memory. */
export const SHORT_SOME10 = 5
/** A culprit has at least this share of all memory that the node's containers use beyond their requests. */
const OVERAGE_SHARE = 0.4

const overBytes = ({ memoryBytes, memoryRequestBytes }: Usage) => Math.max(memoryBytes - (memoryRequestBytes ?? 0), 0)
const isGrown = (rows: readonly Usage[]) => rows.at(-1)!.memoryBytes > rows[0]!.memoryBytes

const isCritical = (rows: readonly Minute[]) =>
  total(rows, (row) => row.oomKills) > 0 || (greatest(rows, (row) => row.memoryFullMax) ?? 0) >= CRITICAL_FULL10

/**
 * Returns the memory finding of a container, null if it does not wait for memory or no cause is known
 * (docs/contract.md#compute).
 */
export function memoryFinding(victim: Victim, thresholds: Thresholds): Finding | null {
  const { rows, node } = victim
  const pressure = sustained(rows, (row) => row.memorySomeAvg >= thresholds.memStallSome)
  // A row covers a minute, so its counts are rates.
  const refaulting = sustained(rows, (row) => row.refaults >= thresholds.refaultPerMin)
  const span = spanOf(pressure, refaulting)
  if (span === null) return null
  const severity = severityOf(isCritical(rows), pressure, refaulting)
  const nodeMemorySome10 = node.memorySome10
  if (nodeMemorySome10 >= SHORT_SOME10)
    return findingOf(victim, { kind: 'memory-pressure', severity, span, nodeMemorySome10, ...heaviestNeighbor(victim) })

  const hits = sustained(rows, (row) => row.eventsHigh + row.eventsMax > 0)
  const limitBytes = rows.at(-1)!.memoryLimitBytes
  if (limitBytes === null || hits === null) return null
  const message = thrashing(
    limitBytes,
    total(rows, (row) => row.eventsHigh + row.eventsMax),
  )
  return findingOf(victim, {
    kind: 'memory-limit-thrash',
    severity,
    culprit: null,
    span: spanOf(span, hits)!,
    nodeMemorySome10,
    message,
  })
}

/**
 * Names the growing container that is furthest beyond its request, if it has enough of all memory beyond requests on
 * the node.
 */
function heaviestNeighbor({ container, node }: Victim): { culprit: Culprit | null; message: string } {
  const all = node.containers ?? []
  const sum = total(all, ({ rows }) => overBytes(rows.at(-1)!))
  let heaviest: { neighbor: Neighbor; bytes: number } | null = null
  for (const neighbor of all) {
    const bytes = overBytes(neighbor.rows.at(-1)!)
    if (neighbor.container.containerUid === container.containerUid || bytes === 0 || !isGrown(neighbor.rows)) continue
    if (
      heaviest === null ||
      bytes > heaviest.bytes ||
      (bytes === heaviest.bytes && isBefore(neighbor, heaviest.neighbor))
    )
      heaviest = { neighbor, bytes }
  }
  const share = heaviest === null ? 0 : heaviest.bytes / sum
  if (heaviest === null || share < OVERAGE_SHARE) return { culprit: null, message: pressed.byNobody }
  const ref = refOf(heaviest.neighbor.container)
  return { culprit: culpritOf(heaviest.neighbor, ref, share), message: pressed.byNeighbor(ref, share, heaviest.bytes) }
}

/** Equal amounts are ordered by uid, so that the result does not depend on the order of rows. */
const isBefore = (a: Neighbor, b: Neighbor) => a.container.containerUid < b.container.containerUid
