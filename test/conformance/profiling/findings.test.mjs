// Compute findings: stalls, throttling, culprits, memory pressure, severity, evidence, times, messages, order, scope, truncation, thresholds.

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  byBytes,
  computeSample,
  computeTick,
  findingsContainer as container,
  findingsNode,
  findingsPost,
  findingsRead,
  findingsBlame as from,
  near,
  ok,
  findingsOutside as outside,
  profiling,
  unique,
} from '../lib/profiling.mjs'

let b
let s
const cleanups = []
const OWN_JOBS = { JOBS: 'external' }
before(async () => {
  b = await startBroker({ env: OWN_JOBS })
  s = profiling(b)
})
after(async () => {
  for (const stop of cleanups.reverse()) await stop().catch(() => {})
  await b?.stop()
})
const another = async (options = {}) => {
  const o = await startBroker({ ...options, env: { ...OWN_JOBS, ...options.env } })
  cleanups.push(() => o.stop())
  return { o, t: profiling(o) }
}

const MIB = 1 << 20
const STALL = [{ some: 30 }, { some: 30 }]
const read = (v, p = s) => findingsRead(p, { namespace: v.ns })
const brief = (f) => [f.kind, f.severity]
/** Posts the rows of one new container, with the memory pressure of its node, and answers its findings. */
async function judged(rows, { node, ages, v = container() } = {}) {
  if (node !== undefined) await findingsNode(s, v.node, node)
  await findingsPost(s, [[v, rows, ages]])
  const { findings } = await read(v)
  for (const f of findings) assert.equal(f.victim.container_uid, v.uid)
  return { v, findings }
}
const only = ({ findings }) => {
  assert.equal(findings.length, 1, `one finding: ${JSON.stringify(findings)}`)
  return findings[0]
}
const percent = (n) => new RegExp(`(?<![\\d.])${n}\\s*(%|per ?cent)`, 'i')

// ---- the answer

check('findings: a scope without history has none', async () => {
  assert.deepEqual(await findingsRead(s, { namespace: unique('nobody') }), {
    findings: [],
    truncated: false,
    victims_evaluated: 0,
    history_disabled: false,
  })
  assert.deepEqual(await findingsRead(s, { node: unique('nowhere') }), {
    findings: [],
    truncated: false,
    victims_evaluated: 0,
    history_disabled: false,
  })
})

check('findings: a quiet container is evaluated and has none', async () => {
  const ns = unique('quiet')
  await findingsPost(
    s,
    ['a', 'b', 'c'].map((name) => [container({ ns, pod: name }), [{}, {}, {}]]),
  )
  assert.deepEqual(await findingsRead(s, { namespace: ns }), {
    findings: [],
    truncated: false,
    victims_evaluated: 3,
    history_disabled: false,
  })
})

check('findings: they come from the history, not from samples', async () => {
  const ns = unique('sampled')
  const hot = computeSample({
    ns,
    cpu: { psi_some10: 99, psi_full10: 99, nr_periods: 50, throttled_usec: 5_000_000 },
    memory: { psi_some10: 99 },
  })
  for (const ago of [65, 5])
    ok(await s.samples(computeTick([hot], { node: unique('node'), at: Date.now() - ago * 1000 })))
  assert.deepEqual(await findingsRead(s, { namespace: ns }), {
    findings: [],
    truncated: false,
    victims_evaluated: 0,
    history_disabled: false,
  })
})

