/** What a cluster of so many nodes asks of brokers and of PostgreSQL: pure functions of the figures measured. */
import { loadConfig } from '../../../lib/config/index.ts'
import { JOBS, type JobName, type Measured, POSTS, type PostName, type Work } from './measured.ts'
import { DEFAULTS, type Parameters, RETENTION_DAYS, SERVER_LIMITS } from './parameters.ts'
import { TOPICS, type TopicName, topicOf } from './topics.ts'

const DAY_SECS = 86_400
const { dbPoolMaxSize: POOL_SIZE, profileSnapshotIntervalSecs } = loadConfig({})
/** More nodes than any cluster has: the search for an end stops there. */
const MAX_NODES = 1_000_000

export type Retention = Readonly<Record<keyof typeof RETENTION_DAYS, number>>

interface Posted {
  readonly requestsPerSecond: number
  readonly entriesPerSecond: number
}

export interface Disk {
  /** What is stored a day that was not there before. */
  readonly bytesPerDay: number
  /** Once as much is deleted as is stored. */
  readonly bytes: number
}

export interface Estimate {
  readonly nodes: number
  readonly pods: number
  readonly containers: number
  readonly posts: Readonly<Record<PostName, Posted>>
  readonly requestsPerSecond: number
  readonly entriesPerSecond: number
  /** Cores that all brokers use together. */
  readonly brokerCores: number
  readonly replicas: number
  /** With the replica that an update adds. */
  readonly connections: number
  /** Cores that PostgreSQL uses, jobs included. */
  readonly postgresCoresUsed: number
  /** Cores that its server needs, so that as much stays free as the parameters say. */
  readonly postgresCores: number
  readonly walBytesPerSec: number
  readonly disk: Readonly<Record<TopicName, Disk>>
  readonly diskBytesPerDay: number
  readonly diskBytes: number
}

/** Bytes of a unit of each topic, as measured; 0 where nothing was measured. */
export function unitBytes({ tables }: Pick<Measured, 'tables'>): Record<TopicName, number> {
  const entries = (Object.keys(TOPICS) as TopicName[]).map((topic) => {
    const bytes = tables.filter(({ table }) => topicOf(table) === topic).reduce((sum, one) => sum + one.bytes, 0)
    const units = tables.find(({ table }) => table === TOPICS[topic].countedBy)?.rows ?? 0
    return [topic, units === 0 ? 0 : bytes / units] as const
  })
  return Object.fromEntries(entries) as Record<TopicName, number>
}

/** Objects of a cluster of so many nodes. */
function clusterOf(nodes: number, p: Parameters) {
  const pods = nodes * p.podsPerNode
  const workloads = pods / p.podsPerWorkload
  const images = workloads * p.imagesPerWorkload
  return {
    ...{ pods, workloads, images },
    containers: pods * p.containersPerPod,
    services: pods / p.podsPerService,
    workloadContainers: workloads * p.containersPerPod,
    /** A day. */
    newPods: pods * p.podChurnPerDay,
    newFlows: pods * p.newFlowsPerPodDay,
    newImages: images * p.rolloutsPerWorkloadDay,
    newWorkloadContainers: workloads * p.containersPerPod * p.rolloutsPerWorkloadDay,
  }
}

