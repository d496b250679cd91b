/** Rows of the image inventory for tests of the pod security of a workload. */
import { load } from 'js-yaml'
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import { judgePodSecurity } from '../../lib/profile/pod-security/index.ts'
import type { WorkloadCapabilities } from '../../lib/runtime/capabilities/index.ts'
import { digestOf } from '../support/images.ts'

export type Fields = Record<string, unknown>
type Evidence = WorkloadCapabilities['containers'][number]['recommendation']

/** All that `restricted` asks of a container and, with it, of its pod. */
export const SAFE: Fields = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  readOnlyRootFilesystem: true,
  capabilitiesDrop: ['ALL'],
  seccompProfileType: 'RuntimeDefault',
}
export const SAFE_POD: Fields = { automountServiceAccountToken: false }
export const SEEN = '2026-05-01T10:00:00Z'

/** A row that runs, with a digest of its own. */
export const row = (container: string, securityContext: Fields = SAFE, fields: Partial<InventoryRow> = {}) =>
  ({
    container,
    kind: 'regular',
    digest: digestOf(container),
    imageRef: 'registry.test/team/app:v1',
    state: 'running',
    stateReason: null,
    ranAsInit: false,
    lastPodName: 'web-1',
    firstSeen: '2026-04-01T10:00:00Z',
    lastSeen: SEEN,
    isRunning: true,
    isCurrent: true,
    securityContext,
    podSecurity: SAFE_POD,
    ...fields,
  }) satisfies InventoryRow

/** Rows of containers of one pod. */
export const inPod = (podSecurity: Fields, ...rows: readonly InventoryRow[]) =>
  rows.map((one) => ({ ...one, podSecurity }))

/** Sufficient evidence that a container uses these capabilities. */
export const evidence = (
  add: readonly string[],
  fields: Partial<NonNullable<Evidence>> = {},
): NonNullable<Evidence> => ({
  drop: ['ALL'],
  add: [...add],
  probedKept: [],
  probedOmitted: [],
  ...fields,
})

export const capabilitiesOf = (ofContainers: Readonly<Record<string, Evidence>> = {}): WorkloadCapabilities => ({
  windowHours: 168,
  containers: Object.entries(ofContainers).map(([container, recommendation]) => ({
    container,
    digests: [digestOf(container)],
    evidence: recommendation ? 'sufficient' : 'insufficient',
    reason: recommendation ? null : 'no_runtime_data',
    reasonDetail: null,
    observedSince: null,
    used: [],
    denied: [],
    probed: [],
    recommendation,
    unusedAdded: [],
  })),
})

export function judged(
  rows: readonly InventoryRow[],
  { kind = 'Deployment', capabilities = capabilitiesOf() }: { kind?: string; capabilities?: WorkloadCapabilities } = {},
) {
  const { dimension, findings } = judgePodSecurity({ rows, workloadKind: kind, capabilities })
  return { ...dimension, findings, patch: dimension.recommendation && (load(dimension.recommendation.yaml) as Fields) }
}

/** Failing checks as `check field`, with paths inside the security context of a container. */
export const fails = (failing: readonly { check: string; field: string }[]) =>
  failing.map(({ check, field }) => `${check} ${field.replace(/^spec\.\w+\[.*\]\.securityContext\./, '')}`)

/** What each caveat is about, by a word that no other one has. */
const CAVEATS: readonly (readonly [kind: string, RegExp])[] = [
  ['unseen', /^Agents do not report/],
  ['nonRoot', /^With runAsNonRoot: true/],
  ['nodeAgent', /^It is a DaemonSet or/],
  ['unprivileged', /^privileged: false/],
  ['namespaces', /^Without the namespaces/],
  ['observed', /seen in use/],
  ['kept', /may refuse something/],
  ['omitted', /does not get/],
  ['beyond', /stays below restricted/],
  ['default', /default of restricted/],
  ['dropAll', /^drop: \["ALL"\]/],
  ['ephemeral', /^Ephemeral containers still fail/],
]

export const caveatKinds = (caveats: readonly string[] = []) =>
  caveats.map((caveat) =>
    CAVEATS.filter(([, pattern]) => pattern.test(caveat))
      .map(([kind]) => kind)
      .join('+'),
  )
