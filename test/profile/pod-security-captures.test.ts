/** Workloads as another broker of the ecosystem has judged them; clients are written for these answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import { capabilitiesOf, caveatKinds, evidence, type Fields, fails, judged, row } from './pod-security.ts'

interface Capture {
  readonly kind: string
  readonly pod: Fields
  /** Containers by name: what was reported, and the row if it is not a running regular one. */
  readonly containers: Readonly<Record<string, readonly [context: Fields, row?: Partial<InventoryRow>]>>
  readonly capabilities?: Parameters<typeof capabilitiesOf>[0]
  readonly status: string
  readonly level: string | null
  readonly fraction: number | null
  readonly reasons: readonly string[]
  readonly failing: Readonly<Record<string, readonly string[]>>
  /** Without the name of the dimension; severity, tier. */
  readonly findings: readonly string[]
  readonly patch: Fields | null
  readonly caveats: readonly string[]
}

const ENDED = { isRunning: false, state: 'terminated' } as const
const FAILS_RESTRICTED = ['privilegeEscalation allowPrivilegeEscalation', 'capabilitiesRestricted capabilities.drop']
const template = (spec: Fields): Fields => ({ spec: { template: { spec } } })
const DROP_ALL = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
const patched = (name: string, securityContext: Fields = DROP_ALL) => [{ name, securityContext }]
const UNSET_FINDINGS = (name: string) => [
  `allowPrivilegeEscalation/${name} medium P2`,
  `capabilitiesNotDropped/${name} medium P2`,
  `readOnlyRootFilesystem/${name} low null`,
]
const RESTRICTED = { allowPrivilegeEscalation: false, capabilitiesDrop: ['ALL'] }

/** A container about which nothing is set, in a pod whose fields were not reported. */
const unset = (name: string, kind: string, capture: Partial<Capture> = {}): Capture => ({
  kind,
  pod: {},
  containers: { [name]: [{}] },
  capabilities: { [name]: null },
  status: 'warn',
  level: 'baseline',
  fraction: 0.33,
  reasons: ['pss_fails_restricted', 'pod_fields_unknown'],
  failing: { [name]: FAILS_RESTRICTED },
  findings: UNSET_FINDINGS(name),
  patch: template({ containers: patched(name) }),
  caveats: ['unseen', 'default', 'dropAll'],
  ...capture,
})

const restricted = (capture: Partial<Capture> & Pick<Capture, 'pod' | 'containers'>): Capture => ({
  kind: 'Deployment',
  status: 'unknown',
  level: 'restricted',
  fraction: 0.5,
  reasons: ['pss_unverified'],
  failing: {},
  findings: [],
  patch: null,
  caveats: [],
  ...capture,
})