check('findings: a noisy neighbour in full', async () => {
  const node = unique('node')
  const [v, n] = [container({ node, pod: 'web-0' }), container({ node, pod: 'batch-0', container: 'worker' })]
  await findingsNode(s, node, 9)
  const row = {
    some: { avg: 30, max: 45.5 },
    full: 2.5,
    ratio: 0.0625,
    refault: 7,
    high: 2,
    max: 1,
    memSome: { avg: 1, max: 3.5 },
    events: 80,
  }
  await findingsPost(s, [
    [
      v,
      [
        { ...row, p99: 30_000 },
        {
          ...row,
          p99: 25_000,
          some: { avg: 21, max: 22 },
          blame: [from(n, 600_000), outside('system', 'system.slice/sshd.service', 200_000)],
        },
      ],
    ],
    [
      n,
      [
        { usage: 900, request: 500 },
        { usage: 1100, request: 500 },
      ],
    ],
  ])
  const { message, ...f } = only(await read(v))
  assert.deepEqual(f, {
    kind: 'noisy-neighbor',
    severity: 'high',
    victim: { pod_uid: v.pod_uid, namespace: v.ns, pod_name: 'web-0', container: 'app', container_uid: v.uid, node },
    culprit: {
      kind: 'pod',
      ref: n.ref,
      pod_uid: n.pod_uid,
      namespace: n.ns,
      pod_name: 'batch-0',
      container_uid: n.uid,
      blame_share: 0.75,
      cpu_usage_millis: 1000,
      cpu_request_millis: 500,
    },
    evidence: {
      window_minutes: 5,
      cpu_psi_some10_max: 45.5,
      cpu_psi_full10_max: 2.5,
      runq_p99_us_max: 30_000,
      throttled_ratio: 0.0625,
      mem_psi_some10_max: 3.5,
      node_mem_some10_max: 0,
      refault_delta: 14,
      mem_events_high_delta: 4,
    },
    first_seen: v.times[0],
    last_seen: v.times[1],
  })
  assert.match(message, percent(75))
})

check('findings: without a probe there is no run-queue evidence', async () => {
  assert.equal(only(await judged(STALL)).evidence.runq_p99_us_max, null)
  assert.equal(only(await judged([{ some: 30 }, { some: 30, p99: 700 }, { p99: 300 }])).evidence.runq_p99_us_max, 700)
})

// ---- what a stall is

for (const [what, rows, stalled] of [
  ['cpu pressure at the threshold in two rows is a stall', [{ some: 20 }, { some: 20 }], true],
  ['cpu pressure below the threshold is none', [{ some: 19.5 }, { some: 19.5 }, { some: 19.5 }], false],
  [
    'the mean of a minute counts, not its maximum',
    [{ some: { avg: 19, max: 95 } }, { some: { avg: 19, max: 95 } }],
    false,
  ],
  ['one row of cpu pressure is none', [{}, { some: 90 }], false],
  ['two rows with a calm one between them are none', [{ some: 90 }, {}, { some: 90 }], false],
  ['rows are neighbours although minutes lie between them', [{ some: 90 }, null, null, { some: 90 }], true],
  ['two rows anywhere in the window are enough', [{ some: 90 }, { some: 90 }, {}, {}], true],
  [
    'run-queue p99 at the threshold in two rows is a stall',
    [
      { p99: 20_000, events: 50 },
      { p99: 20_000, events: 50 },
    ],
    true,
  ],
  ['run-queue p99 below the threshold is none', [{ p99: 19_999 }, { p99: 19_999 }], false],
  ['one row of run-queue latency is none', [{ p99: 90_000 }, { p99: 100 }], false],
  [
    'too few run-queue events do not count',
    [
      { p99: 90_000, events: 49 },
      { p99: 90_000, events: 49 },
    ],
    false,
  ],
  [
    'the overflow bucket counts whatever the events',
    [
      { p99: 10, events: 1, overflow: 1 },
      { p99: 10, events: 1, overflow: 1 },
    ],
    true,
  ],
  ['a row of pressure and a row of latency are none', [{ some: 90, p99: 10 }, { p99: 90_000 }], false],
]) {
  check(`findings: ${what}`, async () => {
    const { findings } = await judged(rows)
    assert.deepEqual(
      findings.map((f) => f.kind),
      stalled ? ['cpu-contended'] : [],
    )
  })
}

check('findings: a stall spans the first to the last row that shows it', async () => {
  const gappy = await judged([{}, { some: 30 }, { some: 30 }, {}, { some: 30 }])
  assert.deepEqual([only(gappy).first_seen, only(gappy).last_seen], [gappy.v.times[1], gappy.v.times[4]])
  const both = await judged([{}, { p99: 30_000 }, { some: 30, p99: 30_000 }, { some: 30 }, {}])
  assert.deepEqual(
    [only(both).first_seen, only(both).last_seen],
    [both.v.times[1], both.v.times[3]],
    'least start, greatest end',
  )
})

