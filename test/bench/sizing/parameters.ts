/** The cluster that the estimate assumes. */
import { loadConfig } from '../../../lib/config/index.ts'

export interface Parameter {
  readonly value: number
  readonly unit: string
  readonly reason: string
}

const config = loadConfig({})

/** Retention as it is by default, in days. */
export const RETENTION_DAYS = {
  flows: config.trafficRetentionDays,
  edges: config.flowEdgeRetentionDays,
  verdicts: config.auditRetentionDays,
  deadPods: config.deadPodRetentionDays || config.auditRetentionDays || 7,
  images: config.imageInventoryRetentionDays,
  denials: config.seccompDenialsRetentionDays,
  runtime: config.runtimeInventoryRetentionDays,
  profiles: config.profileVersionsRetentionDays,
  compute: config.computeHistoryRetentionDays,
} as const

export const PARAMETERS = {
  podsPerNode: { value: 30, unit: 'pods', reason: 'common on nodes of 8 to 16 cores; the kubelet allows 110' },
  containersPerPod: { value: 1.5, unit: 'containers', reason: 'every other pod has a sidecar' },
  podsPerWorkload: { value: 10, unit: 'pods', reason: 'a few replicas, and DaemonSets with one on each node' },
  podsPerService: { value: 20, unit: 'pods', reason: 'every other workload is behind a service' },
  podChurnPerDay: { value: 0.5, unit: 'of all pods a day', reason: 'releases, jobs and autoscaling replace pods' },
  rolloutsPerWorkloadDay: { value: 0.1, unit: 'new images a workload and day', reason: 'a release each second week' },
  newFlowsPerPodDay: { value: 100, unit: 'new flows a pod and day', reason: 'its peers are replaced as it is itself' },
  repeatsPerNewFlow: {
    value: 1,
    unit: 'repeats of each new flow',
    reason: 'agents that restart report all flows again',
  },
  flowsPerPost: { value: 5, unit: 'flows a post', reason: 'an agent waits at most a second for more' },
  edgesPerWorkload: { value: 20, unit: 'edges', reason: 'peers, ports and directions of a service' },
  verdictsPerNewFlow: { value: 0.2, unit: 'verdicts a new flow', reason: 'one pod in five is under an audited policy' },
  syscallPostsPerPodDay: { value: 20, unit: 'posts a pod and day', reason: 'only new names are posted' },
  podPostSecs: { value: 60, unit: 's', reason: 'agents post each live pod once a minute' },
  servicePostSecs: { value: 60, unit: 's', reason: 'the same for services' },
  nodeFactsSecs: { value: 3_600, unit: 's', reason: 'the platform of a node hardly changes' },
  sampleSecs: { value: 5, unit: 's', reason: 'interval of samples' },
  minuteSecs: { value: 60, unit: 's', reason: 'interval of history' },
  pairsPerContainerMinute: {
    value: 2,
    unit: 'contention pairs a container and minute',
    reason: 'agents report up to ten; bytes of compute history are measured with it',
  },
  heartbeatSecs: { value: 300, unit: 's', reason: 'interval of heartbeats of watched containers' },
  executablesPerContainer: { value: 150, unit: 'files', reason: 'programs and libraries that a service loads' },
  executableRepeatSecs: { value: 3_600, unit: 's', reason: 'agents repeat each known file once an hour' },
  executablePostSecs: { value: 10, unit: 's', reason: 'interval of posts of executables' },
  capabilitiesPerContainer: { value: 5, unit: 'capabilities', reason: 'most containers use a handful' },
  capabilityPostSecs: { value: 300, unit: 's', reason: 'interval of posts of capabilities' },
  denialsPerPod: { value: 0.5, unit: 'kinds of denials a pod', reason: 'one pod in ten breaks its profile five ways' },
  denialPostSecs: { value: 10, unit: 's', reason: 'agents post denials of a node, also when there are none' },
  nodeFilesSecs: { value: 30, unit: 's', reason: 'interval of the list of profiles on a node' },
  imagesPerWorkload: { value: 1.2, unit: 'images', reason: 'one of its own, and sidecars that many share' },
  findingsPerImage: {
    value: 300,
    unit: 'findings, of all sources',
    reason: 'a base image and a runtime with packages',
  },
  componentsPerImage: { value: 400, unit: 'components', reason: 'the same' },
  scansPerImageDay: { value: 1, unit: 'a day and image', reason: 'scanners run daily' },
  profileVersionsPerWorkloadDay: { value: 0.2, unit: 'versions a workload and day', reason: 'rollouts and new peers' },
  tableReserve: { value: 1.25, unit: 'times', reason: 'rows that were replaced and are not vacuumed yet' },
  maxReplicaCpu: { value: 0.5, unit: 'cores a replica', reason: 'half of the core stays for readers and peaks' },
  maxPostgresCpu: { value: 0.5, unit: 'of its cores', reason: 'half stays for readers, vacuum, backups and peaks' },
  minReplicas: { value: 2, unit: 'replicas', reason: 'availability' },
} as const satisfies Record<string, Parameter>

export type Parameters = Readonly<Record<keyof typeof PARAMETERS, number>>

export const DEFAULTS = Object.fromEntries(
  Object.entries(PARAMETERS).map(([name, { value }]) => [name, value]),
) as unknown as Parameters

/** One large server, as cloud providers offer it. */
export const SERVER_LIMITS = {
  cores: 32,
  diskBytes: 4e12,
  /** Of write-ahead log: what a volume and a standby take besides the tables. */
  walBytesPerSec: 200e6,
  connections: 1_000,
} as const
