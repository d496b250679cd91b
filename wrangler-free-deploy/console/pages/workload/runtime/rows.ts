/** Files that ran as rows, and how well each container of the workload is watched. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { isUnshipped, type Profile } from '../words.ts'

export type Runtime = JsonAnswer<'/workloads/{namespace}/{kind}/{name}/runtime'>
export type Entry = Runtime['containers'][number]['entries'][number]
export type Coverage = Runtime['coverage'][number]

export interface FileRow extends Entry {
  readonly container: string
  readonly digest: string
}

/** Files that no image shipped come first, then those that were seen last. */
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
  /** Null where nobody watched the container in the window: it runs and no agent says anything of it. */
  readonly coverage: Coverage | null
}

/** Running containers that no agent watches are missing in the answer, and must not look complete. */
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

/** A cut path begins somewhere below. */
export const pathText = ({ path, pathComplete }: Pick<Entry, 'path' | 'pathComplete'>): string =>
  pathComplete ? path : `…${path}`