check('findings: the window is five minutes', async () => {
  const old = container()
  await findingsPost(s, [[old, STALL, [400, 330]]])
  assert.deepEqual(await read(old), { findings: [], truncated: false, victims_evaluated: 0, history_disabled: false })
  const half = container()
  await findingsPost(s, [[half, STALL, [330, 20]]])
  assert.deepEqual(await read(half), { findings: [], truncated: false, victims_evaluated: 1, history_disabled: false })
  assert.equal(only(await judged(STALL, { ages: [280, 20] })).kind, 'cpu-contended')
})

check('findings: only rows of a minute count', async () => {
  const v = container()
  await findingsPost(s, [[v, STALL]], { resolution: 300 })
  assert.deepEqual(await read(v), { findings: [], truncated: false, victims_evaluated: 0, history_disabled: false })
})

// ---- cpu-throttled

const OTHERS = [outside('system', 'system.slice/backup.service', 900)]
for (const [what, rows, expected] of [
  ['a throttled ratio at the threshold fires without a stall', [{ ratio: 0.25 }], [['cpu-throttled', 'medium']]],
  [
    'a stalled container that is throttled is high',
    [
      { some: 30, ratio: 0.25 },
      { some: 30, ratio: 0.25 },
    ],
    [['cpu-throttled', 'high']],
  ],
  ['a throttled ratio below the threshold does not fire', [{ ratio: 0.24 }, { ratio: 0.24 }], []],
  ['the throttled ratio is over the window', [{ ratio: 0.5 }, {}], [['cpu-throttled', 'medium']]],
  ['the throttled ratio weighs the rows by their periods', [{ ratio: 0.5, periods: 100 }, { periods: 600 }], []],
  [
    'the throttled ratio is of the time of the periods',
    [
      { ratio: 0.25, quota: 200_000 },
      { ratio: 0.25, quota: 200_000 },
    ],
    [['cpu-throttled', 'medium']],
  ],
  [
    'without periods nothing is throttled',
    [
      { periods: 0, throttled: 9e6 },
      { periods: 0, throttled: 9e6 },
    ],
    [],
  ],
  [
    'throttled at throttledRatioMax may still have a noisy neighbour',
    [
      { some: 30, ratio: 0.1, blame: OTHERS },
      { some: 30, ratio: 0.1 },
    ],
    [['noisy-neighbor', 'medium']],
  ],
  [
    'throttled above throttledRatioMax never has',
    [
      { some: 30, ratio: 0.11, blame: OTHERS },
      { some: 30, ratio: 0.11 },
    ],
    [],
  ],
  [
    'a throttled container has no noisy neighbour',
    [
      { some: 30, ratio: 0.3, blame: OTHERS },
      { some: 30, ratio: 0.3 },
    ],
    [['cpu-throttled', 'high']],
  ],
]) {
  check(`findings: ${what}`, async () => {
    const { findings } = await judged(rows)
    assert.deepEqual(findings.map(brief), expected)
  })
}

check('findings: cpu-throttled spans the rows of the window and gives the ratio, at most 1', async () => {
  const one = await judged([{}, { ratio: 1 }, { ratio: 0.5 }, {}])
  const f = only(one)
  assert.deepEqual([f.first_seen, f.last_seen], [one.v.times[0], one.v.times[3]])
  near(f.evidence.throttled_ratio, 0.375, 'throttled_ratio')
  near(only(await judged([{ ratio: 3 }])).evidence.throttled_ratio, 1, 'throttled_ratio')
})

// ---- severity of the other CPU findings

for (const [what, rows, severity] of [
  ['pressure alone is medium', STALL, 'medium'],
  ['run-queue latency alone is medium', [{ p99: 199_999 }, { p99: 199_999 }], 'medium'],
  [
    'pressure and run-queue latency are high',
    [
      { some: 30, p99: 30_000 },
      { some: 30, p99: 30_000 },
    ],
    'high',
  ],
  ['full pressure below 10 is medium', [{ some: 30, full: 9.5 }, { some: 30 }], 'medium'],
  ['full pressure of 10 is critical', [{ some: 30, full: 10 }, { some: 30 }], 'critical'],
  ['a p99 of 200 ms is critical', [{ p99: 200_000 }, { p99: 20_000 }], 'critical'],
  ['any overflow is critical', [{ some: 30 }, { some: 30 }, { overflow: 1 }], 'critical'],
]) {
  check(`findings: ${what}`, async () => assert.deepEqual(only(await judged(rows)).severity, severity))
}

// ---- the culprit

