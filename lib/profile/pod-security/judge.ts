/** Judges a workload by the Pod Security Standards (docs/contract.md#workload-profiles). */
import type { WorkloadCapabilities } from '../../runtime/capabilities/index.ts'
import { type Judged, statusOf } from '../finding.ts'
import type { InventoryRow } from '../inventory.ts'
import type { Finding, Status } from '../record/common.ts'
import { CHECKS, type Check, type Level, type PodSecurity } from '../record/pod-security.ts'
import { earliest } from '../times.ts'
import { caveatsOf } from './caveats.ts'
import { PSS_VERSION, UNSEEN_CHECKS } from './checks.ts'
import { containerContext, type PodBlock, podBlock, UNKNOWN_POD } from './contexts.ts'
import { findingsOf } from './findings.ts'
import { type Judgement, judgeContexts } from './judgement.ts'
import { patchOf } from './patch.ts'
import { patchYaml } from './patch-yaml.ts'
import { noLevelReason, reasonsOf } from './reasons.ts'
import { newest, type Selected, select } from './selection.ts'

export interface PodSecurityFacts {
  /** Of the image inventory, in any order. */
  readonly rows: readonly InventoryRow[]
  readonly workloadKind: string
  readonly capabilities: WorkloadCapabilities
}

/** The dimension and its findings; those of the pod come first, then those of each container by name. */
export function judgePodSecurity({ rows, workloadKind, capabilities }: PodSecurityFacts): Judged<PodSecurity> {
  const { judged, stale } = select(rows)
  const staleContainers = stale.map(({ container: name, kind, digest, lastSeen }) => ({ name, kind, digest, lastSeen }))
  if (judged.length === 0) return { dimension: unknownDimension(staleContainers), findings: [] }
  const block = podBlock(newest(judged.map(({ row }) => row))!.podSecurity)
  const judgement = judgeContexts(block, judged.map(contextOf))
  const findings = findingsOf(block, judgement.containers)
  const unevaluatedChecks = unevaluated(block, judgement)
  return {
    dimension: {
      status: statusWith(judgement.level, findings),
      coverage: {
        level: 'partial',
        fraction: Math.round((1 - unevaluatedChecks.length / CHECKS.length) * 100) / 100,
        observedSince: earliest(judged.map(({ row }) => row.firstSeen)),
        note: coverageNote(CHECKS.length - unevaluatedChecks.length),
      },
      reasons: reasonsOf(
        block,
        judgement,
        unevaluatedChecks.length,
        stale.map(({ container }) => container),
      ),
      pssVersion: PSS_VERSION,
      level: judgement.level,
      levelConfidence: judgement.level === 'privileged' ? 'confirmed' : 'upper_bound',
      unevaluatedChecks,
      pod: { ...block, failing: [...judgement.pod.failing] },
      containers: judgement.containers.map(({ unjudged: _, failing, ...container }) => ({
        ...container,
        failing: [...failing],
      })),
      recommendation: recommendation(workloadKind, block, judgement, capabilities),
      staleContainers,
    },
    findings,
  }
}

const coverageNote = (evaluated: number) =>
  `${evaluated} of ${CHECKS.length} checks could be made; agents report no volumes, ports, probes and the like`

const contextOf = ({ row, source }: Selected) => ({
  name: row.container,
  kind: row.kind,
  source,
  digest: row.digest,
  securityContext: containerContext(row.securityContext),
})

function unevaluated(block: PodBlock, { containers }: Judgement): Check[] {
  const inherited = new Set(containers.flatMap(({ unjudged }) => unjudged))
  return [
    ...UNSEEN_CHECKS,
    ...(block.known ? [] : (['hostNamespaces'] as const)),
    ...CHECKS.filter((check) => inherited.has(check)),
  ]
}

/** Restricted is never ok, because some of its checks cannot be made. */
function statusWith(level: Level, findings: readonly Finding[]): Status {
  if (level === 'privileged') return 'risk'
  const status = statusOf(findings)
  if (status !== 'ok') return status
  return level === 'baseline' ? 'warn' : 'unknown'
}

function recommendation(
  workloadKind: string,
  block: PodBlock,
  judgement: Judgement,
  capabilities: WorkloadCapabilities,
): PodSecurity['recommendation'] {
  const evidence = new Map(capabilities.containers.map((one) => [one.container, one.recommendation]))
  const patch = patchOf(block, judgement, (container) => evidence.get(container) ?? null)
  if (patch === null) return null
  return {
    recommendation: true,
    targetLevel: 'restricted',
    format: 'strategic-merge-patch',
    yaml: patchYaml(workloadKind, patch),
    caveats: caveatsOf(workloadKind, block, judgement, patch),
  }
}

/** Of a workload without current containers. */
const unknownDimension = (staleContainers: PodSecurity['staleContainers']): PodSecurity => ({
  status: 'unknown',
  coverage: {
    level: 'none',
    fraction: null,
    observedSince: null,
    note: 'no security context of a current container is known',
  },
  reasons: [noLevelReason(staleContainers.length > 0)],
  pssVersion: PSS_VERSION,
  level: null,
  levelConfidence: null,
  unevaluatedChecks: [...UNSEEN_CHECKS],
  pod: { ...UNKNOWN_POD, failing: [] },
  containers: [],
  recommendation: null,
  staleContainers,
})
