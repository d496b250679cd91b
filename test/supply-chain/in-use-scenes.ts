/**
 * Random clusters for the model of in-use states: what agents and scanners post, in two phases with a pass of the job
 * after each. Small numbers stand for the usual, so that faults of coverage stay rare.
 */
import fc from 'fast-check'
import type { Beat, Instance } from '../runtime/coverage-model.ts'
import { type FindingRow, type PackageRow, SEVERITIES, SOURCES, type Source, type Via } from './in-use-model.ts'

const HOUR = 3_600
const DAY = 24 * HOUR

/** 0: posted before the first pass; 1: after it. */
export type Phase = 0 | 1

// ---- Packages and their files ---------------------------------------------------------------------------------------

/** Names of one library, of one file on a merged system, and of files that only look alike. */
const FILES = [
  ...['/usr/bin/bash', '/bin/bash', '/usr/sbin/nginx', '/sbin/nginx', '/usr/local/bin/app', '/local/bin/app'],
  ...['/usr/lib/x/libssl.so.3.0.11', '/usr/lib/x/libssl.so.3.0', '/usr/lib/x/libssl.so.3', '/lib/x/libssl.so.3'],
  ...['/usr/lib/x/libssl.so', '/usr/lib/libssl.so.3', '/lib64/ld-linux.so.2', '/usr/lib64/ld-linux.so.2'],
  ...['/usr/lib/libz.so.1.3', '/lib/libz.so.1', '/usr/lib64/libz.so.1', '/opt/libz.so.1.3', '/opt/libz.so.1'],
  ...['/usr/libexec/tool', '/libexec/tool', '/app/lib/log4j.jar', '/usr/share/libz.so.1', '/share/libz.so.1'],
  ...['/usr/bin/nginx', '/lib32/libc.so.6', '/usr/lib32/libc.so.6', '/usr/lib/ld-linux.so.2'],
  ...['/usr/lib/python3/dist-packages/one/__init__.py'],
]

/** Ways to write a path. */
const SPELLINGS: ((path: string) => string)[] = [
  (path) => path,
  (path) => path.slice(1),
  (path) => `.${path}`,
  (path) => path.replace('/', '//').replace(/\/([^/]*)$/, '//$1'),
  (path) => path.replace(/\/([^/]*)$/, '/./$1'),
  (path) => path.replace(/\/([^/]*)$/, '/gone/../$1'),
  (path) => `/../${path.slice(1)}`,
  (path) => `../gone/..${path}`,
]
const spelled = fc
  .tuple(fc.nat(FILES.length - 1), fc.nat(SPELLINGS.length - 1))
  .map(([file, spelling]) => SPELLINGS[spelling]!(FILES[file]!))

const fillers = (count: number) => Array.from({ length: count }, (_, n) => `/usr/share/other/${n}`)
/** Lists of files: some, none, as many as are kept, more than that, and more than that with a repeat among the kept. */
const paths = fc.oneof(
  { weight: 8, arbitrary: fc.array(spelled, { minLength: 1, maxLength: 4 }) },
  { weight: 2, arbitrary: fc.constant<string[]>([]) },
  { weight: 1, arbitrary: fc.array(spelled, { minLength: 1, maxLength: 2 }).map((few) => [...few, ...fillers(12)]) },
  { weight: 1, arbitrary: spelled.map((one) => [one, ...fillers(15)]) },
  { weight: 1, arbitrary: spelled.map((one) => [...fillers(16), one]) },
  { weight: 1, arbitrary: spelled.map((one) => ['/usr/share/other/0', ...fillers(16), one]) },
)

interface Kind {
  readonly name: string
  readonly versions: readonly string[]
  readonly of: Readonly<Record<Source, Pick<PackageRow, 'type' | 'class'>>>
}
const everywhere = (type: string | null, of: string | null) => {
  const one = { type, class: of }
  return { 'db-matcher': one, 'operator-scanner': one, registry: one }
}
const KINDS: Kind[] = [
  { name: 'bash', versions: ['5.1', '5.2'], of: everywhere('debian', 'os-pkgs') },
  { name: 'libssl3', versions: ['3.0', '3.1'], of: everywhere('deb', null) },
  { name: 'zlib', versions: ['1.3'], of: everywhere('apk', 'os-pkgs') },
  { name: 'stdlib', versions: ['1.22'], of: everywhere('GoBinary', 'lang-pkgs') },
  { name: 'left-pad', versions: ['1.0'], of: everywhere('node-pkg', 'lang-pkgs') },
  { name: 'log4j-core', versions: ['2.14'], of: everywhere('Jar', null) },
  { name: 'odd', versions: ['1'], of: everywhere('conan', 'lang-pkgs') },
  { name: 'untyped', versions: ['1'], of: everywhere(null, null) },
  {
    ...{ name: 'mixed', versions: ['1'] },
    of: { ...everywhere('pom', 'lang-pkgs'), 'operator-scanner': { type: 'debian', class: 'os-pkgs' } },
  },
]