/** What agents and scanners post, in requests and entries a second. */
export function postsOf(nodes: number, p: Parameters = DEFAULTS): Record<PostName, Posted> {
  const c = clusterOf(nodes, p)
  const per = (entriesPerSecond: number, perRequest = 1): Posted => ({
    requestsPerSecond: entriesPerSecond / perRequest,
    entriesPerSecond,
  })
  const both = (requestsPerSecond: number, entriesPerSecond: number) => ({ requestsPerSecond, entriesPerSecond })
  const none = per(0)
  // With an evaluator, it is asked about every new flow.
  const newFlows = per(c.newFlows / DAY_SECS, p.flowsPerPost)
  const isEvaluated = p.verdictsPerNewFlow > 0
  return {
    newPods: per(c.newPods / DAY_SECS),
    knownPods: per(c.pods / p.podPostSecs),
    services: per(c.services / p.servicePostSecs),
    nodeFacts: per(nodes / p.nodeFactsSecs),
    syscalls: per((c.pods * p.syscallPostsPerPodDay) / DAY_SECS),
    newFlows: none,
    fewNewFlows: isEvaluated ? none : newFlows,
    knownFlows: per((c.newFlows * p.repeatsPerNewFlow) / DAY_SECS, 100),
    evaluatedFlows: isEvaluated ? newFlows : none,
    samples: both(nodes / p.sampleSecs, c.containers / p.sampleSecs),
    nodeSamples: none,
    minutes: both(nodes / p.minuteSecs, c.containers / p.minuteSecs),
    newExecutables: per((c.newWorkloadContainers * p.executablesPerContainer) / DAY_SECS, p.executablesPerContainer),
    knownExecutables: both(
      nodes / p.executablePostSecs,
      (c.containers * p.executablesPerContainer) / p.executableRepeatSecs,
    ),
    newHeartbeats: per((c.newPods * p.containersPerPod) / DAY_SECS),
    heartbeats: both(nodes / p.heartbeatSecs, c.containers / p.heartbeatSecs),
    capabilities: both(
      nodes / p.capabilityPostSecs,
      (c.containers * p.capabilitiesPerContainer) / p.capabilityPostSecs,
    ),
    denials: per((c.newPods * p.denialsPerPod) / DAY_SECS),
    drains: per(nodes / p.denialPostSecs),
    nodeFiles: per(nodes / p.nodeFilesSecs),
    newFindings: per((c.newImages * p.findingsPerImage) / DAY_SECS, p.findingsPerImage),
    knownFindings: per((c.images * p.scansPerImageDay * p.findingsPerImage) / DAY_SECS, p.findingsPerImage),
    components: per((c.newImages * p.componentsPerImage) / DAY_SECS, p.componentsPerImage),
  }
}

/** Entries that each job takes on, a second. */
function jobEntriesOf(nodes: number, p: Parameters): Record<JobName, number> {
  const c = clusterOf(nodes, p)
  return {
    'flow-edges': c.newFlows / DAY_SECS,
    'compute-': c.containers / p.minuteSecs,
    'supply-chain-refresh': (c.newImages * (p.findingsPerImage + p.componentsPerImage)) / DAY_SECS,
    // Each pass computes all profiles.
    'profile-snapshots': c.workloads / profileSnapshotIntervalSecs,
  }
}

/** Units of each topic: how many are new each day, and how many are kept. */
export function unitsOf(
  nodes: number,
  p: Parameters = DEFAULTS,
  days: Retention = RETENTION_DAYS,
): Record<TopicName, { perDay: number; kept: number }> {
  const c = clusterOf(nodes, p)
  /** So many live on, and those that came and went are kept for so many days. */
  const live = (alive: number, perDay: number, keptDays: number) => ({ perDay, kept: alive + perDay * keptDays })
  const edges = c.workloads * p.edgesPerWorkload
  const files = c.workloadContainers * p.executablesPerContainer
  const versions = c.workloads * p.profileVersionsPerWorkloadDay
  return {
    flows: live(0, c.newFlows, days.flows),
    edges: live(edges, 0, days.edges),
    edgePods: live(edges * p.podsPerWorkload, edges * p.podsPerWorkload * p.podChurnPerDay, days.edges),
    verdicts: live(0, c.newFlows * p.verdictsPerNewFlow, days.verdicts),
    pods: live(c.pods, c.newPods, days.deadPods),
    services: live(c.services, 0, 0),
    nodes: live(nodes, 0, 0),
    denials: live(c.pods * p.denialsPerPod, c.newPods * p.denialsPerPod, days.denials),
    executables: live(files, files * p.rolloutsPerWorkloadDay, days.runtime),
    watched: live(c.containers, c.newPods * p.containersPerPod, days.runtime),
    capabilities: live(
      c.workloadContainers * p.capabilitiesPerContainer,
      c.newWorkloadContainers * p.capabilitiesPerContainer,
      days.runtime,
    ),
    images: live(c.workloadContainers, c.newWorkloadContainers, days.images),
    findings: live(c.images * p.findingsPerImage, c.newImages * p.findingsPerImage, days.images),
    components: live(c.images * p.componentsPerImage, c.newImages * p.componentsPerImage, days.images),
    profiles: live(c.workloads, versions, days.profiles),
    samples: live(c.containers, 0, 0),
    // A unit is all that is kept of a container, so that a day of all is their number, divided by the days.
    compute: {
      perDay: c.containers / RETENTION_DAYS.compute,
      kept: (c.containers * days.compute) / RETENTION_DAYS.compute,
    },
  }
}

