/** Profiles made without a database, for tests of what is made from them. */
import type { BuiltProfile, WorkloadKey } from '../../lib/profile/built.ts'
import type { Profile } from '../../lib/profile/record/profile.ts'

type Dimensions = Profile['dimensions']
type ProfileContainer = Dimensions['images']['containers'][number]
type JudgedContainer = Dimensions['podSecurity']['containers'][number]
type ProfileImage = ProfileContainer['running'][number]

const ENVELOPE = {
  status: 'unknown',
  coverage: { level: 'none', fraction: null, observedSince: null, note: 'nothing is known' },
  reasons: [{ code: 'none', message: 'nothing is known' }],
} as const
const SUMMARY = { peers: 0, external: 0, ports: [] }
const NO_CONTEXT = {
  ...{ runAsNonRoot: null, runAsUser: null, runAsGroup: null, seccompProfileType: null },
}

export const image = (digest: string, fields: Partial<ProfileImage> = {}): ProfileImage => ({
  digest,
  imageRef: 'registry.test/team/app:v1',
  state: 'running',
  stateReason: null,
  ranAsInit: false,
  lastPodName: null,
  firstSeen: '2026-01-01T09:00:00Z',
  lastSeen: '2026-01-02T09:00:00Z',
  ...fields,
})

export const imageContainer = (name: string, fields: Partial<ProfileContainer> = {}): ProfileContainer => ({
  ...{ name, kind: 'regular', mixedDigests: false, stale: false, running: [], previous: [] },
  ...fields,
})

export const judgedContainer = (name: string, digest: string): JudgedContainer => ({
  ...{ name, kind: 'regular', source: 'running', digest, level: 'baseline', failing: [] },
  securityContext: {
    ...NO_CONTEXT,
    ...{ privileged: null, allowPrivilegeEscalation: null, readOnlyRootFilesystem: null },
    ...{ capabilitiesAdd: null, capabilitiesDrop: null },
  },
})

export const flowPeer = (fields: Partial<Dimensions['network']['peers'][number]> = {}) => ({
  ...{ direction: 'egress' as const, protocol: 'TCP', port: 443, flows: 1 },
  peer: {
    ...{ kind: 'external' as const, namespace: null, workloadKind: null, workloadName: null, name: null },
    ip: '93.184.216.34',
  },
  ...{ firstSeen: '2026-01-01T09:00:00Z', lastSeen: '2026-01-02T09:00:00Z' },
  ...fields,
})

export const recommendation = (yaml: string, caveats: string[] = []) => ({
  ...{ recommendation: true as const, targetLevel: 'restricted' as const, format: 'strategic-merge-patch' as const },
  ...{ yaml, caveats },
})

export interface ProfileParts {
  readonly containers?: ProfileContainer[]
  readonly podSecurity?: Partial<Dimensions['podSecurity']>
  readonly network?: Partial<Dimensions['network']>
  /** Whether traffic was observed for 24 hours; null where that is not known. */
  readonly isObserved?: boolean | null
  readonly version?: Profile['version']
}

/** A profile of a workload of which nothing is known but these parts. */
export function profileOf(
  { namespace, kind, name }: WorkloadKey,
  { containers = [], podSecurity = {}, network = {}, isObserved = false, version = null }: ProfileParts = {},
): BuiltProfile {
  const contentHash = 'fnv1a64:0123456789abcdef'
  const pod = {
    ...{ known: false, serviceAccountName: null, automountServiceAccountToken: null, hostNetwork: null, hostPID: null },
    ...{ hostIPC: null, hostUsers: null, securityContext: { ...NO_CONTEXT, fsGroup: null } },
  }
  const profile: Profile = {
    workload: {
      ...{ clusterId: 'primary', namespace, kind, name, transient: kind === 'Pod' },
      pods: { live: 0, names: [], truncated: false },
    },
    generatedAt: '2026-01-03T09:00:00.123456Z',
    contentHash,
    version,
    snapshotPending: version === null,
    posture: { status: 'unknown', coverage: 0, unknownDimensions: [], reasons: [] },
    attention: [],
    findings: [],
    controls: [],
    readiness: [{ id: 'trafficObserved24h', ok: isObserved, message: 'whether traffic was observed' }],
    exposure: { ingressPeers: null, ingressExternal: null, egressPeers: null, egressExternal: null },
    drift: {
      ...{ baselines: { export: null, securityContext: null }, evaluated: [], notEvaluated: [], items: [] },
    },
    capabilities: { windowHours: 168, containers: [] },
    dimensions: {
      network: {
        ...{ ...ENVELOPE, reasons: [], summary: { egress: SUMMARY, ingress: SUMMARY }, peers: [], truncated: false },
        ...{ policy: { audit: null, enforced: null } },
        ...network,
      },
      syscalls: { ...ENVELOPE, reasons: [], observed: null, capture: null, cr: null, denials: null },
      podSecurity: {
        ...{ ...ENVELOPE, reasons: [], pssVersion: 'v1.35', level: null, levelConfidence: null },
        ...{ unevaluatedChecks: [], pod: { ...pod, failing: [] }, containers: [], recommendation: null },
        ...{ staleContainers: [] },
        ...podSecurity,
      },
      images: {
        ...{ ...ENVELOPE, reasons: [], runningWindowSeconds: 900, containers, truncated: false },
        ...{ vulnerabilities: null, supplyChain: null },
      },
      compute: { ...ENVELOPE, reasons: [], containers: [], truncated: false },
    },
  }
  const digests = containers.map((one) => [one.name, one.running.map(({ digest }) => digest).sort()])
  return {
    profile,
    areFlowsCounted: true,
    snapshot: {
      network: { rules: [] },
      syscalls: { syscalls: null, captureLevel: null, cr: null },
      podSecurity: { level: null, pod, containers: {} },
      images: { containers: Object.fromEntries(digests) },
    },
  }
}
