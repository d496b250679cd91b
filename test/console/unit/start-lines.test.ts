import assert from 'node:assert/strict'
import test from 'node:test'
import * as lines from '../../../wrangler-free-deploy/console/pages/start/lines.ts'

/** Answers with what these lines read. */
const part = (total: number, missing: object = {}, items: readonly object[] = []) => ({
  totals: { total, known: 0, missing },
  items,
  nextAfter: null,
})
const coverage = (
  nodes: object | null,
  images: object | null = null,
  workloads: object | null = null,
  containers: object | null = null,
) => ({ nodes, images, workloads, containers }) as never
const watched = (total: number, known: number) => ({
  totals: { total, known, missing: {} },
  items: [],
  nextAfter: null,
})
const edges = (items: readonly object[], more: object = {}) =>
  ({
    ...{ items, nextAfter: null, asOf: '2026-11-27T12:00:00', observedSince: '2026-10-01T00:00:00', unstamped: 0 },
    ...more,
  }) as never
const side = (workload: string, namespace = 'shop') => ({ kind: 'workload', namespace, name: null, workload, ip: null })
const edge = (firstSeenAt: string) => ({
  ...{ from: side('Deployment/web'), to: side('Deployment/api'), port: '8080', protocol: 'TCP', verdict: 'ALLOW' },
  ...{ flows: 2, pods: 1, seenBy: ['from'], firstSeenAt, lastNewAt: '2026-11-27T11:00:00' },
})

test('vulnerabilities that are not counted yet are not known', () => {
  const page = { items: [], nextAfter: null, computedAt: null } as never
  assert.equal(lines.urgentLine(page, coverage(null)).state, 'unknown')
})

test('no vulnerability in use is clear only if all is scanned and watched', () => {
  const none = { items: [], nextAfter: null, computedAt: '2026-11-27T12:00:00' } as never
  const line = (images: object | null, containers: object | null) =>
    lines.urgentLine(none, coverage(null, images, null, containers))
  assert.equal(line(part(9, { no_report: 0 }), watched(20, 20)).state, 'clear')
  const gaps = [
    [part(9, { no_report: 0 }), watched(20, 0), /20 of 20 containers were not watched all day/],
    [part(9, { no_report: 2 }), watched(20, 20), /of 2 running images there is no report/],
    [part(9, { no_report: 0 }), null, /could not be counted/],
  ] as const
  for (const [images, containers, says] of gaps) {
    const { state, title } = line(images, containers)
    assert.equal(state, 'unknown')
    assert.match(title, says)
  }
  const more = { items: [], nextAfter: 'x', computedAt: '2026-11-27T12:00:00' } as never
  assert.equal(lines.urgentLine(more, coverage(null, part(9, { no_report: 0 }), null, watched(2, 2))).state, 'unknown')
})

test('a page that is not the last gives a lower limit', () => {
  const items = [{ id: 'CVE-1', tier: 'P0', executedWorkloads: 2, loadedWorkloads: 1 }]
  const urgent = (nextAfter: string | null) =>
    lines.urgentLine({ items, nextAfter, computedAt: '2026-11-27T12:00:00' } as never, coverage(null))
  const line = urgent('x')
  assert.ok(line.state === 'look' && line.isAtLeast && line.count === 1)
  // Which one is the most widespread is known of the whole list only.
  assert.doesNotMatch(line.detail, /most widespread/)
  const whole = urgent(null)
  assert.ok(whole.state === 'look' && /in use in 3 workloads/.test(whole.detail))
  assert.equal(line.examples[0]!.note, 'P0, 3 workloads')
})

test('only edges whose first flow came within a day are new', () => {
  const line = lines.edgesLine(edges([edge('2026-11-26T13:00:00'), edge('2026-11-20T00:00:00')]))
  assert.ok(line.state === 'look')
  assert.equal(line.count, 1)
  assert.equal(line.examples[0]!.text, 'shop/web → shop/api :8080')
  assert.deepEqual(line.examples[0]!.to.query, {
    ...{ from_workload: 'shop/Deployment/web', to_workload: 'shop/Deployment/api' },
    ...{ port: '8080', protocol: 'TCP', verdict: 'ALLOW', since: '24h' },
  })
  assert.equal(lines.dropsLine(edges([edge('2026-11-20T00:00:00')])).state, 'clear')
})

test('old edges of a page that is not the last do not say that others are new', () => {
  const line = lines.dropsLine(edges([edge('2026-11-20T00:00:00')], { nextAfter: 'x' }))
  assert.equal(line.state, 'unknown')
  assert.equal(line.title, 'None of the 1 that were read is new, but there are more.')
  const some = lines.dropsLine(edges([edge('2026-11-27T01:00:00')], { nextAfter: 'x' }))
  assert.ok(some.state === 'look' && some.isAtLeast && some.count === 1)
})

