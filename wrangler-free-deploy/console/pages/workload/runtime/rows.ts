/** Executed files as rows, and the coverage of each container of the workload. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { isUnshipped } from '../../../parts/file-words.ts'
import type { Profile } from '../words.ts'

export type Runtime = JsonAnswer<'/workloads/{namespace}/{kind}/{name}/runtime'>
export type Entry = Runtime['containers'][number]['entries'][number]
export type Coverage = Runtime['coverage'][number]

export interface FileRow extends Entry {
  readonly container: string
  readonly digest: string
}

/** Files that no image contains come first, then the most recently seen ones. */
export function fileRows(runtime: Runtime): readonly FileRow[] {
  return runtime.containers
    .flatMap(({ containerName, imageDigest, entries }) =>
      entries.map((entry) => ({ ...entry, container: containerName, digest: imageDigest })),
    )
    .sort(
      (one, other) =>
        Number(isUnshipped(other.origin)) - Number(isUnshipped(one.origin)) ||
        (one.lastSeen < other.lastSeen ? 1 : one.lastSeen > other.lastSeen ? -1 : 0),
    )
}

export interface WatchedContainer {
  readonly container: string
  readonly digest: string
  /** Null if no agent reported the container in the window although it runs. */
  readonly coverage: Coverage | null
}

/** Adds running containers that no agent watches: the answer lacks them, and the list must not look complete. */
export function watchedContainers(runtime: Runtime, profile: Profile): readonly WatchedContainer[] {
  const watched = runtime.coverage.map((coverage) => ({
    container: coverage.containerName,
    digest: coverage.imageDigest,
    coverage,
  }))
  const has = (container: string, digest: string) =>
    watched.some((one) => one.container === container && one.digest === digest)
  const silent = profile.dimensions.images.containers.flatMap(({ name, running }) =>
    running
      .filter(({ digest, ranAsInit }) => !ranAsInit && !has(name, digest))
      .map(({ digest }) => ({ container: name, digest, coverage: null })),
  )
  return [...silent, ...watched]
}

/** Of a cut path only the end is known. */
export const pathText = ({ path, pathComplete }: Pick<Entry, 'path' | 'pathComplete'>): string =>
  pathComplete ? path : `…${path}`