const perEntry = (work: Work, value: 'brokerCpuSecs' | 'postgresCpuSecs' | 'walBytes') =>
  work.entries === 0 ? 0 : work[value] / work.entries

export function model(
  nodes: number,
  measured: Measured,
  p: Parameters = DEFAULTS,
  days: Retention = RETENTION_DAYS,
): Estimate {
  const posts = postsOf(nodes, p)
  const names = Object.keys(POSTS) as PostName[]
  const total = (of: (name: PostName) => number) => names.reduce((sum, name) => sum + of(name), 0)
  const jobEntries = jobEntriesOf(nodes, p)
  /** A job that cannot keep up uses one core and comes round later. */
  const shareOf = (name: JobName) =>
    1 / Math.max(1, jobEntries[name] * perEntry(measured.jobs[name], 'postgresCpuSecs'))
  const ofJobs = (value: 'postgresCpuSecs' | 'walBytes') =>
    (Object.keys(JOBS) as JobName[]).reduce(
      (sum, name) => sum + shareOf(name) * jobEntries[name] * perEntry(measured.jobs[name], value),
      0,
    )
  const used = (value: 'brokerCpuSecs' | 'postgresCpuSecs' | 'walBytes') =>
    total((name) => posts[name].entriesPerSecond * perEntry(measured.posts[name], value))

  const brokerCores = used('brokerCpuSecs')
  const replicas = Math.max(p.minReplicas, Math.ceil(brokerCores / p.maxReplicaCpu))
  const postgresCoresUsed = used('postgresCpuSecs') + ofJobs('postgresCpuSecs')
  const bytes = unitBytes(measured)
  const units = Object.entries(unitsOf(nodes, p, days)) as [TopicName, { perDay: number; kept: number }][]
  const disk = Object.fromEntries(
    units.map(([topic, { perDay, kept }]) => [
      topic,
      { bytesPerDay: perDay * bytes[topic] * p.tableReserve, bytes: kept * bytes[topic] * p.tableReserve },
    ]),
  ) as Record<TopicName, Disk>
  const c = clusterOf(nodes, p)
  return {
    ...{ nodes, pods: c.pods, containers: c.containers, posts },
    requestsPerSecond: total((name) => posts[name].requestsPerSecond),
    entriesPerSecond: total((name) => posts[name].entriesPerSecond),
    ...{ brokerCores, replicas, connections: (replicas + 1) * POOL_SIZE, postgresCoresUsed },
    postgresCores: Math.max(1, Math.ceil(postgresCoresUsed / p.maxPostgresCpu)),
    walBytesPerSec: used('walBytes') + ofJobs('walBytes'),
    disk,
    diskBytesPerDay: Object.values(disk).reduce((sum, one) => sum + one.bytesPerDay, 0),
    diskBytes: Object.values(disk).reduce((sum, one) => sum + one.bytes, 0),
  }
}

export const LIMITS = {
  disk: ({ diskBytes }) => diskBytes <= SERVER_LIMITS.diskBytes,
  cores: ({ postgresCores }) => postgresCores <= SERVER_LIMITS.cores,
  'write-ahead log': ({ walBytesPerSec }) => walBytesPerSec <= SERVER_LIMITS.walBytesPerSec,
  connections: ({ connections }) => connections <= SERVER_LIMITS.connections,
} as const satisfies Record<string, (estimate: Estimate) => boolean>
export type LimitName = keyof typeof LIMITS

/** The largest number from 0 to `most` for which it holds, if it holds for all below. */
export function largest(most: number, holds: (n: number) => boolean): number {
  let [low, high] = [0, most]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (holds(middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** The nodes with which each limit of one server is reached, the lowest first. */
export const endsOf = (
  measured: Measured,
  p: Parameters = DEFAULTS,
  days: Retention = RETENTION_DAYS,
): { limit: LimitName; nodes: number }[] =>
  (Object.keys(LIMITS) as LimitName[])
    .map((limit) => ({ limit, nodes: largest(MAX_NODES, (nodes) => LIMITS[limit](model(nodes, measured, p, days))) }))
    .sort((a, b) => a.nodes - b.nodes)