const packageRow = (source: Source) =>
  fc
    .record({ kind: fc.constantFrom(...KINDS), version: fc.nat(1), paths })
    .map(({ kind, version, paths }): PackageRow => {
      const { type, class: of } = kind.of[source]
      return { name: kind.name, version: kind.versions[version % kind.versions.length]!, type, class: of, paths }
    })

export const VULNERABILITIES = 5
const findingRow = (source: Source) =>
  fc
    .record({
      row: packageRow(source),
      // Completed to an id when it is posted.
      id: fc.nat(VULNERABILITIES - 1).map(String),
      severity: fc.constantFrom(...SEVERITIES, 'HIGH', 'CRITICAL'),
      isFixable: fc.boolean(),
      kev: fc.constantFrom(null, null, null, null, null, true),
      epss: fc.constantFrom(null, null, null, 0.02, 0.02, 0.25, 0.75),
    })
    .map(({ row, ...rest }): FindingRow => ({ ...row, ...rest }))

// ---- Payloads -------------------------------------------------------------------------------------------------------

export interface PayloadStory {
  readonly phase: Phase
  readonly image: number
  /** An index may hold the next image as well. */
  readonly isShared: boolean
  readonly via: Via
  readonly source: Source
  readonly components: readonly PackageRow[] | null
  readonly findings: readonly FindingRow[] | null
}

export const IMAGES = 3
const phase = fc.constantFrom<Phase>(0, 0, 0, 1)

const payload = fc.constantFrom(...SOURCES).chain((source) =>
  fc.record<PayloadStory>({
    ...{ phase, source: fc.constant(source), image: fc.nat(IMAGES - 1), isShared: fc.boolean() },
    via: fc.constantFrom<Via>('digest', 'digest', 'digest', 'index', 'tag'),
    components: fc.option(fc.array(packageRow(source), { maxLength: 7 }), { freq: 4 }),
    findings: fc.option(fc.array(findingRow(source), { minLength: 1, maxLength: 8 }), { freq: 4 }),
  }),
)

// ---- Coverage -------------------------------------------------------------------------------------------------------

const beat = (fields: Partial<Beat> = {}): Beat => ({
  ...{ ago: 60, mode: 'full', execProbe: true, libProbe: true, attachedAgo: null, trackedAgo: 10 * DAY },
  ...{ knowsImage: true, knowsWorkload: true, lost: 0, unsent: 0, incomplete: false, ended: false, everySecs: 300 },
  ...fields,
})

interface Watch {
  readonly startMode: Instance['startMode']
  readonly beats: readonly Beat[]
}
const started = (...beats: Beat[]): Watch => ({ startMode: 'start', beats })
const found = (...beats: Beat[]): Watch => ({ startMode: 'backfill', beats })
const daily = (fields: Partial<Beat> = {}) => beat({ everySecs: DAY, ...fields })

/**
 * How one container of one pod was watched. Times are far from every limit, for they pass while a case runs; windows
 * are of 24 or 48 hours.
 */
export const WATCHES: Readonly<Record<string, Watch>> = {
  covered: started(beat()),
  'found long ago': found(beat()),
  'watched for three days': found(beat({ trackedAgo: 3 * DAY })),
  'an ended instance': started(beat({ ago: 3 * HOUR, ended: true })),
  'lost before the window': started(daily({ ago: 60 * HOUR, lost: 3 }), beat()),
  'a gap before the window': started(beat({ ago: 100 * HOUR }), daily({ ago: 70 * HOUR }), beat()),
  'a missing heartbeat': started(daily({ ago: 10 * HOUR, everySecs: 300 }), beat()),
  'a late heartbeat': started(beat({ ago: 5 * HOUR })),
  'lost in the window': started(daily({ ago: 20 * HOUR, lost: 3 }), beat()),
  'not sent yet': started(beat({ unsent: 2 })),
  incomplete: started(daily({ ago: 20 * HOUR, incomplete: true }), beat()),
  'a restart of the probe': started(daily({ ago: 30 * HOUR }), beat({ trackedAgo: 5 * HOUR })),
  'a young pod': started(beat({ trackedAgo: 2 * HOUR })),
  'a young pod found running': found(beat({ trackedAgo: 2 * HOUR })),
  'no probe': started(beat({ execProbe: false })),
  'no library probe': started(beat({ libProbe: false })),
  'mode exec': started(beat({ mode: 'exec' })),
  'silent before the window': started(daily({ ago: 60 * HOUR })),
  untracked: started(),
}
const WATCH_NAMES = Object.keys(WATCHES)
/** The first six cover a container. */
const watch = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...WATCH_NAMES.slice(0, 6)) },
  { weight: 1, arbitrary: fc.constantFrom(...WATCH_NAMES.slice(6)) },
)