/** What the blame of a stalled container leads to; `neighbour` are the rows of the neighbour in it. */
async function blamed(blame, neighbour) {
  const node = unique('node')
  const [v, n] = [container({ node }), container({ node, pod: unique('neighbour') })]
  const entries = blame(n, v)
  await findingsPost(s, [[v, [{ some: 30, blame: entries }, { some: 30 }]], ...(neighbour ? [[n, neighbour]] : [])])
  return { v, n, f: only(await read(v)) }
}
const BUSY = [
  { usage: 900, request: 500 },
  { usage: 700, request: 500 },
]
const KUBELET = 'system.slice/kubelet.service'
for (const [what, kind, blame, neighbour] of [
  ['no blame at all', 'cpu-contended', () => []],
  ['blame on the container itself', 'cpu-contended', (_n, v) => [from(v, 900)]],
  ['unknown at blameShare', 'cpu-contended', (n) => [outside('unknown', 'exited', 400), from(n, 600)], BUSY],
  ['unknown below blameShare', 'noisy-neighbor', (n) => [outside('unknown', 'exited', 390), from(n, 610)], BUSY],
  ['nothing but unknown', 'cpu-contended', () => [outside('unknown', 'cgroup:77', 900)]],
  [
    'the heaviest at blameShare',
    'noisy-neighbor',
    (n) => [from(n, 400), outside('system', 'a.service', 350), outside('kernel', 'kernel', 250)],
    BUSY,
  ],
  [
    'the heaviest below blameShare',
    'cpu-contended',
    (n) => [from(n, 390), outside('system', 'a.service', 360), outside('kernel', 'kernel', 250)],
    BUSY,
  ],
  ['a pod that is not tracked', 'cpu-contended', () => [outside('pod', 'pod:0badcafe', 900)]],
  ['a pod without rows', 'noisy-neighbor', (n) => [from(n, 900)]],
  [
    'a pod within its request',
    'cpu-contended',
    (n) => [from(n, 900)],
    [
      { usage: 900, request: 500 },
      { usage: 100, request: 500 },
    ],
  ],
  [
    'a pod above its request',
    'noisy-neighbor',
    (n) => [from(n, 900)],
    [
      { usage: 900, request: 500 },
      { usage: 102, request: 500 },
    ],
  ],
  ['a pod without a request', 'noisy-neighbor', (n) => [from(n, 900)], [{ usage: 5 }, { usage: 5 }]],
  ['a system unit', 'noisy-neighbor', () => [outside('system', KUBELET, 900)]],
  ['the kernel', 'noisy-neighbor', () => [outside('kernel', 'kernel', 900)]],
  ['a group of another kind', 'cpu-contended', () => [outside('slice', 'machine.slice/vm', 900)]],
]) {
  check(`findings: a stall with ${what} is ${kind}`, async () => {
    assert.deepEqual(brief((await blamed(blame, neighbour)).f), [kind, 'medium'])
  })
}

check('findings: a pod culprit has its usage and request, without a request null', async () => {
  const { n, f } = await blamed((x) => [from(x, 700), outside('kernel', 'kernel', 100)], BUSY)
  assert.deepEqual(f.culprit, {
    kind: 'pod',
    ref: n.ref,
    pod_uid: n.pod_uid,
    namespace: n.ns,
    pod_name: n.pod,
    container_uid: n.uid,
    blame_share: 0.875,
    cpu_usage_millis: 800,
    cpu_request_millis: 500,
  })
  const free = await blamed((x) => [from(x, 900)], [{ usage: 150 }, { usage: 250 }])
  assert.deepEqual(
    [free.f.culprit.cpu_usage_millis, free.f.culprit.cpu_request_millis, free.f.culprit.blame_share],
    [200, null, 1],
  )
})

check('findings: a culprit that is opted out is named without usage and request', async () => {
  const { n, f } = await blamed((x) => [from(x, 500), outside('system', KUBELET, 300)])
  assert.deepEqual(f.culprit, {
    kind: 'pod',
    ref: n.ref,
    pod_uid: n.pod_uid,
    namespace: n.ns,
    pod_name: n.pod,
    container_uid: n.uid,
    blame_share: 0.625,
    cpu_usage_millis: null,
    cpu_request_millis: null,
  })
})

