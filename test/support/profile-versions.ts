/** Snapshots, summaries and stored versions of workloads of our own. */
import type { Gate } from '../../lib/db/index.ts'
import type { WorkloadKey } from '../../lib/profile/built.ts'
import type { ContainerContext } from '../../lib/profile/record/pod-security.ts'
import type { Profile } from '../../lib/profile/record/profile.ts'
import type { Snapshot, SnapshotRule } from '../../lib/profile/snapshot.ts'
import {
  hashSnapshot,
  type ProfileSummary,
  type StoredVersion,
  storeVersion,
} from '../../lib/profile/versions/index.ts'
import { digestOf } from './images.ts'

export const OPEN_CONTEXT: ContainerContext = {
  privileged: null,
  allowPrivilegeEscalation: null,
  runAsNonRoot: null,
  runAsUser: null,
  runAsGroup: null,
  readOnlyRootFilesystem: null,
  capabilitiesAdd: null,
  capabilitiesDrop: null,
  seccompProfileType: null,
}

export const contained = (fields: Partial<ContainerContext> = {}, kind: 'init' | 'regular' = 'regular') => ({
  kind,
  securityContext: { ...OPEN_CONTEXT, ...fields },
})

export const POD: NonNullable<Snapshot['podSecurity']['pod']> = {
  known: true,
  serviceAccountName: 'books',
  automountServiceAccountToken: null,
  hostNetwork: false,
  hostPID: null,
  hostIPC: null,
  hostUsers: null,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: null,
    runAsGroup: null,
    fsGroup: 500,
    seccompProfileType: 'RuntimeDefault',
  },
}

export const toDatabase: SnapshotRule = {
  direction: 'egress',
  peer: 'pod:shelf/StatefulSet/pages',
  port: 5432,
  protocol: 'TCP',
}

/** The snapshot of a workload with the containers `web` and `setup`. */
export const snapshotOf = (changes: Partial<Snapshot> = {}): Snapshot => ({
  podSecurity: { level: 'baseline', pod: POD, containers: { web: contained(), setup: contained({}, 'init') } },
  images: { containers: { web: [digestOf('web')], setup: [] } },
  syscalls: { syscalls: ['openat', 'read'], captureLevel: 'high', cr: null },
  network: { rules: [toDatabase] },
  ...changes,
})

export const summary = (changes: Partial<ProfileSummary> = {}): ProfileSummary => ({
  dimensions: {
    compute: { status: 'ok' },
    images: { mixedDigests: false, runningDigests: 1, signature: 'unsigned', status: 'unknown' },
    network: { status: 'warn' },
    podSecurity: { level: 'baseline', levelConfidence: 'upper_bound', status: 'warn' },
    syscalls: { status: 'ok' },
  },
  drift: { byType: {}, count: 0 },
  findingCounts: { critical: 0, high: 0, info: 0, low: 2, medium: 1 },
  posture: { coverage: 0.75, status: 'warn', unknownDimensions: ['images'] },
  ...changes,
})

export const workload = (namespace: string, name = 'books', kind = 'Deployment'): WorkloadKey => ({
  namespace,
  kind,
  name,
})

interface Stored {
  readonly snapshot?: Partial<Snapshot>
  readonly summary?: Partial<ProfileSummary>
  readonly most?: number
}

/** Stores a version as the snapshotter does. */
export function storeState(gate: Gate, key: WorkloadKey, given: Stored = {}): Promise<StoredVersion> {
  const [snapshot, shown] = [snapshotOf(given.snapshot), summary(given.summary)]
  const { status, coverage } = shown.posture
  const version = {
    ...hashSnapshot(snapshot),
    posture: { status, coverage },
    summary: shown,
    ruleCount: snapshot.network.rules.length,
  }
  return storeVersion(gate, key, version, given.most ?? 50)
}

/** Syscalls that make each number another state. */
export const state = (n: number): Stored => ({
  snapshot: { syscalls: { syscalls: [`call_${n}`], captureLevel: 'high', cr: null } },
})

export const profilePath = ({ namespace, kind, name }: WorkloadKey, rest: string) =>
  `/workloads/${[namespace, kind, name].map(encodeURIComponent).join('/')}/profile${rest}`

const envelope = {
  status: 'unknown' as const,
  coverage: { level: 'none' as const, fraction: null, observedSince: null, note: '' },
  reasons: [],
}

/** A profile with little in it, and with the parts that its summary shows. */
export const profileOf = (changes: Partial<Profile> = {}): Profile => ({
  workload: {
    ...{ clusterId: 'primary', namespace: 'shop', kind: 'Deployment', name: 'books', transient: false },
    pods: { live: 0, names: [], truncated: false },
  },
  generatedAt: '2026-01-01T00:00:00Z',
  contentHash: 'fnv1a64:0000000000000000',
  version: null,
  snapshotPending: true,
  posture: { status: 'warn', coverage: 0.25, unknownDimensions: ['network', 'syscalls', 'images'], reasons: [] },
  attention: [],
  findings: [],
  controls: [],
  readiness: [],
  exposure: { ingressPeers: null, ingressExternal: null, egressPeers: null, egressExternal: null },
  drift: { baselines: { export: null, securityContext: null }, evaluated: [], notEvaluated: [], items: [] },
  capabilities: { windowHours: 168, containers: [] },
  dimensions: {
    network: {
      ...envelope,
      summary: { egress: { peers: 0, external: 0, ports: [] }, ingress: { peers: 0, external: 0, ports: [] } },
      ...{ peers: [], truncated: false, policy: { audit: null, enforced: null } },
    },
    syscalls: { ...envelope, observed: null, capture: null, cr: null, denials: null },
    podSecurity: {
      ...envelope,
      ...{ status: 'warn', pssVersion: 'v1.34', level: 'baseline', levelConfidence: 'upper_bound' },
      ...{ unevaluatedChecks: [], pod: { ...POD, failing: [] }, containers: [], recommendation: null },
      staleContainers: [],
    },
    images: {
      ...envelope,
      ...{ runningWindowSeconds: 900, containers: [], truncated: false, vulnerabilities: null, supplyChain: null },
    },
    compute: { ...envelope, containers: [], truncated: false },
  },
  ...changes,
})
