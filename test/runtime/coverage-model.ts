/**
 * A model of docs/contract.md#runtime-coverage: it keeps the whole history of each container and evaluates all of it
 * each time, without folding. Times are seconds before now, so a greater one is earlier.
 */

export interface Beat {
  readonly ago: number
  readonly mode: 'exec' | 'full'
  readonly execProbe: boolean
  readonly libProbe: boolean
  readonly attachedAgo: number | null
  /** When tracking began, according to this heartbeat. */
  readonly trackedAgo: number
  /** Whether it names the image and the workload. */
  readonly knowsImage: boolean
  readonly knowsWorkload: boolean
  readonly lost: number
  readonly unsent: number
  readonly incomplete: boolean
  readonly ended: boolean
  readonly everySecs: number
}

export interface Instance {
  readonly pod: string
  readonly container: string
  readonly image: string
  readonly startMode: 'start' | 'backfill'
  /** In the order in which they were posted. */
  readonly posts: readonly (readonly Beat[])[]
}

export interface Pod {
  readonly name: string
  readonly isDead: boolean
  /** Null when no post said. */
  readonly running: readonly string[] | null
}

export interface Scene {
  readonly pods: readonly Pod[]
  readonly instances: readonly Instance[]
  /** Containers and images with a path that is known only in part, which ran now. Without an image it may be of any. */
  readonly suffixes: readonly { readonly container: string; readonly image: string }[]
}

export interface Verdict {
  readonly reason: string | null
  /** Null without data. */
  readonly observedAgo: number | null
}

/**
 * The heartbeats that count: each newer than all before, and none after the one that ended the container. Those of one
 * post are ordered by time.
 */
function heard({ posts }: Instance): Beat[] {
  const counted: Beat[] = []
  for (const beat of posts.flatMap((post) => post.toSorted((a, b) => b.ago - a.ago))) {
    const before = counted.at(-1)
    if (before === undefined || (!before.ended && beat.ago < before.ago)) counted.push(beat)
  }
  return counted
}

const graceSecs = ({ everySecs }: Beat) => 3 * everySecs + 60

/** Tracking cannot begin after its heartbeat. */
const trackedAgo = (beat: Beat) => Math.max(beat.trackedAgo, beat.ago)

/** Whether a probe was attached or tracking began between two heartbeats. */
const isAttachedBetween = (before: Beat, beat: Beat) => beat.attachedAgo !== null && beat.attachedAgo < before.ago
const isTrackedAnew = (before: Beat, beat: Beat) => trackedAgo(beat) < before.ago

function isGap(before: Beat, beat: Beat): boolean {
  const isLate = before.ago - beat.ago > graceSecs(before)
  const isOther = beat.mode !== before.mode || beat.execProbe !== before.execProbe || beat.libProbe !== before.libProbe
  return isLate || isAttachedBetween(before, beat) || isTrackedAnew(before, beat) || isOther
}

/**
 * Where a gap ends: at the start of new tracking that was reported in time and has its probe, else at the heartbeat.
 */
function endOf(before: Beat, beat: Beat): number {
  const isInTime = trackedAgo(beat) - beat.ago <= graceSecs(beat)
  return isTrackedAnew(before, beat) && !isAttachedBetween(before, beat) && isInTime && beat.execProbe
    ? trackedAgo(beat)
    : beat.ago
}

/** Where the latest run without a gap began, and whether it spans the whole life of the container. */
function run(instance: Instance, beats: readonly Beat[]): { sinceAgo: number; isWhole: boolean } {
  const first = beats[0]!
  const gap = beats.findLastIndex((beat, n) => n > 0 && isGap(beats[n - 1]!, beat))
  if (gap !== -1) return { sinceAgo: endOf(beats[gap - 1]!, beats[gap]!), isWhole: false }
  const sinceAgo = first.execProbe ? trackedAgo(first) : first.ago
  return { sinceAgo, isWhole: instance.startMode === 'start' && sinceAgo === trackedAgo(first) }
}

const isFresh = (last: Beat) => !last.ended && last.ago <= graceSecs(last)

/** Coverage of one container and image of the workload that these pods and instances belong to. */
export function judge(
  { pods, instances, suffixes }: Scene,
  container: string,
  image: string,
  windowSecs: number,
): Verdict {
  const watched = instances
    .map((instance) => ({ instance, beats: heard(instance) }))
    // The instance belongs to the workload and image that any counting heartbeat names.
    .filter(
      ({ instance, beats }) =>
        instance.container === container &&
        (beats.some(({ knowsImage }) => knowsImage) ? instance.image : '') === image &&
        beats.some(({ knowsWorkload }) => knowsWorkload),
    )
    .map(({ instance, beats }) => ({ beats, last: beats.at(-1)!, ...run(instance, beats) }))
    .filter(({ last }) => last.ago <= windowSecs)
  if (watched.length === 0) return { reason: 'no_runtime_data', observedAgo: null }
  const observedAgo = Math.max(...watched.map(({ sinceAgo }) => sinceAgo))
  const isAlone = pods.some(
    ({ name, isDead, running }) =>
      !isDead &&
      (running === null || running.includes(container)) &&
      !instances.some(
        (one) => one.pod === name && (running === null || one.container === container) && isFresh(heard(one).at(-1)!),
      ),
  )
  const checks: [reason: string, isFailed: boolean][] = [
    ['probes_missing', watched.some(({ last }) => !last.execProbe)],
    ['libraries_not_tracked', watched.some(({ last }) => !last.libProbe || last.mode !== 'full')],
    ['events_dropped', watched.some(({ beats }) => beats.some(({ lost, ago }) => lost > 0 && ago <= windowSecs))],
    ['events_pending', watched.some(({ last }) => last.unsent > 0)],
    [
      'incomplete_paths',
      watched.some(({ beats }) => beats.some(({ incomplete }) => incomplete)) ||
        suffixes.some((one) => one.container === container && (one.image === image || one.image === '')),
    ],
    [
      'capture_gap',
      isAlone ||
        observedAgo < windowSecs ||
        watched.some(
          ({ last, sinceAgo, isWhole }) => (!last.ended && !isFresh(last)) || (!isWhole && sinceAgo < windowSecs),
        ),
    ],
  ]
  return { reason: checks.find(([, isFailed]) => isFailed)?.[0] ?? null, observedAgo }
}
