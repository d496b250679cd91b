/**
 * The expected in-use states and tiers, computed one by one from what was posted (docs/contract.md#in-use). Nothing is
 * kept between two questions, and no answer of the broker is read.
 */
import type { Verdict } from '../runtime/coverage-model.ts'

export const STATES = ['executed', 'loaded', 'unknown', 'installed_not_observed'] as const
export type State = (typeof STATES)[number]
export const TIERS = ['P0', 'P1', 'P2', 'Background'] as const
export type Tier = (typeof TIERS)[number]
/** The worst first. */
export const SEVERITIES = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'] as const
export type Severity = (typeof SEVERITIES)[number]
export const SOURCES = ['db-matcher', 'operator-scanner', 'registry'] as const
export type Source = (typeof SOURCES)[number]

export interface PackageRow {
  readonly name: string
  readonly version: string
  readonly type: string | null
  readonly class: string | null
  /** As posted. */
  readonly paths: readonly string[]
}
export interface FindingRow extends PackageRow {
  readonly id: string
  readonly severity: Severity
  readonly isFixable: boolean
  readonly kev: boolean | null
  readonly epss: number | null
}

/** How a payload names its image: by its digest, by the index that holds it, or by its tag and workload. */
export type Via = 'digest' | 'index' | 'tag'

interface Sent {
  readonly source: Source
  /** The digest under which it was posted. */
  readonly digest: string
  readonly via: Via
  /** The images that it names. */
  readonly images: readonly string[]
}
export interface Sbom extends Sent {
  readonly kind: 'sbom'
  readonly rows: readonly PackageRow[]
}
export interface Findings extends Sent {
  readonly kind: 'vulnerabilities'
  readonly rows: readonly FindingRow[]
}
export type Payload = Sbom | Findings

export interface RuntimeFile {
  readonly kind: 'exec' | 'lib'
  readonly path: string
  readonly isComplete: boolean
  readonly origin: string
}

export interface Workload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly exposure: Exposure
}
/** A container of a workload on one image, as the inventory has it. */
export interface Container {
  readonly workload: Workload
  readonly name: string
  readonly image: string
  readonly files: readonly RuntimeFile[]
  readonly coverage: Verdict
}

export interface Settings {
  readonly epss: number
  readonly isUnknownExposed: boolean
  readonly windowHours: number
}

export interface Cluster {
  readonly settings: Settings
  /** The images of the inventory are those of its containers. */
  readonly containers: readonly Container[]
  /** The stored payloads in the order of their scans: of each digest, source and kind the last one. */
  readonly payloads: readonly Payload[]
}

// ---- Exposure -------------------------------------------------------------------------------------------------------

export type Exposure = 'exposed' | 'exposed:node_only' | 'internal' | 'exposure:unknown'
export type Peer = 'own' | 'other' | 'unknown' | 'node'

/** Exposure by the peers that opened connections within 168 hours, or from outside to a pod that lives. */
export function exposureOf(peers: readonly Peer[]): Exposure {
  if (peers.some((peer) => peer === 'other' || peer === 'unknown')) return 'exposed'
  if (peers.includes('node')) return 'exposed:node_only'
  return peers.includes('own') ? 'internal' : 'exposure:unknown'
}

// ---- Paths ----------------------------------------------------------------------------------------------------------

/** The absolute path without `//`, `.` and `..`. */
export function canonical(path: string): string {
  const kept: string[] = []
  for (const part of path.trim().split('/'))
    if (part === '..') kept.pop()
    else if (part !== '' && part !== '.') kept.push(part)
  return `/${kept.join('/')}`
}

/** Directories that are one on some systems, with or without `/usr`. */
const MERGED = [['bin', 'sbin'], ['lib', 'lib64'], ['lib32'], ['libx32']]

/** All names of a file in directories that may be one. */
function otherNames(path: string): string[] {
  const [, folder, rest] = /^(?:\/usr)?\/([^/]+)(\/.*)$/.exec(path) ?? []
  const same = MERGED.find((folders) => folders.includes(folder ?? '')) ?? []
  return same.flatMap((one) => [`/${one}${rest}`, `/usr/${one}${rest}`])
}

/** The same library with fewer numbers of its version, at least one. */
function shorterSonames(path: string): string[] {
  const [, stem, version] = /^(.*\/lib[^/]*\.so)\.(\d+(?:\.\d+)*)$/.exec(path) ?? []
  if (stem === undefined || version === undefined) return []
  const numbers = version.split('.')
  return numbers.slice(1).map((_, i) => `${stem}.${numbers.slice(0, i + 1).join('.')}`)
}

/** The spellings that may stand in a list for a file that ran, by rank: all owners of the first listed one count. */
function ranks(path: string): string[][] {
  const exact = canonical(path)
  const sonames = shorterSonames(exact)
  return [[exact], otherNames(exact), [...sonames, ...sonames.flatMap(otherNames)]]
}

