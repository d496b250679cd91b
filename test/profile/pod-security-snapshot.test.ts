import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import { judgePodSecurity, podSecuritySnapshot, rejudge } from '../../lib/profile/pod-security/index.ts'
import { capabilitiesOf, inPod, row, SAFE, SAFE_POD } from './pod-security.ts'

const dimensionOf = (rows: readonly InventoryRow[]) =>
  judgePodSecurity({ rows, workloadKind: 'Deployment', capabilities: capabilitiesOf() }).dimension
const snapshotOf = (...rows: readonly InventoryRow[]) => podSecuritySnapshot(dimensionOf(rows))

test('a snapshot has the level, the pod and the judged containers, without times, digests or failing checks', () => {
  const gone = row('old', {}, { isRunning: false, isCurrent: false })
  const bad = { ...SAFE, privileged: true, runAsUser: 7, capabilitiesAdd: ['CHOWN'] }
  const snapshot = snapshotOf(gone, ...inPod({ ...SAFE_POD, hostPID: true }, row('app', bad)))
  assert.deepEqual(snapshot, {
    level: 'privileged',
    pod: {
      known: true,
      serviceAccountName: null,
      automountServiceAccountToken: false,
      hostNetwork: null,
      hostPID: true,
      hostIPC: null,
      hostUsers: null,
      securityContext: {
        ...{ runAsNonRoot: null, runAsUser: null, runAsGroup: null, fsGroup: null, seccompProfileType: null },
      },
    },
    containers: {
      app: {
        kind: 'regular',
        securityContext: {
          privileged: true,
          allowPrivilegeEscalation: false,
          runAsNonRoot: true,
          runAsUser: 7,
          runAsGroup: null,
          readOnlyRootFilesystem: true,
          capabilitiesAdd: ['CHOWN'],
          capabilitiesDrop: ['ALL'],
          seccompProfileType: 'RuntimeDefault',
        },
      },
    },
  })
})

test('a snapshot without current containers has neither level nor pod', () => {
  const empty = { level: null, pod: null, containers: {} }
  assert.deepEqual(snapshotOf(), empty)
  assert.deepEqual(snapshotOf(row('old', {}, { isRunning: false, isCurrent: false })), empty)
  assert.deepEqual(rejudge(snapshotOf()), { level: null, pod: null, containers: new Map() })
})

test('a snapshot does not change with times, digests or the order of rows', () => {
  const rows = [row('b'), row('a', {}, { kind: 'init' })]
  const later = rows.map((one) => ({ ...one, lastSeen: '2027-01-01T00:00:00Z', digest: one.digest.replace('a', 'b') }))
  assert.equal(JSON.stringify(snapshotOf(...later.reverse())), JSON.stringify(snapshotOf(...rows)))
})

test('a stored snapshot is judged as the workload was', () => {
  const rows = inPod(
    { securityContext: { runAsUser: 0, runAsNonRoot: false } },
    row('app', { capabilitiesAdd: ['SYS_ADMIN'] }),
    row('__proto__', SAFE, { kind: 'init' }),
  )
  const dimension = dimensionOf(rows)
  const stored = JSON.parse(JSON.stringify(podSecuritySnapshot(dimension)))
  const again = rejudge(stored)
  assert.equal(again.level, dimension.level)
  assert.deepEqual(again.pod, { level: 'baseline', failing: ['runAsNonRoot', 'runAsUser'], unjudged: [] })
  assert.deepEqual([...again.containers.keys()].sort(), ['__proto__', 'app'])
  assert.deepEqual(again.containers.get('__proto__'), { level: 'restricted', failing: [], unjudged: [] })
  assert.deepEqual(again.containers.get('app'), {
    level: 'privileged',
    failing: [
      ...['capabilitiesBaseline', 'privilegeEscalation', 'runAsNonRoot', 'seccompRestricted', 'capabilitiesRestricted'],
    ],
    unjudged: [],
  })
})

test('the level of a snapshot is that of today, not the stored one', () => {
  const snapshot = { ...snapshotOf(row('app', { ...SAFE, privileged: true })), level: 'restricted' as const }
  assert.equal(rejudge(snapshot).level, 'privileged')
})

test('checks that need unknown fields of the pod are told from those that passed', () => {
  const unset = { ...SAFE, runAsNonRoot: null, seccompProfileType: null }
  const again = rejudge(snapshotOf(...inPod({}, row('app', unset), row('own'))))
  assert.deepEqual(again.pod, {
    level: 'restricted',
    failing: [],
    unjudged: ['hostNamespaces', 'seccompBaseline', 'runAsNonRoot', 'runAsUser'],
  })
  assert.deepEqual(again.containers.get('app')!.unjudged, ['runAsNonRoot', 'seccompRestricted'])
  assert.deepEqual(again.containers.get('own')!.unjudged, [])
})
