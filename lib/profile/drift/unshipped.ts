/** Files that a container ran although its image did not ship them. */

import { byContainer } from '../../images/by-container.ts'
import { UNSHIPPED_ORIGINS } from '../../runtime/reads/record.ts'
import { truncateToBytes } from '../../text/utf8.ts'
import { runningPairs } from '../images/containers.ts'
import type { InventoryRow } from '../inventory.ts'
import { type Checked, checked, found, type NotEvaluated, notEvaluated } from './checked.ts'
import type { DriftFacts, UnshippedFiles } from './facts.ts'

const TYPE = 'unshippedExecutable'
/** Containers with their digests that are checked for coverage. */
export const MAX_PAIRS = 32
/** Of the path in the text of a finding. */
const MAX_PATH_BYTES = 256

const WORDS: Readonly<Record<(typeof UNSHIPPED_ORIGINS)[number], string>> = {
  deleted: 'deleted while it ran',
  writableLayer: 'written after the container started',
  memfd: 'never on disk',
}

/**
 * Each file that was seen is drift, whatever the coverage. Only where a container was watched for the whole window
 * does the absence of such files mean something.
 */
export function unshipped(rows: readonly InventoryRow[], facts: DriftFacts, isTruncated: boolean): Checked {
  const running = runningPairs(rows)
  if (running.length === 0) return notEvaluated(TYPE, 'no_running_containers')
  const files = new Map(facts.unshipped.map((one) => [one.container, one]))
  const containers = [...byContainer(running)]
  const judged = new Set(running.slice(0, MAX_PAIRS))
  const missing = containers.flatMap(([container, own]): NotEvaluated[] => {
    const reason =
      gapOf(
        own.filter((row) => judged.has(row)),
        facts,
      ) ?? (own.every((row) => judged.has(row)) ? null : 'truncated')
    return reason === null ? [] : [{ type: TYPE, container, reason }]
  })
  const cut: NotEvaluated[] = isTruncated ? [{ type: TYPE, container: null, reason: 'truncated' }] : []
  return checked(
    containers.flatMap(([container]) => {
      const own = files.get(container)
      return own ? [foundFiles(own)] : []
    }),
    [...missing, ...cut],
  )
}

/** Why the absence of files says nothing, by the first digest of a container that was not watched; null if all were. */
function gapOf(rows: readonly InventoryRow[], { isWatched, coverage }: DriftFacts): string | null {
  if (!isWatched) return 'no_inventory'
  for (const { container, digest } of rows) {
    const watched = coverage.find((one) => one.container === container && one.digest === digest)
    if (!watched) return 'no_runtime_data'
    if (watched.reason !== null) return watched.reason
  }
  return null
}

function foundFiles({ container, files, total, origins: seen }: UnshippedFiles) {
  const origins = UNSHIPPED_ORIGINS.filter((origin) => seen.includes(origin))
  const isOnlyDeleted = origins.every((origin) => origin === 'deleted')
  const where = origins.map((origin) => WORDS[origin]).join(', ')
  const title = `Container ${container} ran files that its image did not ship`
  const last = truncateToBytes(files[0]!.path, MAX_PATH_BYTES)
  const detail = `${total} ${total === 1 ? 'file' : 'files'} (${where}), the last one ${last}.`
  const shown = { origins, files: [...files], filesTotal: total, truncated: total > files.length }
  return found(TYPE, isOnlyDeleted ? 'medium' : 'high', container, { title, detail }, shown)
}
