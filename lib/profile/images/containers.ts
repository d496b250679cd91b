/** The containers of a workload with the images that they run and ran, and their findings. */

import { byContainer } from '../../images/by-container.ts'
import { finding } from '../finding.ts'
import type { InventoryRow } from '../inventory.ts'
import type { Finding } from '../record/common.ts'
import type { ImageContainer } from '../record/images.ts'
import { compareTimes } from '../times.ts'

const PULL_FAILURES: readonly (string | null)[] = ['ImagePullBackOff', 'ErrImagePull']

/** The rows of containers that run their image now. */
export const runningPairs = (rows: readonly InventoryRow[]) => rows.filter(({ isRunning }) => isRunning)

/** A container of which no row is current is stale: it is no longer part of the workload. */
export const isStale = (rows: readonly InventoryRow[]): boolean => !rows.some(({ isCurrent }) => isCurrent)

/** The row of a container that was seen last. */
const newestOf = (rows: readonly InventoryRow[]): InventoryRow =>
  rows.reduce((newest, row) => (compareTimes(row.lastSeen, newest.lastSeen) > 0 ? row : newest))

/** The containers in the order of the inventory. */
export const imageContainers = (rows: readonly InventoryRow[]): ImageContainer[] =>
  [...byContainer(rows)].map(([name, own]) => ({
    name,
    kind: own[0]!.kind,
    mixedDigests: runningPairs(own).length > 1,
    stale: isStale(own),
    running: runningPairs(own).map(shown),
    previous: own.filter(({ isRunning }) => !isRunning).map(shown),
  }))

const shown = ({
  digest,
  imageRef,
  state,
  stateReason,
  ranAsInit,
  lastPodName,
  firstSeen,
  lastSeen,
}: InventoryRow) => ({
  ...{ digest, imageRef, state, stateReason, ranAsInit, lastPodName, firstSeen, lastSeen },
})

/** Containers that run several images, crash, or cannot pull theirs. A stale container gives no finding. */
export const containerFindings = (rows: readonly InventoryRow[]): Finding[] =>
  [...byContainer(rows)].filter(([, own]) => !isStale(own)).flatMap(([name, own]) => findingsOf(name, own))

function findingsOf(name: string, rows: readonly InventoryRow[]): Finding[] {
  const running = runningPairs(rows)
  const found: Finding[] = []
  if (running.length > 1) {
    const detail = `It runs ${running.length} digests at once: a rollout that has not ended, or a tag that has moved.`
    found.push(
      finding('images', 'mixedDigests', 'low', { title: `Container ${name} runs several images`, detail }, name),
    )
  }
  const crashing = running.find(({ state, stateReason }) => state === 'waiting' && stateReason === 'CrashLoopBackOff')
  if (crashing) {
    const detail = `${crashing.imageRef} ends soon after each start, so Kubernetes waits before the next.`
    found.push(finding('images', 'crashLoop', 'medium', { title: `Container ${name} keeps crashing`, detail }, name))
  }
  const { state, stateReason, imageRef } = newestOf(rows)
  if (state === 'waiting' && PULL_FAILURES.includes(stateReason)) {
    const detail = `The kubelet cannot pull ${imageRef}: ${stateReason}.`
    const title = `The image of container ${name} cannot be pulled`
    found.push(finding('images', 'pullBackOff', 'medium', { title, detail }, name))
  }
  return found
}