check('findings: a system unit and the kernel have no pod fields', async () => {
  for (const [kind, ref] of [
    ['system', KUBELET],
    ['kernel', 'kernel'],
  ]) {
    const { f } = await blamed(() => [outside(kind, ref, 750), outside('unknown', 'exited', 250)])
    assert.deepEqual(f.culprit, {
      kind,
      ref,
      pod_uid: null,
      namespace: null,
      pod_name: null,
      container_uid: null,
      blame_share: 0.75,
      cpu_usage_millis: null,
      cpu_request_millis: null,
    })
  }
})

check('findings: the waits of a culprit are summed over the window, the own ones left out', async () => {
  const node = unique('node')
  const [v, n] = [container({ node }), container({ node })]
  const rest = outside('system', KUBELET, 500)
  await findingsPost(s, [
    [
      v,
      [
        { some: 30, blame: [from(n, 300), rest, from(v, 9000)] },
        { some: 30, blame: [from(n, 300), from(v, 9000)] },
        { blame: [from(n, 400)] },
      ],
    ],
  ])
  const { culprit } = only(await read(v))
  assert.equal(culprit.container_uid, n.uid)
  near(culprit.blame_share, 2 / 3, 'blame_share')
})

check('findings: a culprit in another namespace is judged by its own rows', async () => {
  for (const [usage, kind] of [
    [500, 'cpu-contended'],
    [501, 'noisy-neighbor'],
  ]) {
    const node = unique('node')
    const [v, n] = [container({ node, ns: unique('victims') }), container({ node, ns: unique('culprits') })]
    await findingsPost(s, [
      [v, [{ some: 30, blame: [from(n, 10)] }, { some: 30 }]],
      [
        n,
        [
          { usage, request: 500 },
          { usage, request: 500 },
        ],
      ],
    ])
    const answer = await read(v)
    assert.deepEqual([only(answer).kind, answer.victims_evaluated], [kind, 1])
  }
})

// ---- memory

for (const [what, node, rows, expected] of [
  [
    'memory pressure at the threshold on a pressed node',
    5,
    [{ memSome: 10 }, { memSome: 10 }],
    [['memory-pressure', 'medium']],
  ],
  ['memory pressure below the threshold', 50, [{ memSome: 9.5 }, { memSome: 9.5 }], []],
  ['one row of memory pressure', 50, [{ memSome: 90 }, {}], []],
  ['two rows of memory pressure apart', 50, [{ memSome: 90 }, {}, { memSome: 90 }], []],
  ['refaults at the threshold', 50, [{ refault: 1000 }, { refault: 1000 }], [['memory-pressure', 'medium']]],
  ['refaults below the threshold', 50, [{ refault: 999 }, { refault: 999 }], []],
  [
    'pressure and refaults',
    50,
    [
      { memSome: 10, refault: 1000 },
      { memSome: 10, refault: 1000 },
    ],
    [['memory-pressure', 'high']],
  ],
  ['an OOM kill in the window', 50, [{ memSome: 10 }, { memSome: 10 }, { oom: 1 }], [['memory-pressure', 'critical']]],
  [
    'full memory pressure of 10',
    50,
    [{ memSome: 10, memFull: 10 }, { memSome: 10 }],
    [['memory-pressure', 'critical']],
  ],
  ['an OOM kill alone', 50, [{ oom: 3 }, { oom: 3 }], []],
  [
    'a calm node and no limit',
    4.5,
    [
      { memSome: 90, high: 9 },
      { memSome: 90, high: 9 },
    ],
    [],
  ],
  [
    'a calm node and a limit that is hit',
    4.5,
    [
      { memSome: 10, memLimit: 512 * MIB, high: 1 },
      { memSome: 10, memLimit: 512 * MIB, high: 1 },
    ],
    [['memory-limit-thrash', 'medium']],
  ],
  [
    'a calm node and a limit that is hit from either side',
    0,
    [
      { refault: 2000, memLimit: 512 * MIB, max: 1 },
      { refault: 2000, memLimit: 512 * MIB, high: 1 },
    ],
    [['memory-limit-thrash', 'medium']],
  ],
  [
    'a calm node and a limit that is hit in one row',
    0,
    [
      { memSome: 90, memLimit: 512 * MIB, high: 9 },
      { memSome: 90, memLimit: 512 * MIB },
    ],
    [],
  ],
  [
    'a limit that is hit on a pressed node',
    5,
    [
      { memSome: 10, memLimit: 512 * MIB, high: 1 },
      { memSome: 10, memLimit: 512 * MIB, high: 1 },
    ],
    [['memory-pressure', 'medium']],
  ],
  [
    'a limit that is hit without pressure',
    0,
    [
      { memLimit: 512 * MIB, high: 5 },
      { memLimit: 512 * MIB, high: 5 },
    ],
    [],
  ],
]) {
  check(`findings: ${what}: ${expected.length ? expected.join() : 'no memory finding'}`, async () => {
    const { findings } = await judged(rows, { node })
    assert.deepEqual(findings.map(brief), expected)
  })
}

