import assert from 'node:assert/strict'
import test from 'node:test'
import { flowsQuery } from '../../../wrangler-free-deploy/console/api/edge.ts'
import { inputText, typedTime } from '../../../wrangler-free-deploy/console/pages/workload/changes/dates.ts'
import { type Diff, partsOf } from '../../../wrangler-free-deploy/console/pages/workload/changes/rows.ts'
import { caveatsOf, fitText } from '../../../wrangler-free-deploy/console/pages/workload/compute/sizing-rows.ts'
import { waitsOf, waitText } from '../../../wrangler-free-deploy/console/pages/workload/compute/waits.ts'
import {
  type Edge,
  newEdges,
  sideText,
  workloadOfSide,
} from '../../../wrangler-free-deploy/console/pages/workload/flows/edges.ts'
import { capabilityRows } from '../../../wrangler-free-deploy/console/pages/workload/runtime/capability-rows.ts'
import {
  fileRows,
  type Runtime,
  watchedContainers,
} from '../../../wrangler-free-deploy/console/pages/workload/runtime/rows.ts'
import { signerText } from '../../../wrangler-free-deploy/console/pages/workload/trust/words.ts'
import {
  decisionShort,
  fieldOfWord,
  useReason,
} from '../../../wrangler-free-deploy/console/pages/workload/vulnerabilities/words.ts'
import { factorText, percentText } from '../../../wrangler-free-deploy/console/parts/finding-words.ts'
import { momentMs } from '../../../wrangler-free-deploy/console/parts/moment.ts'

const workloadSide = { kind: 'workload', namespace: 'shop', name: null, workload: 'Deployment/web', ip: null } as const
const outside = { kind: 'external', namespace: null, name: null, workload: null, ip: '192.0.2.1' } as const
const edge = (firstSeenAt: string, lastNewAt: string): Edge => ({
  ...{ from: workloadSide, to: outside, port: '443', protocol: 'TCP', verdict: 'ALLOW' },
  ...{ flows: 3, pods: 1, seenBy: ['from'], firstSeenAt, lastNewAt },
})
const SINCE = Date.parse('2026-11-26T12:00:00Z')

test('new edges are all known once an older flow was read', () => {
  const fresh = edge('2026-11-27T01:00:00', '2026-11-27T02:00:00')
  const old = edge('2026-11-01T00:00:00', '2026-11-27T03:00:00')
  const quiet = edge('2026-11-01T00:00:00', '2026-11-20T00:00:00')
  assert.deepEqual(newEdges({ items: [old, fresh], nextAfter: 'more' }, SINCE), { edges: [fresh], isWhole: false })
  assert.deepEqual(newEdges({ items: [old, fresh, quiet], nextAfter: 'more' }, SINCE).isWhole, true)
  assert.deepEqual(newEdges({ items: [old], nextAfter: null }, SINCE), { edges: [], isWhole: true })
})

test('the start of a time window is absolute or relative', () => {
  assert.equal(momentMs('15m', SINCE), SINCE - 900_000)
  assert.equal(momentMs('2026-11-26T12:00:00Z', 0), SINCE)
  assert.equal(momentMs('2026-11-26T12:00:00', 0), SINCE)
  assert.equal(momentMs('yesterday', 0), Number.NaN)
})

test('an edge leads to its flows', () => {
  assert.deepEqual(flowsQuery(edge('', '')), {
    ...{ from_workload: 'shop/Deployment/web', to_ip: '192.0.2.1' },
    ...{ port: '443', protocol: 'TCP', verdict: 'ALLOW' },
  })
  assert.equal(flowsQuery({ ...edge('', ''), verdict: 'LOG' }).verdict, '!DROP')
  // The filter of flows refuses a protocol that it does not know.
  assert.equal(flowsQuery({ ...edge('', ''), protocol: 'ICMP' }).protocol, null)
  assert.equal(sideText(outside), 'external 192.0.2.1')
  assert.deepEqual(workloadOfSide(workloadSide), { namespace: 'shop', kind: 'Deployment', name: 'web' })
  assert.equal(workloadOfSide(outside), null)
})

test('a word without a field finds its field of findings', () => {
  assert.deepEqual(['p0', 'CVE-2021-44228', 'critical', 'openssl'].map(fieldOfWord), [
    'tier',
    'vuln_id',
    'severity',
    'package',
  ])
})

test('use has its reason, tiers their factors', () => {
  const detail = { observedSince: null, windowHours: 24, containers: 2, coverage: 'file' } as const
  assert.match(useReason({ ...detail, state: 'unknown', reason: 'language_package' }), /files cannot tell/)
  assert.match(
    useReason({ ...detail, state: 'installed_not_observed', reason: null }),
    /24 hours or more.*2 containers/,
  )
  assert.equal(factorText('in_use:executed'), 'package executed')
  assert.equal(factorText('severity:CRITICAL'), 'severity critical')
  assert.equal(factorText('epss>=0.1'), 'EPSS of 0.1 or more')
  assert.equal(factorText('new_factor'), 'new_factor')
  assert.equal(percentText(0.0004), '0.04%')
})

test('a decision that holds in part does not look settled', () => {
  const decision = (word: string) => ({ decision: word }) as never
  assert.equal(decisionShort({ decision: decision('not_affected'), decided: true }), 'not affected')
  assert.equal(
    decisionShort({ decision: decision('not_affected'), decided: false }),
    'not affected, not in all workloads',
  )
  assert.equal(decisionShort({ decision: decision('under_investigation'), decided: false }), 'under investigation')
  assert.equal(decisionShort({ decision: null, decided: false }), '')
})

