/**
 * The expected report, computed one by one from what was posted (docs/contract.md#coverage-report). No answer of the
 * broker is read.
 */
import { type Instance, judge, type Pod, type Scene } from '../runtime/coverage-model.ts'
import { answering, type Payload } from '../supply-chain/in-use-model.ts'
import { WATCHES } from '../supply-chain/in-use-scenes.ts'
import { type CoverageStory, NODES, type PayloadStory, type WorkloadStory } from './scenes.ts'

const HOUR = 3_600
const DAY = 24 * HOUR

/** The names of a story in the broker. */
export interface Names {
  readonly image: (n: number) => string
  readonly namespace: (n: number) => string
  readonly node: (n: number) => string
  readonly workload: (w: number) => string
  readonly pod: (w: number, p: number) => string
  readonly containerId: (w: number, p: number, c: number) => string
  readonly digestOf: (one: PayloadStory) => string
  readonly scannedAt: (one: PayloadStory) => string
}

export interface Asked {
  /** Null for the cluster. */
  readonly namespace: number | null
  readonly windowHours: number
  readonly olderThanDays: number
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
const inOrder = <T>(rows: T[], key: (row: T) => string[]): T[] =>
  rows.sort((a, b) => key(a).reduce((order, part, n) => order || byBytes(part, key(b)[n]!), 0))

const runs = (state: string | null) => state === null || state === 'running' || state === 'crash'

/** One container of one pod. */
interface Placed {
  readonly w: number
  readonly p: number
  readonly c: number
  readonly story: WorkloadStory
  readonly image: string | null
  readonly state: string | null
  readonly watch: (typeof WATCHES)[string]
  /** Empty where the agent does not know the image. */
  readonly watchedImage: string
}

/** A pod without an owner is its own workload, so it has one pod. */
export const podsOf = (story: WorkloadStory) => (story.kind === 'Pod' ? story.pods.slice(0, 1) : story.pods)

function placed({ workloads }: CoverageStory, names: Names): Placed[] {
  return workloads.flatMap((story, w) =>
    podsOf(story).flatMap((_, p) =>
      story.containers.map((container, c) => {
        const n = container.images[p]!
        const image = n === null ? null : names.image(n)
        const { name, knowsImage } = container.watches[p]!
        return {
          ...{ w, p, c, story, image, state: container.states[p]!, watch: WATCHES[name]! },
          watchedImage: knowsImage && image !== null ? image : '',
        }
      }),
    ),
  )
}

const lastBeat = ({ watch }: Placed) => watch.beats.at(-1)
const isWatched = (one: Placed) => {
  const last = lastBeat(one)
  return last !== undefined && !last.ended && last.ago <= 3 * last.everySecs + 60
}

/** The rows of the inventory of a workload that run, by container and image. */
function runningRows(all: readonly Placed[], w: number): { c: number; image: string }[] {
  const rows = new Map<string, { c: number; image: string; state: string | null; lastPod: number }>()
  for (const one of all.filter((other) => other.w === w && other.image !== null)) {
    const key = `${one.c} ${one.image}`
    const row = rows.get(key)
    // A row is rewritten only where the state changes, but not by a pod that does not run beside one that does.
    if (row === undefined || (row.state !== one.state && (runs(one.state) || !runs(row.state))))
      rows.set(key, { c: one.c, image: one.image!, state: one.state, lastPod: one.p })
  }
  return [...rows.values()].filter(({ state, lastPod }) => {
    const { story } = all.find((one) => one.w === w)!
    return runs(state) && (!story.isAged || !story.pods[lastPod]!.isDead)
  })
}

const isIn = ({ namespace }: Asked, story: WorkloadStory) => namespace === null || story.namespace === namespace

/** Each running container and image of a workload once; an empty image is not resolved. */
function runningContainers(all: readonly Placed[], w: number): { c: number; image: string }[] {
  const rows = runningRows(all, w)
  const own = all.filter((one) => one.w === w)
  const unresolved = own.filter((one) => {
    const isAlive = !one.story.pods[one.p]!.isDead
    const isUnknown = isAlive && runs(one.state) && !rows.some(({ c }) => c === one.c)
    return isUnknown || (isWatched(one) && one.watchedImage === '')
  })
  return [...rows, ...[...new Set(unresolved.map(({ c }) => c))].map((c) => ({ c, image: '' }))]
}

export function sceneOf(story: CoverageStory, names: Names, w: number): Scene {
  const all = placed(story, names).filter((one) => one.w === w)
  return {
    pods: podsOf(story.workloads[w]!).map(
      (pod, p): Pod => ({
        ...{ name: names.pod(w, p), isDead: pod.isDead },
        running: all.filter((one) => one.p === p && runs(one.state)).map(({ c }) => `c${c}`),
      }),
    ),
    instances: all
      .filter(({ watch }) => watch.beats.length > 0)
      .map(
        ({ p, c, watch, watchedImage }): Instance => ({
          ...{ pod: names.pod(w, p), container: `c${c}`, image: watchedImage, startMode: watch.startMode },
          posts: [watch.beats],
        }),
      ),
    suffixes: [],
  }
}

export function containersModel(story: CoverageStory, names: Names, asked: Asked) {
  const all = placed(story, names)
  const rows = story.workloads.flatMap((workload, w) =>
    isIn(asked, workload)
      ? runningContainers(all, w).map(({ c, image }) => {
          const { reason } = judge(sceneOf(story, names, w), `c${c}`, image, asked.windowHours * HOUR)
          return {
            ...{ namespace: names.namespace(workload.namespace), kind: workload.kind as string },
            ...{ name: names.workload(w), container: `c${c}`, imageDigest: image, covered: reason === null, reason },
            missing: [...(reason === null ? [] : [reason]), ...(image === '' ? ['image_not_resolved'] : [])],
          }
        })
      : [],
  )
  return inOrder(rows, (row) => [row.namespace, row.kind, row.name, row.container, row.imageDigest])
}

/** The stored payloads, the oldest scan first. */
function payloadsOf(story: CoverageStory, names: Names): (Payload & { told: PayloadStory })[] {
  return story.payloads
    .toSorted((a, b) => b.ageDays - a.ageDays || byBytes(names.digestOf(b), names.digestOf(a)))
    .map((told) => ({
      ...{ told, source: told.source, digest: names.digestOf(told), via: told.via, images: [names.image(told.image)] },
      ...{ kind: told.kind, rows: [] as never[] },
    }))
}

const JOINS = { digest: 'image_id', index: 'platform_manifest', tag: 'workload_tag' } as const
const STRENGTHS = ['digest', 'index', 'tag'] as const

export function imagesModel(story: CoverageStory, names: Names, asked: Asked) {
  const all = placed(story, names)
  const digests = new Map<string, number>()
  for (const [w, workload] of story.workloads.entries())
    if (isIn(asked, workload))
      for (const { image } of runningRows(all, w)) digests.set(image, (digests.get(image) ?? 0) + 1)
  // A guess needs a container that the inventory knows by the tag, of any state.
  const known = new Set(all.map(({ image }) => image))
  const payloads = payloadsOf(story, names).filter(({ images }) => known.has(images[0]!))
  const rows = [...digests].map(([digest, containers]) => {
    const answers = answering({ payloads } as never, digest) as ReturnType<typeof payloadsOf>
    const partOf = (kind: string) => {
      const some = answers.filter((one) => one.kind === kind).map(({ told }) => told)
      const join = STRENGTHS.find((via) => some.some((one) => one.via === via))
      if (join === undefined) return null
      const newest = some.reduce((a, b) => (b.ageDays < a.ageDays ? b : a))
      const isCut = some.some((one) => one.isCut)
      return {
        via: join,
        ageDays: newest.ageDays,
        isCut,
        shown: { scannedAt: names.scannedAt(newest), join: JOINS[join] },
      }
    }
    const [report, sbom] = [partOf('vulnerabilities'), partOf('sbom')]
    const n = story.verdicts.findIndex((_, i) => names.image(i) === digest)
    const verdict = story.verdicts[n]!
    const checks: [string, boolean][] = [
      ['no_report', report === null],
      ['old_report', report !== null && report.ageDays >= asked.olderThanDays],
      ['guessed_report', report?.via === 'tag'],
      ['cut_report', report?.isCut === true],
      ['no_sbom', sbom === null],
      ['guessed_sbom', sbom?.via === 'tag'],
      ['no_signature_result', verdict === null],
      ['unknown_signature', verdict === 'unknown'],
    ]
    return {
      ...{ digest, containers, report: report?.shown ?? null, sbom: sbom?.shown ?? null, verdict },
      missing: checks.filter(([, isMissing]) => isMissing).map(([code]) => code),
    }
  })
  return inOrder(rows, ({ digest }) => [digest])
}

const isCurrent = (drain: string) => drain === 'current'

export function nodesModel(story: CoverageStory, names: Names, asked: Asked) {
  const all = placed(story, names)
  const rows = story.nodes.flatMap((node, n) => {
    const isHere = ({ story: workload, p }: Placed) => workload.pods[p]!.node === n && isIn(asked, workload)
    const here = all.filter(isHere)
    const pods = story.workloads.flatMap((workload) =>
      isIn(asked, workload) ? podsOf(workload).filter((pod) => pod.node === n) : [],
    )
    const hasPods = story.workloads.some((workload) => podsOf(workload).some((pod) => pod.node === n))
    if (pods.length === 0 && (asked.namespace !== null || !node.hasFacts)) return []
    const watched = here.filter(isWatched)
    const alive = pods.filter(({ isDead }) => !isDead).length
    const checks: [string, boolean][] = [
      ['no_facts', !node.hasFacts],
      ['silent', node.isSilent || !hasPods],
      ['no_runtime_data', alive > 0 && watched.length === 0],
      ['probes_missing', watched.some((one) => !lastBeat(one)!.execProbe || !lastBeat(one)!.libProbe)],
      ['denials_not_watched', !isCurrent(node.drain)],
    ]
    return [
      {
        ...{ node: names.node(n), alivePods: alive, watchedContainers: watched.length },
        missing: checks.filter(([, isMissing]) => isMissing).map(([code]) => code),
      },
    ]
  })
  return inOrder(rows, ({ node }) => [node])
}

const LEVELS = ['full', 'high', 'medium', 'low', 'unknown', 'custom']

export function workloadsModel(story: CoverageStory, names: Names, asked: Asked) {
  const all = placed(story, names)
  const rows = story.workloads.flatMap((workload, w) => {
    const pods = podsOf(workload)
    if (!isIn(asked, workload) || (pods.every(({ isDead }) => isDead) && runningContainers(all, w).length === 0))
      return []
    // Only the set of an owner is kept.
    const contributors = workload.kind === 'Pod' ? [] : pods
    const levels = contributors.map(({ capture }) => capture).filter((level) => level !== 'none')
    const incomplete = levels.filter((level) => level !== 'full').length
    const denialsReason = !story.nodes.some(({ drain }) => isCurrent(drain))
      ? 'no_node_watching'
      : story.blind[workload.namespace]
        ? 'unattributed_denials'
        : null
    const checks: [string, boolean][] = [
      ['no_observations', levels.length === 0],
      ['capture_incomplete', incomplete > 0],
      ['denials_unknown', denialsReason !== null],
    ]
    return [
      {
        ...{ namespace: names.namespace(workload.namespace), kind: workload.kind as string, name: names.workload(w) },
        captureLevel: levels.toSorted((a, b) => LEVELS.indexOf(b) - LEVELS.indexOf(a))[0] ?? null,
        ...{ incompletePods: incomplete, denialsReason },
        missing: checks.filter(([, isMissing]) => isMissing).map(([code]) => code),
      },
    ]
  })
  return inOrder(rows, (row) => [row.namespace, row.kind, row.name])
}

// ---- The row that decided -------------------------------------------------------------------------------------------

interface Detail {
  readonly cause: string
  readonly containerId: string | null
  readonly podName: string | null
  readonly nodeName: string | null
}

/** Whether a detail names something that fails the check of the reason. */
export function isProof(
  story: CoverageStory,
  names: Names,
  row: { name: string; container: string; imageDigest: string; reason: string },
  detail: Detail | null,
  windowHours: number,
): boolean {
  const w = story.workloads.findIndex((_, n) => names.workload(n) === row.name)
  const all = placed(story, names).filter((one) => one.w === w && `c${one.c}` === row.container)
  const pods = podsOf(story.workloads[w]!)
  const isPod = (one: Placed) =>
    names.pod(w, one.p) === detail?.podName && names.node(pods[one.p]!.node) === detail.nodeName
  const named = all.find((one) => names.containerId(w, one.p, one.c) === detail?.containerId)
  // Nobody watched the container, and it is no container of a live pod.
  if (detail === null)
    return row.reason === 'no_runtime_data' && !all.some((one) => runs(one.state) && !pods[one.p]!.isDead)
  if (detail.containerId !== null && (named === undefined || !isPod(named))) return false
  const beats = named?.watch.beats ?? []
  const last = beats.at(-1)
  const inWindow = (ago: number) => ago <= windowHours * HOUR
  const isOfImage = named !== undefined && named.watchedImage === row.imageDigest
  const isUnwatched = (one: Placed) => runs(one.state) && !pods[one.p]!.isDead && !isWatched(one) && isPod(one)
  switch (detail.cause) {
    case 'last_heartbeat':
      return isOfImage && !inWindow(last!.ago)
    case 'never_watched':
      return all.some((one) => isPod(one) && !pods[one.p]!.isDead && runs(one.state))
    case 'exec_probe_missing':
      return isOfImage && !last!.execProbe
    case 'library_probe_missing':
      return isOfImage && !last!.libProbe
    case 'mode_exec':
      return isOfImage && last!.mode === 'exec'
    case 'events_dropped':
      return isOfImage && beats.some(({ lost, ago }) => lost > 0 && inWindow(ago))
    case 'events_unsent':
      return isOfImage && last!.unsent > 0
    case 'inventory_incomplete':
      return isOfImage && beats.some(({ incomplete }) => incomplete)
    case 'silent':
      return isOfImage && !last!.ended && !isWatched(named!)
    case 'late_start':
      return isOfImage && named!.watch.startMode === 'backfill' && inWindow(last!.trackedAgo)
    case 'late_heartbeat':
    case 'probe_restart':
      return isOfImage && beats.length > 1
    case 'unwatched_pod':
      return all.some(isUnwatched)
    case 'watched_since':
      return isOfImage && inWindow(last!.trackedAgo)
    default:
      return false
  }
}

export const scanAge = ({ ageDays }: PayloadStory) => ageDays * DAY
export const nodeCount = NODES