check('findings: memory evidence has the pressure of the node', async () => {
  const { v, findings } = await judged(
    [
      { memSome: { avg: 15, max: 17.5 }, refault: 30, high: 2 },
      {},
      { memSome: 15, refault: 12, high: 5 },
      { memSome: 15, max: 3 },
    ],
    { node: 6.5 },
  )
  const f = only({ findings })
  assert.deepEqual(f.evidence, {
    window_minutes: 5,
    cpu_psi_some10_max: 0,
    cpu_psi_full10_max: 0,
    runq_p99_us_max: null,
    throttled_ratio: 0,
    mem_psi_some10_max: 17.5,
    node_mem_some10_max: 6.5,
    refault_delta: 42,
    mem_events_high_delta: 7,
  })
  assert.deepEqual([f.first_seen, f.last_seen, f.culprit], [v.times[0], v.times[3], null])
})

check('findings: the times of a limit thrash take in the limit hits', async () => {
  const limit = { memLimit: 512 * MIB }
  const { v, findings } = await judged(
    [{ ...limit, high: 1 }, { ...limit, high: 1, memSome: 20 }, { ...limit, memSome: 20 }, { ...limit }],
    { node: 1 },
  )
  const f = only({ findings })
  assert.deepEqual([f.kind, f.first_seen, f.last_seen], ['memory-limit-thrash', v.times[0], v.times[2]])
})

/** A victim of memory pressure and a neighbour on its node: what the neighbour's rows make of the culprit. */
async function pressed(own, theirs, where = {}) {
  const node = unique('node')
  const v = container({ node })
  const n = container({ node, pod: 'cache-0', ...where })
  await findingsNode(s, node, 20)
  await findingsPost(s, [
    [v, own.map((r) => ({ memSome: 20, ...r }))],
    [n, theirs],
  ])
  return { v, n, culprit: only(await read(v)).culprit }
}
const WITHIN = [
  { mem: 50 * MIB, memRequest: 100 * MIB },
  { mem: 60 * MIB, memRequest: 100 * MIB },
]
const over = (mib, request = 100) => [
  { mem: (request + mib - 10) * MIB, memRequest: request * MIB },
  { mem: (request + mib) * MIB, memRequest: request * MIB },
]
for (const [what, own, theirs, share] of [
  ['a neighbour that grew beyond its request', WITHIN, over(600), 1],
  ['a neighbour with the share of 0.40', over(900), over(600), 0.4],
  ['a neighbour below the share of 0.40', over(910), over(590), null],
  [
    'a neighbour without a request',
    WITHIN,
    [
      { mem: 300 * MIB, memRequest: null },
      { mem: 400 * MIB, memRequest: null },
    ],
    1,
  ],
  ['a neighbour within its request', WITHIN, WITHIN, null],
  [
    'a neighbour that did not grow',
    WITHIN,
    [
      { mem: 700 * MIB, memRequest: MIB },
      { mem: 700 * MIB, memRequest: MIB },
    ],
    null,
  ],
  ['a neighbour with one row', WITHIN, [{ mem: 700 * MIB, memRequest: MIB }], null],
  ['nobody but the victim', over(900), WITHIN, null],
]) {
  check(
    `findings: memory pressure, ${what}: ${share === null ? 'no culprit' : `a culprit with ${share}`}`,
    async () => {
      const { n, culprit } = await pressed(
        own,
        theirs.map((r) => ({ usage: 250, request: 300, ...r })),
      )
      if (share === null) {
        assert.equal(culprit, null)
        return
      }
      near(culprit.blame_share, share, 'blame_share')
      assert.deepEqual(
        { ...culprit, blame_share: 0 },
        {
          kind: 'pod',
          ref: n.ref,
          pod_uid: n.pod_uid,
          namespace: n.ns,
          pod_name: 'cache-0',
          container_uid: n.uid,
          blame_share: 0,
          cpu_usage_millis: 250,
          cpu_request_millis: 300,
        },
      )
    },
  )
}