const entry = (path: string, origin: string, lastSeen: string) => ({ path, origin, lastSeen, pathComplete: true })
const RUNTIME = {
  containers: [
    {
      ...{ containerName: 'web', imageDigest: 'sha256:a' },
      entries: [entry('/bin/sh', 'image', '2026-11-27T10:00:00'), entry('/tmp/x', 'memfd', '2026-11-20T10:00:00')],
    },
  ],
  coverage: [{ containerName: 'web', imageDigest: 'sha256:a', covered: true }],
} as unknown as Runtime

test('files that no image shipped come first', () => {
  assert.deepEqual(
    fileRows(RUNTIME).map(({ path }) => path),
    ['/tmp/x', '/bin/sh'],
  )
})

test('a running container that nobody watches is listed as such; an init container that ended is not', () => {
  const running = (digest: string, ranAsInit = false) => [{ digest, ranAsInit }]
  const containers = [
    { name: 'web', running: running('sha256:a') },
    { name: 'sidecar', running: running('sha256:b') },
    { name: 'init', running: running('sha256:c', true) },
  ]
  const found = watchedContainers(RUNTIME, { dimensions: { images: { containers } } } as never)
  assert.deepEqual(
    found.map(({ container, coverage }) => [container, coverage === null]),
    [
      ['sidecar', true],
      ['web', false],
    ],
  )
})

test('unused capabilities need sufficient evidence', () => {
  const container = { used: [], denied: [], probed: [], unusedAdded: ['NET_RAW'] }
  assert.deepEqual(capabilityRows({ ...container, evidence: 'insufficient' } as never), [])
  assert.equal(capabilityRows({ ...container, evidence: 'sufficient' } as never)[0]!.state, 'unused')
})

test('waits of a victim for a culprit add up, and those of others are left out', () => {
  const pair = (victim: string, wait_ns: number, ts: string) =>
    ({
      ...{ victim_container_uid: victim, culprit_kind: 'pod', culprit_ref: 'ns/p/c', node: 'n' },
      ...{ wait_ns, ts, count: 2 },
    }) as never
  const pairs = [pair('u', 5e9, '2026-11-27T10:01:00Z'), pair('u', 1e9, '2026-11-27T10:00:00Z'), pair('other', 1, '')]
  const [row, ...more] = waitsOf(pairs, new Map([['u', 'web-1/web']]))
  assert.deepEqual(more, [])
  assert.deepEqual(
    [row!.victim, row!.minutes, row!.count, waitText(row!.waitNs), row!.lastSeen],
    ['web-1/web', 2, 4, '6.0 s', '2026-11-27T10:01:00Z'],
  )
})

test('sizing says its rules and its limits', () => {
  const fit = { resource: 'cpu', configured: 100, observed: 250 } as const
  assert.equal(fitText({ ...fit, rule: 'requestUnderP95' }), 'the request is below the p95 of 250 m')
  assert.equal(fitText({ ...fit, rule: 'throttled', observed: 0.3 }), 'throttled in 30 % of the periods of its limit')
  const caveats = caveatsOf({
    ...{ days: 7, minMinutes: 60, maxRelativeError: 0.0443, truncated: false },
    pods: { live: 3, liveUnobserved: 1, observed: 2 },
    containers: [{ container: 'web', reason: 'too_few_minutes', minutes: 36, observedShare: 0.5 }],
  } as never)
  assert.deepEqual(caveats, [
    '1 of 3 live pods without any minute in 7 days',
    'web: percentiles need 60 observed minutes, there are 36',
    'web: observed 50 % of the time; a gap is in no number',
    'percentiles are at most 4.4 % too high',
  ])
})

test('signers are named; a missing name does not look trusted', () => {
  assert.equal(signerText({ signerKind: 'keyless', san: 'a@b', issuer: 'https://i' }), 'a@b, by https://i')
  assert.equal(signerText({ signerKind: 'key', keyName: 'release', keyFingerprint: 'sha256:1' }), 'release sha256:1')
  assert.equal(signerText({}), 'nobody named')
})

const DIFF = {
  ...{ images: null, components: null, findings: null, signatures: null, edges: null, files: null },
  ...{ syscalls: null, confinement: null },
  notKnown: [
    { part: 'images', reason: 'not_recorded_then', container: null, digest: null },
    { part: 'findings', reason: 'no_report', container: null, digest: 'sha256:0123456789abcdef' },
    { part: 'files', reason: 'capture_gap', container: 'web', digest: null },
  ],
} as unknown as Diff

test('a part that was not recorded is never called unchanged', () => {
  const parts = new Map(partsOf(DIFF).map((part) => [part.name, part]))
  assert.equal(parts.get('images')!.state, 'not recorded then')
  assert.equal(parts.get('findings')!.state, 'not known')
  assert.ok([...parts.values()].every(({ rows }) => rows === null))
  assert.match(parts.get('files')!.gaps[0]!, /^container web: /)
})

test('a part that is known in part has rows and gaps', () => {
  const files = { firstRun: { items: [], total: 0, truncated: false } }
  const part = partsOf({ ...DIFF, files }).find(({ name }) => name === 'files')!
  assert.deepEqual([part.rows, part.state, part.gaps.length], [[], 'known', 1])
})

test('an image that ran at both times is no change', () => {
  const images = {
    containers: [{ container: 'web', from: ['sha256:b', 'sha256:a'], to: ['sha256:a', 'sha256:b'] }],
    rollouts: { items: [], total: 700, truncated: true },
  }
  const [part] = partsOf({ ...DIFF, images: images as never, notKnown: [] })
  assert.deepEqual([part!.rows, part!.notes], [[], ['0 of 700 are listed.']])
})

test('dates between the fields and the address', () => {
  assert.equal(inputText('7d'), '')
  assert.equal(typedTime(''), null)
  const at = '2026-11-20T10:30:00Z'
  assert.equal(typedTime(inputText(at)), at)
})
