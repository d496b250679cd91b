/** Computes the profile of a workload (docs/contract.md#workload-profiles). */
import type { Config } from '../config/index.ts'
import type { Database, Gate } from '../db/index.ts'
import { capabilityRetentionDays, readCapabilities } from '../runtime/capabilities/index.ts'
import { readProfile } from '../seccomp/index.ts'
import type { BuiltProfile, WorkloadKey } from './built.ts'
import { judgeCompute, readCompute } from './compute/index.ts'
import { controlsOf, readinessOf } from './controls.ts'
import { judgeDrift, readDriftFacts } from './drift/index.ts'
import { imageSignedOf, imagesSnapshot, judgeImages, readImageFacts } from './images/index.ts'
import { isKnownWorkload } from './known.ts'
import { judgeNetwork, listed, networkSnapshot, readAudit, readEdges, readExamples } from './network/index.ts'
import { judgePodSecurity, podSecuritySnapshot, rejudge } from './pod-security/index.ts'
import { inOrder, isMediumOrWorse, postureOf } from './posture.ts'
import { readWorkload } from './read.ts'
import { judgeSyscalls, syscallsSnapshot } from './syscalls/index.ts'
import { hashSnapshot } from './versions/index.ts'

/** Memory of a profile: the rows of its statements, with at most 10 000 edges, and its text. */
export const PROFILE_BYTES = 8 * 1_024 * 1_024

const MAX_ATTENTION = 5
const NO_PEERS = { ingressPeers: null, ingressExternal: null, egressPeers: null, egressExternal: null }

/**
 * Computes a profile from what is stored now, one statement after the other on `gate`. `images.supplyChain.imageTrust`
 * is null: only the route asks the evaluator. Resolves to null if nothing is known of the workload.
 */
export async function buildProfile(
  { config }: { readonly db: Database; readonly config: Config },
  key: WorkloadKey,
  gate: Gate,
): Promise<BuiltProfile | null> {
  if (!(await isKnownWorkload(gate, key))) return null
  const facts = await readFacts(config, key, gate)
  const { workload, edges } = facts
  const { inventory: rows, isInventoryTruncated: isTruncated } = workload

  const network = judgeNetwork({ ...facts, livePods: workload.pods.live, areFlowsCounted: workload.areFlowsCounted })
  const syscalls = judgeSyscalls(facts.observed)
  const podSecurity = judgePodSecurity({ rows, workloadKind: key.kind, capabilities: facts.capabilities })
  const images = judgeImages(rows, facts.images, {
    runningWindowSecs: config.imageRunningWindowSecs,
    isDiscoveryConfigured: config.isSignatureDiscoveryEnabled,
    isTruncated,
  })
  const compute = judgeCompute(facts.compute)
  const snapshot = {
    network: networkSnapshot(edges),
    syscalls: syscallsSnapshot(facts.observed),
    podSecurity: podSecuritySnapshot(podSecurity.dimension),
    images: imagesSnapshot(rows),
  }
  const { contentHash, dimensionHashes } = hashSnapshot(snapshot)
  const now = { rows, isTruncated, podSecurity: snapshot.podSecurity, dimensionHashes, rejudge }
  const drift = judgeDrift(facts.drift, now)

  const dimensions = {
    network: network.dimension,
    syscalls: syscalls.dimension,
    podSecurity: podSecurity.dimension,
    images: images.dimension,
    compute: compute.dimension,
  }
  const findings = inOrder([network, syscalls, podSecurity, images, compute, drift].flatMap((one) => one.findings))
  const { egress, ingress } = network.dimension.summary
  const { version } = workload
  return {
    snapshot,
    areFlowsCounted: workload.areFlowsCounted,
    profile: {
      workload: { clusterId: 'primary', ...key, transient: key.kind === 'Pod', pods: workload.pods },
      generatedAt: new Date(workload.now).toISOString(),
      contentHash,
      version,
      snapshotPending: version?.contentHash !== contentHash,
      posture: postureOf(dimensions, findings),
      attention: findings.filter(isMediumOrWorse).slice(0, MAX_ATTENTION),
      findings,
      controls: controlsOf(dimensions, workload.seccompProfile),
      readiness: readinessOf(dimensions, imageSignedOf(images.dimension), workload.now),
      exposure:
        edges.length === 0
          ? NO_PEERS
          : {
              ingressPeers: ingress.peers,
              ingressExternal: ingress.external,
              egressPeers: egress.peers,
              egressExternal: egress.external,
            },
      drift: drift.dimension,
      capabilities: facts.capabilities,
      dimensions,
    },
  }
}

/** One after the other, so that a profile holds one connection. */
async function readFacts(config: Config, key: WorkloadKey, gate: Gate) {
  const workload = await readWorkload(gate, key, config.imageRunningWindowSecs)
  const edges = await readEdges(gate, key)
  return {
    workload,
    edges,
    examples: await readExamples(gate, listed(edges)),
    audit: await readAudit(gate, key, config.auditRetentionDays),
    observed: await readProfile(gate, config, key),
    capabilities: await readCapabilities(gate, {
      ...key,
      windowHours: config.capabilityEvidenceWindowHours,
      runningWindowSecs: config.imageRunningWindowSecs,
      retentionDays: capabilityRetentionDays(config),
    }),
    images: await readImageFacts(gate, key, workload.inventory, { retentionDays: config.attestationRetentionDays }),
    drift: await readDriftFacts(gate, key, workload.inventory, { retentionDays: config.runtimeInventoryRetentionDays }),
    compute: await readCompute(gate, key),
  }
}