test('without a record of connections none is new', () => {
  assert.equal(lines.edgesLine(edges([], { observedSince: null })).state, 'unknown')
  const young = lines.dropsLine(edges([edge('2026-11-27T11:00:00')], { observedSince: '2026-11-27T10:00:00' }))
  assert.ok(young.state === 'look' && young.tone === 'info')
  assert.match(young.detail, /recorded only since/)
})

test('the absence of denials is clear only if all nodes watch', () => {
  const clear = lines.denialsLine([], coverage(part(3, { denials_not_watched: 0 })), 100)
  assert.equal(clear.state, 'clear')
  const some = lines.denialsLine([], coverage(part(3, { denials_not_watched: 1 })), 100)
  assert.equal(some.state, 'unknown')
  assert.match(some.title, /1 of 3 nodes do not watch/)
  assert.equal(lines.denialsLine([], coverage(part(0, { denials_not_watched: 0 })), 100).state, 'unknown')
  assert.equal(lines.denialsLine([], coverage(null), 100).state, 'unknown')
})

test('denials are counted by workload', () => {
  const row = { podNamespace: 'shop', podName: 'web-1', workloadKind: 'Deployment', workloadName: 'web', count: 4 }
  const rows = [
    { ...row, syscall: 'ptrace' },
    { ...row, syscall: 'bpf' },
    { ...row, workloadKind: null, workloadName: null, syscall: 'bpf' },
  ] as never
  const line = lines.denialsLine(rows, coverage(null), 3)
  assert.ok(line.state === 'look' && line.isAtLeast)
  assert.equal(line.count, 2)
  assert.match(line.detail, /12 events/)
})

test('silent nodes, images that nobody scanned, and partial profiles', () => {
  const report = coverage(
    part(50, { silent: 2 }, [{ node: 'a', missing: ['silent'] }]),
    part(9, { no_report: 1 }),
    part(5, { capture_incomplete: 1, no_observations: 2 }),
  )
  assert.deepEqual(
    [lines.silentLine(report), lines.unscannedLine(report), lines.partialLine(report)].map((one) =>
      one.state === 'look' ? [one.count, one.title] : one.state,
    ),
    [
      [2, 'silent nodes'],
      [1, 'running image that nobody scanned'],
      [1, 'partial seccomp profile'],
    ],
  )
})

test('an unknown count, and missing data, are not clear', () => {
  const uncounted = coverage(part(1), null, null)
  assert.equal(lines.unscannedLine(uncounted).state, 'unknown')
  assert.equal(lines.partialLine(uncounted).state, 'unknown')
  assert.equal(lines.silentLine(coverage(part(0, { silent: 0 }))).state, 'unknown')
  const nothingRecorded = coverage(null, null, part(4, { capture_incomplete: 0, no_observations: 4 }))
  assert.equal(lines.partialLine(nothingRecorded).state, 'unknown')
  const someRecorded = coverage(null, null, part(4, { capture_incomplete: 0, no_observations: 3 }))
  assert.equal(lines.partialLine(someRecorded).state, 'unknown')
  assert.match(lines.partialLine(someRecorded).title, /nothing was recorded of 3 workloads/)
  const allRecorded = coverage(null, null, part(4, { capture_incomplete: 0, no_observations: 0 }))
  assert.equal(lines.partialLine(allRecorded).state, 'clear')
  assert.equal(lines.totalText({ totals: null, items: [], nextAfter: null }, 'workload'), '? workloads')
})

test('compute is clear only if something was measured', () => {
  const answer = { findings: [], truncated: false, victims_evaluated: 0, history_disabled: false }
  assert.equal(lines.findingsLine(answer).state, 'unknown')
  assert.equal(lines.findingsLine({ ...answer, victims_evaluated: 9 }).state, 'clear')
  assert.equal(lines.findingsLine({ ...answer, victims_evaluated: 9, truncated: true }).state, 'unknown')
  assert.equal(lines.findingsLine({ ...answer, history_disabled: true }).state, 'unknown')
})

test('a container that waits for CPU and memory counts once', () => {
  const finding = (uid: string, kind: string, severity: string) =>
    ({ kind, severity, victim: { container_uid: uid, namespace: 'shop', pod_name: uid } }) as never
  const line = lines.findingsLine({
    findings: [finding('a', 'cpu-contended', 'medium'), finding('a', 'memory-pressure', 'critical')],
    ...{ truncated: false, victims_evaluated: 9, history_disabled: false },
  })
  assert.ok(line.state === 'look')
  assert.deepEqual([line.count, line.title], [1, 'container waits for CPU or memory'])
  assert.equal(line.detail, 'In the last five minutes: 1 critical.')
})

test('a broker without any data', () => {
  assert.ok(lines.isEmptyBroker(coverage(part(0), part(0), part(0))))
  assert.ok(!lines.isEmptyBroker(coverage(part(1), part(0), part(0))))
  // An unknown count is not empty.
  assert.ok(!lines.isEmptyBroker(coverage(part(0), { totals: null }, part(0))))
})