check('findings: a container on another node is no culprit of memory pressure', async () => {
  assert.equal((await pressed(WITHIN, over(600), { node: unique('elsewhere') })).culprit, null)
})

// ---- order and scope

check('findings: they come by container, the CPU finding first, at most one of each', async () => {
  const ns = unique('order')
  const node = unique('node')
  const all = Array.from({ length: 6 }, (_, i) => container({ ns, node, container: `c${i}` }))
  await findingsNode(s, node, 30)
  await findingsPost(
    s,
    all.map((c) => [
      c,
      [
        { some: 30, memSome: 30, refault: 5000 },
        { some: 30, memSome: 30, refault: 5000 },
      ],
    ]),
  )
  const { findings, victims_evaluated } = await read({ ns })
  const uids = all.map((c) => c.uid).sort(byBytes)
  assert.deepEqual(
    findings.map((f) => [f.victim.container_uid, f.kind]),
    uids.flatMap((uid) => [
      [uid, 'cpu-contended'],
      [uid, 'memory-pressure'],
    ]),
  )
  assert.equal(victims_evaluated, 6)
})

check(
  'findings: namespace and node narrow the scope together, blank ones do not, without any it is the cluster',
  async () => {
    const { o, t } = await another()
    const [ns1, ns2, n1, n2] = [unique('one'), unique('two'), unique('node'), unique('node')]
    const all = [
      [ns1, n1],
      [ns1, n2],
      [ns2, n1],
    ].map(([ns, node]) => container({ ns, node }))
    await findingsPost(
      t,
      all.map((c) => [c, STALL]),
    )
    const uids = (...list) => list.map((i) => all[i].uid).sort(byBytes)
    for (const [params, expected] of [
      [{}, uids(0, 1, 2)],
      [{ namespace: '', node: '' }, uids(0, 1, 2)],
      [{ namespace: ns1 }, uids(0, 1)],
      [{ node: n1 }, uids(0, 2)],
      [{ namespace: ns2, node: '' }, uids(2)],
      [{ namespace: ns1, node: n1 }, uids(0)],
      [{ namespace: ns2, node: n2 }, []],
      [{ namespace: ns1.toUpperCase() }, []],
    ]) {
      const got = await findingsRead(t, params)
      assert.deepEqual(
        got.findings.map((f) => f.victim.container_uid),
        expected,
        JSON.stringify(params),
      )
      assert.deepEqual([got.victims_evaluated, got.truncated], [expected.length, false], JSON.stringify(params))
    }
    await o.stop()
  },
)

check('findings: at most 500 containers are evaluated, the first by uid', async () => {
  const ns = unique('crowd')
  const node = unique('node')
  const all = Array.from({ length: 501 }, (_, i) => container({ ns, node, pod: `p${i}` }))
  await findingsPost(
    s,
    all.slice(0, 500).map((c) => [c, STALL]),
  )
  const before500 = await read({ ns })
  assert.deepEqual([before500.truncated, before500.victims_evaluated, before500.findings.length], [false, 500, 500])
  await findingsPost(s, [[all[500], STALL]])
  const got = await read({ ns })
  assert.deepEqual([got.truncated, got.victims_evaluated], [true, 500])
  assert.deepEqual(
    got.findings.map((f) => f.victim.container_uid),
    all
      .map((c) => c.uid)
      .sort(byBytes)
      .slice(0, 500),
  )
})

// ---- settings

