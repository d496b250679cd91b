/** The peers of a workload, and what an audited policy says of them (docs/contract.md#workload-profiles). */
import { finding, type Judged, statusOf } from '../finding.ts'
import type { Finding, Reason } from '../record/common.ts'
import { type Audit, MAX_PEERS, MAX_POLICIES, type Network, type Peer } from '../record/network.ts'
import { earliest, latest } from '../times.ts'
import { peerKind, portOf } from './peer.ts'
import { AUDIT_HOURS, type AuditRow, type EdgeRow, MAX_EDGES, type PeerExample } from './read.ts'

export interface NetworkFacts {
  /** In the order of answers. */
  readonly edges: readonly EdgeRow[]
  readonly examples: ReadonlyMap<EdgeRow, PeerExample>
  readonly audit: readonly AuditRow[]
  readonly livePods: number
  /** False while the stored flows are counted for the first time. */
  readonly areFlowsCounted: boolean
}

const NO_AUDIT =
  'No audited policy covers this workload, and the broker does not see which network policies are applied'

const NOT_COUNTED = 'The stored flows are not counted yet'

/** The edges that a profile lists. */
export const listed = (edges: readonly EdgeRow[]): readonly EdgeRow[] => edges.slice(0, MAX_PEERS)

export function judgeNetwork({
  edges,
  examples,
  audit: rows,
  livePods,
  areFlowsCounted,
}: NetworkFacts): Judged<Network> {
  const peers = listed(edges).map((edge) => peerOf(edge, examples.get(edge)))
  const truncated = edges.length > MAX_PEERS
  const audit = auditOf(rows)
  const findings = findingsOf(audit)
  const isSeen = peers.length > 0
  const level = !isSeen ? 'none' : truncated ? 'partial' : 'full'
  return {
    findings,
    dimension: {
      status: isSeen && audit !== null ? statusOf(findings) : 'unknown',
      coverage: {
        level,
        fraction: null,
        observedSince: earliest(edges.map(({ first_seen }) => first_seen)),
        note: isSeen ? `Flows that the pods of the workload reported (${livePods} live)` : 'No flow was seen',
      },
      reasons: reasonsOf({ isSeen, areFlowsCounted, audit, truncated, edges: edges.length }),
      summary: { egress: summaryOf(peers, 'egress'), ingress: summaryOf(peers, 'ingress') },
      peers,
      truncated,
      policy: { audit, enforced: null },
    },
  }
}

interface Seen {
  readonly isSeen: boolean
  readonly areFlowsCounted: boolean
  readonly audit: Audit | null
  readonly truncated: boolean
  readonly edges: number
}

function reasonsOf({ isSeen, areFlowsCounted, audit, truncated, edges }: Seen): Reason[] {
  const reasons: Reason[] = []
  if (!isSeen)
    reasons.push({ code: 'no_flows', message: areFlowsCounted ? 'No flow of this workload was seen' : NOT_COUNTED })
  else if (audit === null) reasons.push({ code: 'policy_state_unknown', message: NO_AUDIT })
  else if (audit.wouldDeny === 0)
    reasons.push({
      code: 'audit_clean',
      message: `The audited policies would have denied nothing in the last ${AUDIT_HOURS} hours`,
    })
  else reasons.push({ code: 'would_deny', message: deniesMessage(audit) })
  const count = edges > MAX_EDGES ? `more than ${MAX_EDGES}` : String(edges)
  if (truncated) reasons.push({ code: 'truncated', message: `The first ${MAX_PEERS} of ${count} peers are listed` })
  return reasons
}

const deniesMessage = ({ wouldDeny }: Audit) =>
  `The audited policies would have denied ${wouldDeny} connection(s) in the last ${AUDIT_HOURS} hours`

function findingsOf(audit: Audit | null): Finding[] {
  if (audit === null || audit.wouldDeny === 0) return []
  const names = audit.policies.map(({ namespace, name }) => (namespace === '' ? name : `${namespace}/${name}`))
  const detail = `Policies: ${names.join(', ')}. Allow these connections, or find out why they are made.`
  return [finding('network', 'wouldDeny', 'medium', { title: deniesMessage(audit), detail })]
}

function auditOf(rows: readonly AuditRow[]): Audit | null {
  if (rows.length === 0) return null
  return {
    policies: rows.slice(0, MAX_POLICIES).map(({ namespace, name }) => ({ namespace, name })),
    allow: rows.reduce((sum, { allow }) => sum + allow, 0),
    wouldDeny: rows.reduce((sum, { would_deny }) => sum + would_deny, 0),
    lastVerdictAt: latest(rows.map(({ last_verdict }) => last_verdict))!,
    windowHours: AUDIT_HOURS,
  }
}

function peerOf(edge: EdgeRow, example: PeerExample | undefined): Peer {
  return {
    direction: edge.is_ingress ? 'ingress' : 'egress',
    protocol: edge.protocol,
    port: portOf(edge.port),
    peer: {
      kind: peerKind(edge),
      namespace: edge.peer_namespace,
      workloadKind: edge.peer_workload_kind,
      workloadName: edge.peer_workload_name,
      name: edge.peer_name ?? example?.name ?? null,
      ip: edge.ip ?? example?.ip ?? null,
    },
    flows: edge.flows,
    firstSeen: edge.first_seen,
    lastSeen: edge.last_seen,
  }
}

function summaryOf(peers: readonly Peer[], direction: Peer['direction']): Network['summary']['ingress'] {
  const own = peers.filter((one) => one.direction === direction)
  const identities = new Map(own.map(({ peer }) => [identityOf(peer), peer]))
  return {
    peers: identities.size,
    external: [...identities.values()].filter(({ kind }) => kind === 'external').length,
    ports: [...new Set(own.flatMap(({ protocol, port }) => (port === null ? [] : `${protocol}/${port}`)))].sort(),
  }
}

const identityOf = ({ kind, namespace, workloadKind, workloadName, name, ip }: Peer['peer']): string =>
  JSON.stringify(
    workloadName !== null ? [kind, namespace, workloadKind, workloadName] : [kind, namespace, name, name ?? ip],
  )
