/** Snapshots, summaries and stored versions of workloads of our own. */
import type { Gate } from '../../lib/db/index.ts'
import type { WorkloadKey } from '../../lib/profile/built.ts'
import type { ContainerContext } from '../../lib/profile/record/pod-security.ts'
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
