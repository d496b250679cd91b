/** Which rows of the inventory are judged (docs/contract.md#workload-profiles). */
import { byContainer } from '../../images/by-container.ts'
import type { InventoryRow } from '../inventory.ts'
import { compareTimes } from '../times.ts'

/** A current container with the row that speaks for it. */
export interface Selected {
  readonly row: InventoryRow
  /** `last_known` where no row of it runs, such as an init container that has ended. */
  readonly source: 'running' | 'last_known'
}

interface Selection {
  readonly judged: readonly Selected[]
  /** The newest row of each container that is no longer reported. */
  readonly stale: readonly InventoryRow[]
}

/** Takes of each container its newest running row, else its newest current one. Both lists are by name. */
export function select(rows: readonly InventoryRow[]): Selection {
  const judged: Selected[] = []
  const stale: InventoryRow[] = []
  const containers = [...byContainer(rows)].sort(([one], [other]) => (one < other ? -1 : 1))
  for (const [, ofContainer] of containers) {
    const running = newest(ofContainer.filter(({ isRunning }) => isRunning))
    const current = running ?? newest(ofContainer.filter(({ isCurrent }) => isCurrent))
    if (current) judged.push({ row: current, source: running ? 'running' : 'last_known' })
    else stale.push(newest(ofContainer)!)
  }
  return { judged, stale }
}

/** The row seen last; of those seen at the same time the one with the first digest. */
export const newest = (rows: readonly InventoryRow[]): InventoryRow | undefined =>
  rows.reduce<InventoryRow | undefined>((best, row) => (best && !isNewer(row, best) ? best : row), undefined)

function isNewer(row: InventoryRow, best: InventoryRow): boolean {
  const order = compareTimes(row.lastSeen, best.lastSeen)
  return order > 0 || (order === 0 && row.digest < best.digest)
}