/** The packages that own a file, by lists of canonical paths. */
export function ownersOf(path: string, lists: readonly { name: string; paths: ReadonlySet<string> }[]): Set<string> {
  for (const spellings of ranks(path)) {
    const owners = lists.filter(({ paths }) => spellings.some((one) => paths.has(one)))
    if (owners.length > 0) return new Set(owners.map(({ name }) => name))
  }
  return new Set()
}

// ---- Payloads and lists of an image ---------------------------------------------------------------------------------

/**
 * The payloads that answer for an image: of each kind and source the one posted under its digest, else the newest that
 * names it by digest; a guess by tag only where no payload at all names the image by digest.
 */
export function answering({ payloads }: Cluster, image: string): Payload[] {
  const named = payloads.filter(({ images }) => images.includes(image))
  const isKnown = named.some(({ via }) => via !== 'tag')
  return named.filter((one) => {
    const alike = named.filter(({ kind, source }) => kind === one.kind && source === one.source)
    const own = alike.find(({ via }) => via === 'digest')
    return one === (own ?? alike.findLast(({ via }) => via === (isKnown ? 'index' : 'tag')))
  })
}

const MAX_SENT = 16

/** A row as it is stored: findings that a payload repeats are one. */
interface Listed {
  readonly name: string
  readonly paths: ReadonlySet<string>
  /** Whether files of the package may be missing. */
  readonly isCut: boolean
}

const keptOf = (paths: readonly string[]) => [
  ...new Set(paths.map((path) => path.trim()).filter((path) => path !== '')),
]

function listsOf(payload: Payload): Listed[] {
  const groups = new Map<string, PackageRow[]>()
  for (const [i, row] of payload.rows.entries()) {
    const key = payload.kind === 'sbom' ? `${i}` : JSON.stringify([(row as FindingRow).id, row.name, row.version])
    groups.set(key, [...(groups.get(key) ?? []), row])
  }
  return [...groups.values()].map((rows) => {
    const paths = new Set(rows.flatMap((row) => keptOf(row.paths.slice(0, MAX_SENT))))
    return {
      name: rows[0]!.name,
      paths: new Set([...paths].map(canonical)),
      isCut: paths.size >= MAX_SENT || rows.some((row) => row.paths.length > MAX_SENT),
    }
  })
}

/** The packages that a container executed or loaded files of. */
function usesOf({ files }: Container, lists: readonly Listed[]): Map<string, 'executed' | 'loaded'> {
  const uses = new Map<string, 'executed' | 'loaded'>()
  for (const { kind, path, isComplete, origin } of files) {
    if (!isComplete || origin === 'memfd') continue
    for (const name of ownersOf(path, lists))
      if (kind === 'exec') uses.set(name, 'executed')
      else if (!uses.has(name)) uses.set(name, 'loaded')
  }
  return uses
}

// ---- States ---------------------------------------------------------------------------------------------------------

const BINARIES = ['gobinary', 'rustbinary', 'rust-binary', 'go-module', 'binary']
/** Types of operating systems where no class says so: those that the scenes have. */
const SYSTEMS = ['deb', 'debian', 'apk']

export type Coverage = 'static_binary' | 'file' | 'interpreted'

/** How packages of a type can be observed: nothing is concluded from the files of a type that is not known. */
export function coverageOf({ type, class: of }: Pick<PackageRow, 'type' | 'class'>): Coverage {
  const word = type?.toLowerCase() ?? ''
  if (BINARIES.includes(word)) return 'static_binary'
  return of === 'os-pkgs' || (of === null && SYSTEMS.includes(word)) ? 'file' : 'interpreted'
}
const isObservable = (row: Pick<PackageRow, 'type' | 'class'>) => coverageOf(row) !== 'interpreted'

export interface Judged {
  readonly state: State
  readonly reason: string | null
}

/** Whether another program reads a file of the list: those that the scenes have. */
export const hasInterpreted = (paths: Iterable<string>) => [...paths].some((path) => /\.(jar|py)$/.test(path))

const WIRE_REASONS = ['no_runtime_data', 'capture_gap', 'probes_missing', 'libraries_not_tracked']

/** The state of a package in a container (rules 1 to 6). */
function judged(container: Container, lists: readonly Listed[], name: string, isSeen: boolean): Judged {
  const used = usesOf(container, lists).get(name)
  if (used !== undefined) return { state: used, reason: null }
  const unknown = (reason: string): Judged => ({ state: 'unknown', reason })
  const { reason } = container.coverage
  if (reason !== null) return unknown(WIRE_REASONS.includes(reason) ? reason : 'capture_gap')
  if (!isSeen) return unknown('language_package')
  const own = lists.filter((list) => list.name === name && list.paths.size > 0)
  if (own.some(({ paths }) => hasInterpreted(paths))) return unknown('language_package')
  if (own.length === 0) return unknown('no_package_files')
  if (own.some(({ isCut }) => isCut)) return unknown('sbom_incomplete')
  return { state: 'installed_not_observed', reason: null }
}