// ---- Workloads ------------------------------------------------------------------------------------------------------

export interface FileStory {
  readonly phase: Phase
  readonly kind: 'exec' | 'lib'
  readonly path: string
  readonly isComplete: boolean
  readonly origin: string
}
export interface ContainerStory {
  readonly image: number
  /** The image of pods of the second phase. */
  readonly later: number
  /** How the container of each pod is watched. */
  readonly watches: readonly string[]
  readonly files: readonly FileStory[]
}
export interface PodStory {
  readonly phase: Phase
  readonly isDead: boolean
}
export interface FlowStory {
  readonly phase: Phase
  readonly peer: 'own pod' | 'own service' | 'other pod' | 'other service' | 'public' | 'private' | 'node'
  /** Before the 168 hours of exposure. */
  readonly isOld: boolean
  readonly isEgress: boolean
}
export interface WorkloadStory {
  readonly phase: Phase
  readonly namespace: number
  readonly kind: 'Deployment' | 'StatefulSet' | 'Pod'
  readonly containers: readonly ContainerStory[]
  readonly pods: readonly PodStory[]
  readonly flows: readonly FlowStory[]
}

const file: fc.Arbitrary<FileStory> = fc.record({
  ...{ phase, kind: fc.constantFrom<'exec' | 'lib'>('exec', 'lib') },
  path: fc
    .tuple(fc.nat(FILES.length - 1), fc.constantFrom(0, 0, 0, 0, 3, 4, 5))
    .map(([one, spelling]) => SPELLINGS[spelling]!(FILES[one]!)),
  isComplete: fc.nat(30).map((n) => n > 0),
  origin: fc.constantFrom('image', 'image', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd'),
})
const MAX_PODS = 2
const flow: fc.Arbitrary<FlowStory> = fc.record({
  ...{ phase, isOld: fc.nat(3).map((n) => n === 0), isEgress: fc.nat(5).map((n) => n === 0) },
  peer: fc.constantFrom(
    ...(['own pod', 'own pod', 'own pod', 'node', 'node', 'own service', 'other pod', 'other service'] as const),
    ...(['public', 'private'] as const),
  ),
})

const workload: fc.Arbitrary<WorkloadStory> = fc.record({
  ...{ phase, namespace: fc.nat(1), kind: fc.constantFrom('Deployment', 'Deployment', 'StatefulSet', 'Pod') },
  containers: fc.array(
    fc.record({
      ...{ image: fc.nat(IMAGES - 1), later: fc.nat(IMAGES - 1) },
      watches: fc.array(watch, { minLength: MAX_PODS, maxLength: MAX_PODS }),
      files: fc.uniqueArray(file, { maxLength: 5, selector: ({ kind, path }) => `${kind} ${path}` }),
    }),
    { minLength: 1, maxLength: 2 },
  ),
  pods: fc.array(fc.record({ phase, isDead: fc.nat(4).map((n) => n === 0) }), { minLength: 1, maxLength: MAX_PODS }),
  flows: fc.array(flow, { maxLength: 3 }),
})

export interface ClusterStory {
  readonly workloads: readonly WorkloadStory[]
  readonly payloads: readonly PayloadStory[]
}
export const cluster: fc.Arbitrary<ClusterStory> = fc.record({
  workloads: fc.array(workload, { minLength: 1, maxLength: 4 }),
  payloads: fc.array(payload, { minLength: 1, maxLength: 7 }),
})

export interface PathCase {
  /** The lists of one to three packages. */
  readonly lists: readonly (readonly string[])[]
  readonly ran: readonly { readonly kind: 'exec' | 'lib'; readonly path: string }[]
}
/** Packages of one folder and what ran in it: cases in folders of their own can share one image. */
export const pathCase: fc.Arbitrary<PathCase> = fc.record({
  lists: fc.array(fc.array(spelled, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
  ran: fc.uniqueArray(
    file.map(({ kind, path }) => ({ kind, path })),
    { minLength: 1, maxLength: 2, selector: ({ kind, path }) => `${kind} ${path}` },
  ),
})