const CAPTURES: Readonly<Record<string, Capture>> = {
  'all set, with an init container that has ended': restricted({
    pod: {
      serviceAccountName: 'shop',
      hostNetwork: false,
      securityContext: { runAsNonRoot: true, fsGroup: 2000, seccompProfileType: 'RuntimeDefault' },
    },
    containers: {
      app: [{ ...RESTRICTED, runAsUser: 10_001 }],
      migrate: [RESTRICTED, { kind: 'init', ...ENDED }],
    },
    findings: [
      ...['automountToken low null', 'readOnlyRootFilesystem/app low null', 'readOnlyRootFilesystem/migrate low null'],
    ],
  }),
  'all set, with a read-only root file system': restricted({
    pod: {
      serviceAccountName: 'sync',
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, fsGroup: 1337, seccompProfileType: 'RuntimeDefault' },
    },
    containers: { manager: [{ ...RESTRICTED, runAsNonRoot: true, readOnlyRootFilesystem: true }] },
  }),
  'all set, with a stale container': restricted({
    pod: {
      serviceAccountName: 'books',
      automountServiceAccountToken: false,
      securityContext: { seccompProfileType: 'RuntimeDefault' },
    },
    containers: {
      books: [{ ...RESTRICTED, runAsNonRoot: true }],
      'old-proxy': [{}, { isRunning: false, isCurrent: false }],
    },
    reasons: ['pss_unverified', 'stale_containers_excluded'],
    findings: ['readOnlyRootFilesystem/books low null'],
  }),
  'an agent of nodes': {
    kind: 'DaemonSet',
    pod: { serviceAccountName: 'agent', automountServiceAccountToken: false, hostNetwork: true, hostPID: true },
    containers: { agent: [{ runAsNonRoot: true, runAsUser: 65_534, readOnlyRootFilesystem: true }] },
    status: 'risk',
    level: 'privileged',
    fraction: 0.5,
    reasons: ['pss_fails_baseline'],
    failing: {
      pod: ['hostNamespaces spec.hostNetwork', 'hostNamespaces spec.hostPID'],
      agent: [
        'privilegeEscalation allowPrivilegeEscalation',
        'seccompRestricted seccompProfile.type',
        'capabilitiesRestricted capabilities.drop',
      ],
    },
    findings: [
      ...['allowPrivilegeEscalation/agent medium P2', 'capabilitiesNotDropped/agent medium P2'],
      ...['hostNetwork high P1', 'hostPID high P1', 'seccompUnset/agent medium P2'],
    ],
    patch: template({
      hostNetwork: false,
      hostPID: false,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      containers: patched('agent'),
    }),
    // Captured before there was evidence of capabilities, without `default`.
    caveats: ['unseen', 'nodeAgent', 'namespaces', 'default', 'dropAll'],
  },
  'only an init container fails': {
    kind: 'Deployment',
    pod: {
      serviceAccountName: 'refunds',
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfileType: 'RuntimeDefault' },
    },
    containers: {
      app: [{ ...RESTRICTED, runAsUser: 10_001 }],
      migrate: [{}, { kind: 'init', ...ENDED }],
    },
    status: 'warn',
    level: 'baseline',
    fraction: 0.5,
    reasons: ['pss_fails_restricted'],
    failing: { migrate: FAILS_RESTRICTED },
    findings: [...UNSET_FINDINGS('migrate'), 'readOnlyRootFilesystem/app low null'],
    patch: template({ initContainers: patched('migrate') }),
    // As above.
    caveats: ['unseen', 'default', 'dropAll'],
  },
  'nothing reported': restricted({
    pod: {},
    containers: {},
    level: null,
    fraction: null,
    reasons: ['no_inventory'],
  }),
  'nothing set, without evidence': unset('books', 'Deployment'),
  'nothing set, of a StatefulSet': unset('store', 'StatefulSet'),
  'nothing set, of a DaemonSet': unset('agent', 'DaemonSet', {
    caveats: ['unseen', 'nodeAgent', 'default', 'dropAll'],
  }),
  'nothing set, of a CronJob that has ended': unset('reports', 'CronJob', {
    containers: { reports: [{}, ENDED] },
    patch: { spec: { jobTemplate: template({ containers: patched('reports') }) } },
  }),
  'nothing set, with evidence': unset('app', 'Deployment', {
    capabilities: {
      app: evidence(['CHOWN', 'NET_BIND_SERVICE'], {
        probedOmitted: [{ capability: 'SYS_ADMIN', reason: 'only probed' }],
        requires: { allowPrivilegeEscalation: false },
      }),
    },
    patch: template({
      containers: patched('app', {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'], add: ['CHOWN', 'NET_BIND_SERVICE'] },
      }),
    }),
    caveats: ['unseen', 'observed', 'omitted', 'beyond', 'dropAll'],
  }),
}

for (const [name, capture] of Object.entries(CAPTURES))
  test(`a workload is judged as clients know it: ${name}`, () => {
    const rows = Object.entries(capture.containers).map(([container, [context, fields]]) =>
      row(container, context, { podSecurity: capture.pod, ...fields }),
    )
    const it = judged(rows, { kind: capture.kind, capabilities: capabilitiesOf(capture.capabilities) })
    const confidence = it.level === null ? null : it.level === 'privileged' ? 'confirmed' : 'upper_bound'
    assert.deepEqual(
      [it.status, it.level, it.levelConfidence, it.coverage.fraction],
      [capture.status, capture.level, confidence, capture.fraction],
    )
    assert.deepEqual(
      it.reasons.map(({ code }) => code),
      capture.reasons,
    )
    const failing = [['pod', it.pod.failing] as const, ...it.containers.map((one) => [one.name, one.failing] as const)]
    assert.deepEqual(
      Object.fromEntries(failing.filter(([, list]) => list.length > 0).map(([part, list]) => [part, fails(list)])),
      capture.failing,
    )
    assert.deepEqual(
      it.findings.map(({ id, severity, tier }) => `${id.replace('podSecurity.', '')} ${severity} ${tier}`).sort(),
      [...capture.findings].sort(),
    )
    assert.deepEqual(it.patch, capture.patch)
    assert.deepEqual(caveatKinds(it.recommendation?.caveats), capture.caveats)
  })