export const strongest = (states: readonly State[]): State =>
  STATES.find((state) => states.includes(state)) ?? 'unknown'
export const inUseOf = (state: State): boolean | null =>
  state === 'unknown' ? null : state !== 'installed_not_observed'

export interface Detail {
  readonly state: State
  /** The reasons of containers in that state: one of them is shown. */
  readonly reasons: readonly (string | null)[]
  /** Seconds before now; null where no covered container is there or the state is unknown. */
  readonly observedAgo: number | null
  readonly containers: number
}

/** The merged state of a package over all containers of an image. */
function detailOf(cluster: Cluster, image: string, lists: readonly Listed[], name: string, isSeen: boolean): Detail {
  const containers = cluster.containers.filter((one) => one.image === image)
  const all = containers.map((one) => judged(one, lists, name, isSeen))
  const state = strongest(all.map((one) => one.state))
  const reasons = all.filter((one) => one.state === state).map(({ reason }) => reason)
  const starts = containers.filter(({ coverage }) => coverage.reason === null).map((one) => one.coverage.observedAgo!)
  return {
    state,
    reasons: all.length === 0 ? ['no_runtime_data'] : reasons,
    observedAgo: state === 'unknown' || starts.length === 0 ? null : Math.min(...starts),
    containers: all.length,
  }
}

const imageLists = (cluster: Cluster, image: string) => answering(cluster, image).flatMap(listsOf)

/** The state of a component that GET /images/{digest}/sbom shows with this name, type and class. */
export const componentOf = (
  cluster: Cluster,
  image: string,
  row: Pick<PackageRow, 'name' | 'type' | 'class'>,
): Detail => detailOf(cluster, image, imageLists(cluster, image), row.name, isObservable(row))

// ---- Tiers ----------------------------------------------------------------------------------------------------------

export interface Risk {
  readonly severity: Severity
  readonly kev: boolean
  readonly epss: number | null
  readonly isFixable: boolean
}

export function tierOf({ epss, isUnknownExposed }: Settings, state: State, exposure: Exposure, risk: Risk): Tier {
  if (state === 'installed_not_observed') return 'Background'
  const isHot = risk.kev || (risk.epss !== null && risk.epss >= epss)
  const isExposed = exposure === 'exposed' || (exposure === 'exposure:unknown' && isUnknownExposed)
  if (isHot) return isExposed ? 'P0' : 'P1'
  if (risk.severity === 'HIGH' && !risk.isFixable && !isExposed) return 'P2'
  return risk.severity === 'CRITICAL' || risk.severity === 'HIGH' ? 'P1' : 'P2'
}

export function factorsOf({ epss }: Settings, state: State, exposure: Exposure, risk: Risk): string[] {
  return [
    `in_use:${state}`,
    ...(risk.kev ? ['kev'] : []),
    ...(risk.epss !== null && risk.epss >= epss ? [`epss>=${epss}`] : []),
    `severity:${risk.severity.toLowerCase()}`,
    exposure,
    ...(risk.isFixable ? [] : ['no_fix']),
  ]
}

const mostUrgent = (tiers: readonly Tier[]): Tier => TIERS.find((tier) => tiers.includes(tier))!
const worst = (rows: readonly FindingRow[]): Severity =>
  SEVERITIES.find((severity) => rows.some((row) => row.severity === severity))!

function riskOf({ payloads }: Cluster, id: string, rows: readonly FindingRow[]): Risk {
  const stored = payloads
    .filter((one): one is Findings => one.kind === 'vulnerabilities')
    .flatMap((one) => one.rows.filter((row) => row.id === id))
  const shares = stored.map((row) => row.epss).filter((epss) => epss !== null)
  return {
    severity: worst(rows),
    kev: stored.some((row) => row.kev === true),
    epss: shares.length === 0 ? null : Math.max(...shares),
    isFixable: rows.some((row) => row.isFixable),
  }
}

/** The findings of an image by vulnerability, package and version, each with the rows that are united in it. */
function groupsOf(cluster: Cluster, image: string): FindingRow[][] {
  const groups = new Map<string, FindingRow[]>()
  for (const one of answering(cluster, image)) {
    if (one.kind !== 'vulnerabilities') continue
    for (const row of one.rows) {
      const key = JSON.stringify([row.id, row.name, row.version])
      groups.set(key, [...(groups.get(key) ?? []), row])
    }
  }
  return [...groups.values()]
}

