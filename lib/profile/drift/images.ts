/** Drift of images: a tag that has moved, and images that the last export did not have. */

import { byContainer } from '../../images/by-container.ts'
import { isStale, runningPairs } from '../images/containers.ts'
import type { InventoryRow } from '../inventory.ts'
import { latest } from '../times.ts'
import { type Checked, checked, found, notEvaluated } from './checked.ts'
import type { DriftFacts } from './facts.ts'

const NO_INVENTORY = 'no_image_inventory'

const current = (rows: readonly InventoryRow[]) => [...byContainer(rows)].filter(([, own]) => !isStale(own))

/**
 * Looks for references without a digest that stood for several images of a container. An older image counts until the
 * inventory forgets it.
 */
export function tagMoved(rows: readonly InventoryRow[]): Checked {
  const containers = current(rows)
  if (containers.length === 0) return notEvaluated('tagMoved', NO_INVENTORY)
  return checked(
    containers.flatMap(([name, own]) =>
      movedReferences(own).map(([imageRef, those]) => {
        const digests = distinct(those.map(({ digest }) => digest))
        const since = latest(those.map(({ firstSeen }) => firstSeen))!
        const title = `The tag of the image of container ${name} has moved`
        const detail = `${imageRef} has stood for ${digests.length} images, the newest since ${since}.`
        return found('tagMoved', 'medium', name, { title, detail }, { imageRef, digests, since })
      }),
    ),
  )
}

/** The references of a container with more than one digest, each with its rows. */
function movedReferences(rows: readonly InventoryRow[]): [string, InventoryRow[]][] {
  const byReference = new Map<string, InventoryRow[]>()
  for (const row of rows.filter(({ imageRef }) => !imageRef.includes('@')))
    byReference.set(row.imageRef, [...(byReference.get(row.imageRef) ?? []), row])
  return [...byReference].filter(([, those]) => distinct(those.map(({ digest }) => digest)).length > 1)
}

/** Looks for running images that the last export does not have, also in containers that are new since. */
export function imageChanged(rows: readonly InventoryRow[], exported: DriftFacts['export']): Checked {
  if (exported === null) return notEvaluated('imageChangedSinceExport', 'no_export')
  const containers = current(rows)
  if (containers.length === 0) return notEvaluated('imageChangedSinceExport', NO_INVENTORY)
  const known = new Map(Object.entries(exported.images.containers))
  return checked(
    containers.flatMap(([name, own]) => {
      const exportedDigests = [...(known.get(name) ?? [])]
      const newDigests = distinct(runningPairs(own).map(({ digest }) => digest)).filter(
        (digest) => !exportedDigests.includes(digest),
      )
      if (newDigests.length === 0) return []
      const containerInExport = known.has(name)
      const texts = {
        title: containerInExport
          ? `Container ${name} runs an image that was not exported`
          : `Container ${name} is new since the export`,
        detail:
          `${newDigests.join(', ')} ${newDigests.length === 1 ? 'is' : 'are'} not in the export of ` +
          `${exported.exportedAt}.`,
      }
      const detail = { containerInExport, exportedDigests, newDigests }
      return [found('imageChangedSinceExport', 'medium', name, texts, detail)]
    }),
  )
}

const distinct = (texts: readonly string[]) => [...new Set(texts)].sort()