check('findings: the thresholds are those of the environment, and without history there are none', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'broker-conformance-'))
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }))
  const ns = unique('thresholds')
  const node = unique('node')
  const twice = (row) => [row, row]
  const mixed = [
    outside('system', 'a.service', 45),
    outside('system', 'b.service', 30),
    outside('kernel', 'kernel', 25),
  ]
  // Rows, the finding under the defaults, the finding under the settings below.
  const subjects = {
    stallSome: [twice({ some: 30 }), 'cpu-contended', null],
    runqP99Ms: [twice({ p99: 25_000 }), 'cpu-contended', null],
    minRunqEvents: [twice({ p99: 50_000, events: 30 }), null, 'cpu-contended'],
    throttledRatio: [twice({ ratio: 0.5 }), 'cpu-throttled', null],
    throttledRatioMax: [twice({ some: 60, ratio: 0.2 }), null, 'cpu-contended'],
    blameShare: [[{ some: 60, blame: mixed }, { some: 60 }], 'noisy-neighbor', 'cpu-contended'],
    memStallSome: [twice({ memSome: 12 }), 'memory-pressure', null],
    refaultPerMin: [twice({ refault: 1200 }), 'memory-pressure', null],
  }
  const settings = {
    COMPUTE_THRESHOLD_STALL_SOME: ' 40 ',
    COMPUTE_THRESHOLD_RUNQ_P99_MS: '30',
    COMPUTE_THRESHOLD_MIN_RUNQ_EVENTS: '20',
    COMPUTE_THRESHOLD_THROTTLED_RATIO: '0.6',
    COMPUTE_THRESHOLD_THROTTLED_RATIO_MAX: '0.3',
    COMPUTE_THRESHOLD_BLAME_SHARE: '0.5',
    COMPUTE_THRESHOLD_MEM_STALL_SOME: '15',
    COMPUTE_THRESHOLD_REFAULT_PER_MIN: '1500',
  }
  const kinds = async (t) => {
    const { findings, ...rest } = await findingsRead(t, { namespace: ns })
    assert.deepEqual(rest, { truncated: false, victims_evaluated: 8, history_disabled: false })
    return Object.fromEntries(
      Object.keys(subjects).map((name) => [name, findings.find((f) => f.victim.container === name)?.kind ?? null]),
    )
  }
  const expected = (i) => Object.fromEntries(Object.entries(subjects).map(([name, row]) => [name, row[i]]))
  const first = await another({ dataDir })
  await findingsNode(first.t, node, 20)
  await findingsPost(
    first.t,
    Object.entries(subjects).map(([name, [rows]]) => [container({ ns, node, container: name }), rows]),
  )
  assert.deepEqual(await kinds(first.t), expected(1))
  await first.o.stop()
  const second = await another({ dataDir, env: settings })
  assert.deepEqual(await kinds(second.t), expected(2))
  await second.o.stop()
  const third = await another({ dataDir, env: { COMPUTE_HISTORY_RETENTION_DAYS: '0' } })
  for (const params of [{}, { namespace: ns }, { node }]) {
    assert.deepEqual(await findingsRead(third.t, params), {
      findings: [],
      truncated: false,
      victims_evaluated: 0,
      history_disabled: true,
    })
  }
  await third.o.stop()
})

// ---- messages

check('findings: a message is one line that says what clients show', async () => {
  const said = async (rows, expected, options) => {
    const { message } = only(await judged(rows, options))
    assert.doesNotMatch(message, /[\r\n]/)
    for (const words of expected) assert.match(message, words)
  }
  await said([{ ratio: 0.5 }], [percent(50), /1\.0/])
  await said([{ ratio: 0.376, limit: null, quota: null }], [percent(38), /a quota/])
  await said(
    [{ some: 30, blame: [outside('unknown', 'exited', 452), outside('kernel', 'kernel', 548)] }, { some: 30 }],
    [percent(45)],
  )
  await said(
    [
      {
        some: 30,
        blame: [
          outside('system', 'a.service', 352),
          outside('system', 'b.service', 330),
          outside('kernel', 'kernel', 318),
        ],
      },
      { some: 30 },
    ],
    [percent(35), /a\.service/],
  )
  await said([{ some: 30, blame: [outside('system', KUBELET, 9)] }, { some: 30 }], [percent(100), /kubelet/])
  const limit = { memLimit: 512 * MIB - 1, high: 1, memSome: 20 }
  await said([limit, limit], [/(?<!\d)511(?!\d)/], { node: 0 })
  const node = unique('node')
  const [v, n] = [container({ node }), container({ node })]
  await findingsPost(s, [
    [v, [{ some: 30, blame: [from(n, 5)] }, { some: 30 }]],
    [
      n,
      [
        { usage: 2550, request: 1500 },
        { usage: 2550, request: 1500 },
      ],
    ],
  ])
  const { message } = only(await read(v))
  for (const words of [new RegExp(n.pod), percent(100), /2\.[56]/, /1\.5/]) assert.match(message, words)
})