export interface Finding {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly detail: Detail
  /** The words of the united rows: one of them is shown. */
  readonly coverages: readonly Coverage[]
  readonly tier: Tier
  /** The factors of the containers that set the tier: those of one are shown. */
  readonly factors: readonly (readonly string[])[]
}

/** The items of GET /images/{digest}/vulnerabilities, in no order. */
export function findingsOf(cluster: Cluster, image: string): Finding[] {
  const lists = imageLists(cluster, image)
  const containers = cluster.containers.filter((one) => one.image === image)
  return groupsOf(cluster, image).map((rows): Finding => {
    const { id, name, version } = rows[0]!
    const isSeen = rows.every(isObservable)
    const risk = riskOf(cluster, id, rows)
    const placed = containers.map((one) => ({
      state: judged(one, lists, name, isSeen).state,
      exposure: one.workload.exposure,
    }))
    const all = placed.length > 0 ? placed : [{ state: 'unknown', exposure: 'exposure:unknown' } as const]
    const tiers = all.map((one) => tierOf(cluster.settings, one.state, one.exposure, risk))
    const tier = mostUrgent(tiers)
    const setters = all.filter((_, i) => tiers[i] === tier)
    const state = strongest(setters.map((one) => one.state))
    return {
      ...{ id, name, version, tier },
      detail: detailOf(cluster, image, lists, name, isSeen),
      coverages: rows.map(coverageOf),
      factors: setters
        .filter((one) => one.state === state)
        .map((one) => factorsOf(cluster.settings, one.state, one.exposure, risk)),
    }
  })
}

// ---- Vulnerabilities of the cluster ---------------------------------------------------------------------------------

/** A vulnerability in a container. */
export interface Hit {
  readonly id: string
  readonly container: Container
  readonly state: State
  readonly tier: Tier
}

export function hitsOf(cluster: Cluster): Hit[] {
  const images = [...new Set(cluster.containers.map(({ image }) => image))]
  return images.flatMap((image) => {
    const lists = imageLists(cluster, image)
    const groups = groupsOf(cluster, image)
    return [...new Set(groups.map(([row]) => row!.id))].flatMap((id) => {
      const own = groups.filter(([row]) => row!.id === id)
      const risk = riskOf(cluster, id, own.flat())
      return cluster.containers
        .filter((one) => one.image === image)
        .map((container): Hit => {
          const states = own.map((rows) => judged(container, lists, rows[0]!.name, rows.every(isObservable)).state)
          const tiers = states.map((state) => tierOf(cluster.settings, state, container.workload.exposure, risk))
          return { id, container, state: strongest(states), tier: mostUrgent(tiers) }
        })
    })
  })
}

export interface SummaryRow {
  readonly id: string
  readonly severity: Severity
  readonly tier: Tier
  readonly state: State
  readonly workloads: number
  readonly executedWorkloads: number
  readonly loadedWorkloads: number
  readonly unknownWorkloads: number
  readonly notObservedWorkloads: number
  readonly exposedWorkloads: number
}

/** The items of GET /vulnerabilities of a namespace, or of the cluster where it is null, in their order. */
export function summaryOf(cluster: Cluster, namespace: string | null): SummaryRow[] {
  const hits = hitsOf(cluster)
  const rows = [...new Set(hits.map(({ id }) => id))].flatMap((id): SummaryRow[] => {
    const everywhere = hits.filter((hit) => hit.id === id)
    const placed = everywhere.filter(({ container }) => [null, container.workload.namespace].includes(namespace))
    if (placed.length === 0) return []
    const images = new Set(everywhere.map(({ container }) => container.image))
    const found = [...images].flatMap((image) => groupsOf(cluster, image).flat()).filter((row) => row.id === id)
    const workloads = [...new Set(placed.map(({ container }) => container.workload))]
    const states = workloads.map((one) =>
      strongest(placed.filter(({ container }) => container.workload === one).map((hit) => hit.state)),
    )
    const count = (state: State) => states.filter((one) => one === state).length
    return [
      {
        ...{ id, severity: worst(found), tier: mostUrgent(placed.map((hit) => hit.tier)), state: strongest(states) },
        workloads: workloads.length,
        executedWorkloads: count('executed'),
        loadedWorkloads: count('loaded'),
        unknownWorkloads: count('unknown'),
        notObservedWorkloads: count('installed_not_observed'),
        exposedWorkloads: workloads.filter(({ exposure }) => exposure === 'exposed').length,
      },
    ]
  })
  const place = (row: SummaryRow) => [TIERS.indexOf(row.tier), SEVERITIES.indexOf(row.severity)] as const
  return rows.sort((a, b) => {
    const [tier, severity] = place(a).map((value, i) => value - place(b)[i]!) as [number, number]
    return tier || severity || (a.id < b.id ? -1 : 1)
  })
}
