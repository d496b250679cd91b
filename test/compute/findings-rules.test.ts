/** The rules of findings over plain rows, step by step (docs/contract.md#findings). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Container,
  type Finding,
  findingsOfVictim,
  type Neighbor,
  type Thresholds,
  thresholdsOf,
  type Victim,
} from '../../lib/compute/findings/index.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { container, minutes, type StoredMinute, wait, waitFor } from '../support/compute.ts'

const MIB = 2 ** 20
const NOW = Date.parse('2026-01-01T12:00:00Z')
const at = (ageSecs: number) => new Date(NOW - ageSecs * 1_000).toISOString().slice(0, 19)
const rowsOf = (list: readonly StoredMinute[]) => list.map((row) => ({ ...row, ts: at(row.ageSecs) }))

const me = container({ podName: 'me' })
const other = container({ podName: 'other', namespace: 'batch' })
const neighbor = (of: Container, ...rows: Partial<StoredMinute>[]): Neighbor => ({
  container: of,
  rows: rowsOf(minutes(...rows)),
})

interface Case {
  readonly neighbors?: readonly Neighbor[]
  readonly nodeSome10?: number
  readonly isNodeRead?: boolean
  readonly thresholds?: Partial<Thresholds>
  readonly restNs?: number
  readonly isWhole?: boolean
}

/** The findings of a container with these rows and these waits. */
function found(
  rows: readonly (Partial<StoredMinute> | null)[],
  { neighbors = [], nodeSome10 = 0, isNodeRead = true, thresholds = {}, restNs = 0, isWhole = true }: Case = {},
): Finding[] {
  const own = rowsOf(minutes(...rows))
  const victim: Victim = {
    container: me,
    rows: own,
    blame: { waits: own.flatMap(({ waits }) => waits), restNs, isWhole },
    node: { memorySome10: nodeSome10, containers: isNodeRead ? [{ container: me, rows: own }, ...neighbors] : null },
  }
  const find = (uid: string) => neighbors.find((one) => one.container.containerUid === uid)
  return findingsOfVictim(victim, find, { ...thresholdsOf(loadConfig({})), ...thresholds })
}
const only = (list: readonly Finding[]): Finding => {
  assert.equal(list.length, 1, JSON.stringify(list))
  return list[0]!
}
const brief = (list: readonly Finding[]) => list.map(({ kind, severity }) => `${kind} ${severity}`)

type Table = readonly (readonly [
  what: string,
  rows: readonly (Partial<StoredMinute> | null)[],
  expected: readonly string[],
  options?: Case,
])[]
const eachOf = (table: Table) => {
  for (const [what, rows, expected, options] of table)
    test(`${what}: ${expected.length === 0 ? 'nothing' : expected}`, () =>
      assert.deepEqual(brief(found(rows, options)), expected))
}

const late = (p99Us: number, count = 50) => ({ runqCount: count, runqP99Us: p99Us, runqOverflow: 0 })
const MEDIUM = ['cpu-contended medium']

describe('CPU, step 0: a stall', () => {
  eachOf([
    ['a quiet container', [{}, {}, {}], []],
    ['pressure at the threshold in two rows', [{ cpuSomeAvg: 20 }, { cpuSomeAvg: 20 }], MEDIUM],
    ['pressure below it', [{ cpuSomeAvg: 19.99 }, { cpuSomeAvg: 19.99 }, { cpuSomeAvg: 19.99 }], []],
    [
      'a maximum above it',
      [
        { cpuSomeAvg: 19, cpuSomeMax: 99 },
        { cpuSomeAvg: 19, cpuSomeMax: 99 },
      ],
      [],
    ],
    ['one row', [{ cpuSomeAvg: 90 }], []],
    ['two rows with one between', [{ cpuSomeAvg: 90 }, {}, { cpuSomeAvg: 90 }], []],
    ['two rows with minutes between that have none', [{ cpuSomeAvg: 90 }, null, null, { cpuSomeAvg: 90 }], MEDIUM],
    ['lateness at the threshold', [late(20_000), late(20_000)], MEDIUM],
    ['lateness below it', [late(19_999), late(19_999)], []],
    ['too few events', [late(90_000, 49), late(90_000, 49)], []],
    ['lateness without a count', [{ runqP99Us: 90_000 }, { runqP99Us: 90_000 }], []],
    [
      'a count without lateness, threshold 0',
      [{ runqCount: 90 }, { runqCount: 90 }],
      [],
      { thresholds: { runqP99Ms: 0 } },
    ],
    [
      'overflow, however few the events',
      [
        { ...late(1, 1), runqOverflow: 1 },
        { ...late(1, 1), runqOverflow: 1 },
      ],
      ['cpu-contended critical'],
    ],
    ['overflow in one row', [{ ...late(1), runqOverflow: 9 }, late(1)], []],
    [
      'a row that is late and one that overflows',
      [{ ...late(1), runqOverflow: 9 }, late(20_000)],
      ['cpu-contended critical'],
    ],
    ['a row of pressure and one of lateness', [{ cpuSomeAvg: 90 }, late(90_000)], []],
    ['other thresholds', [{ cpuSomeAvg: 30 }, { cpuSomeAvg: 30 }], [], { thresholds: { stallSome: 30.5 } }],
  ])

  test('a span is from the first to the last row that satisfies a sustained condition', () => {
    const times = (...rows: (Partial<StoredMinute> | null)[]) => {
      const { first_seen, last_seen } = only(found(rows))
      return [first_seen, last_seen].map((time) => rows.length - 1 - (NOW - 20_000 - Date.parse(time)) / 60_000)
    }
    assert.deepEqual(times({}, { cpuSomeAvg: 30 }, { cpuSomeAvg: 30 }, {}, { cpuSomeAvg: 30 }, {}), [1, 4])
    assert.deepEqual(times({}, late(30_000), { ...late(30_000), cpuSomeAvg: 30 }, { cpuSomeAvg: 30 }, {}), [1, 3])
    assert.deepEqual(times({ cpuSomeAvg: 30 }, {}, late(30_000), late(30_000)), [2, 3], 'one of pressure is no span')
  })
})

/** Throttled for this part of all periods. */
const throttled = (ratio: number, over: Partial<StoredMinute> = {}) => ({
  throttledUsec: Math.round(ratio * 600 * 100_000),
  ...over,
})
const STALL = { cpuSomeAvg: 30 }

describe('CPU, steps 1 and 2: throttling', () => {
  eachOf([
    ['at the threshold, without a stall', [throttled(0.25)], ['cpu-throttled medium']],
    ['with a stall', [throttled(0.25, STALL), throttled(0.25, STALL)], ['cpu-throttled high']],
    [
      'with a stall that would be critical',
      [throttled(0.25, { ...STALL, cpuFullMax: 50 }), throttled(0.25, STALL)],
      ['cpu-throttled high'],
    ],
    ['below it', [throttled(0.2499)], []],
    ['over the whole window', [throttled(0.5), {}], ['cpu-throttled medium']],
    ['weighed by the periods', [throttled(0.5, { periods: 100, throttledUsec: 5_000_000 }), {}], []],
    [
      'of the time of the periods, whatever the quota',
      [{ periodUsec: 50_000, throttledUsec: 7_500_000 }],
      ['cpu-throttled medium'],
    ],
    [
      'without periods',
      [
        { periods: 0, throttledUsec: 9e9 },
        { periods: 0, throttledUsec: 9e9 },
      ],
      [],
    ],
    ['a stall at throttledRatioMax', [throttled(0.1, STALL), throttled(0.1, STALL)], MEDIUM],
    ['a stall above it', [throttled(0.1001, STALL), throttled(0.1001, STALL)], []],
    [
      'a stall above it, where it is above throttledRatio',
      [throttled(0.3, STALL), throttled(0.3, STALL)],
      ['cpu-throttled high'],
      { thresholds: { throttledRatioMax: 0.2 } },
    ],
    [
      'all periods are at least a threshold of 0',
      [{}],
      ['cpu-throttled medium'],
      { thresholds: { throttledRatio: 0 } },
    ],
  ])

  test('a throttling finding spans all rows, has no culprit, and its share is at most 1', () => {
    const finding = only(found([{}, throttled(3), throttled(3), {}]))
    assert.deepEqual([finding.first_seen, finding.last_seen, finding.culprit], [`${at(200)}Z`, `${at(20)}Z`, null])
    assert.equal(finding.evidence.throttled_ratio, 1)
  })
})

describe('CPU, step 3: severity', () => {
  const both = { ...STALL, ...late(30_000) }
  eachOf([
    ['pressure', [STALL, STALL], MEDIUM],
    ['lateness', [late(199_999), late(199_999)], MEDIUM],
    ['both', [both, both], ['cpu-contended high']],
    ['both in different rows', [STALL, STALL, late(30_000), late(30_000)], ['cpu-contended high']],
    ['full pressure below 10', [{ ...STALL, cpuFullMax: 9.99 }, STALL], MEDIUM],
    ['full pressure of 10 in any row', [STALL, STALL, { cpuFullMax: 10 }], ['cpu-contended critical']],
    ['a p99 of 200 ms in any row', [STALL, STALL, late(200_000, 1)], ['cpu-contended critical']],
    ['overflow in any row', [STALL, STALL, { ...late(1), runqOverflow: 1 }], ['cpu-contended critical']],
  ])
})

const NOISY = ['noisy-neighbor medium']
const blaming = (...waits: StoredMinute['waits']) => [{ ...STALL, waits }, STALL]
const unit = (waitNs: number, name = 'kubelet.service') => wait('system', name, waitNs)
const unknown = (waitNs: number, ref = 'exited') => wait('unknown', ref, waitNs)
const busy = {
  neighbors: [neighbor(other, { usageMillis: 900, requestMillis: 500 }, { usageMillis: 700, requestMillis: 500 })],
}

describe('CPU, step 4: the culprit', () => {
  eachOf([
    ['4a: no wait', blaming(), MEDIUM],
    ['4a: waits for itself alone', blaming(waitFor(me, 900)), MEDIUM],
    ['4b: unknown at the share', blaming(unknown(400), unit(600)), MEDIUM],
    ['4b: unknown groups together at the share', blaming(unknown(200), unknown(200, 'cgroup:7'), unit(600)), MEDIUM],
    ['4b: unknown below it', blaming(unknown(399), unit(601)), NOISY],
    ['4c: nothing but unknown, the share above 1', blaming(unknown(9)), MEDIUM, { thresholds: { blameShare: 2 } }],
    ['4c: the heaviest at the share', blaming(unit(400), unit(350, 'a'), unit(250, 'b')), NOISY],
    ['4c: the heaviest below it', blaming(unit(399), unit(351, 'a'), unit(250, 'b')), MEDIUM],
    ['4c: below it by what is not in the list', blaming(unit(399)), MEDIUM, { restNs: 601 }],
    ['4c: at it beside what is not in the list', blaming(unit(400)), NOISY, { restNs: 600 }],
    ['more waits than are read', blaming(unit(400)), MEDIUM, { isWhole: false }],
    ['4d: a pod that is not tracked', blaming(wait('pod', 'pod:0badcafe', 9)), MEDIUM],
    ['4e: a pod without rows', blaming(waitFor(other, 9)), NOISY],
    [
      '4f: a pod within its request',
      blaming(waitFor(other, 9)),
      MEDIUM,
      {
        neighbors: [
          neighbor(other, { usageMillis: 900, requestMillis: 500 }, { usageMillis: 100, requestMillis: 500 }),
        ],
      },
    ],
    [
      '4g: a pod above its request',
      blaming(waitFor(other, 9)),
      NOISY,
      {
        neighbors: [
          neighbor(other, { usageMillis: 900, requestMillis: 500 }, { usageMillis: 100.5, requestMillis: 500 }),
        ],
      },
    ],
    [
      '4g: the request is that of the newest row',
      blaming(waitFor(other, 9)),
      NOISY,
      {
        neighbors: [
          neighbor(other, { usageMillis: 600, requestMillis: 900 }, { usageMillis: 600, requestMillis: 500 }),
        ],
      },
    ],
    [
      '4g: a pod without a request',
      blaming(waitFor(other, 9)),
      NOISY,
      { neighbors: [neighbor(other, { usageMillis: 1 })] },
    ],
    ['4h: a system unit', blaming(unit(9)), NOISY],
    ['4h: the kernel', blaming(wait('kernel', 'kernel', 9)), NOISY],
    ['4i: another kind', blaming(wait('slice', 'machine.slice', 9)), MEDIUM],
    [
      'the waits of a group are summed',
      [
        { ...STALL, waits: [unit(200), unit(350, 'a')] },
        { ...STALL, waits: [unit(200), unit(250, 'b')] },
      ],
      NOISY,
    ],
    [
      'groups are told apart by their uid',
      blaming(waitFor(other, 300), { ...waitFor(other, 300), containerUid: 'x/app' }, unit(320)),
      MEDIUM,
    ],
    ['own waits do not count', blaming(waitFor(me, 9e9), unit(1)), NOISY],
  ])

  const culpritOf = (rows: readonly Partial<StoredMinute>[], options?: Case) => only(found(rows, options)).culprit
  const none = {
    pod_uid: null,
    namespace: null,
    pod_name: null,
    container_uid: null,
    cpu_usage_millis: null,
    cpu_request_millis: null,
  }

  test('a pod as culprit has its names, its mean usage and its newest request', () => {
    assert.deepEqual(culpritOf(blaming(waitFor(other, 750), unit(250)), busy), {
      kind: 'pod',
      ref: 'batch/other/app',
      pod_uid: 'uid-other',
      namespace: 'batch',
      pod_name: 'other',
      container_uid: 'uid-other/app',
      blame_share: 0.75,
      cpu_usage_millis: 800,
      cpu_request_millis: 500,
    })
  })

  test('a pod that has opted out has the names of its reference and its uid', () => {
    const named = {
      ...none,
      kind: 'pod',
      ref: 'batch/other/app',
      pod_uid: 'uid-other',
      namespace: 'batch',
      pod_name: 'other',
      container_uid: 'uid-other/app',
    }
    assert.deepEqual(culpritOf(blaming(waitFor(other, 1))), { ...named, blame_share: 1 })
    const odd = culpritOf(blaming(wait('pod', 'pod:0badcafe', 1, 'uid-x')))
    assert.deepEqual(odd, {
      ...none,
      kind: 'pod',
      ref: 'pod:0badcafe',
      pod_uid: 'uid-x',
      container_uid: 'uid-x',
      blame_share: 1,
    })
  })

  test('a system unit and the kernel have no pod names, whatever was posted', () => {
    assert.deepEqual(culpritOf(blaming(unit(1))), { ...none, kind: 'system', ref: 'kubelet.service', blame_share: 1 })
    assert.deepEqual(culpritOf(blaming(wait('kernel', 'kernel', 1, 'uid-other/app')), busy), {
      ...none,
      kind: 'kernel',
      ref: 'kernel',
      blame_share: 1,
    })
  })

  test('of two equal culprits the choice is always the same', () => {
    const [a, b] = [unit(1, 'a'), unit(1, 'b')]
    for (const waits of [
      [a, b],
      [b, a],
    ])
      assert.equal(culpritOf(blaming(...waits))!.ref, 'a')
  })
})

const short = { nodeSome10: 5 }
const PRESSED = ['memory-pressure medium']
const STALLED = { memorySomeAvg: 10 }

describe('memory, steps 0 to 2: pressure', () => {
  eachOf([
    ['pressure at the threshold', [STALLED, STALLED], PRESSED, short],
    ['pressure below it', [{ memorySomeAvg: 9.99 }, { memorySomeAvg: 9.99 }], [], short],
    ['its maximum', [{ memorySomeMax: 90 }, { memorySomeMax: 90 }], [], short],
    ['one row', [STALLED], [], short],
    ['two rows with one between', [STALLED, {}, STALLED], [], short],
    ['refaults at the threshold', [{ refaults: 1_000 }, { refaults: 1_000 }], PRESSED, short],
    ['refaults below it', [{ refaults: 999 }, { refaults: 999 }], [], short],
    [
      'both',
      [
        { ...STALLED, refaults: 1_000 },
        { ...STALLED, refaults: 1_000 },
      ],
      ['memory-pressure high'],
      short,
    ],
    ['an OOM kill in any row', [STALLED, STALLED, { oomKills: 1 }], ['memory-pressure critical'], short],
    ['full pressure below 10', [STALLED, { ...STALLED, memoryFullMax: 9.99 }], PRESSED, short],
    ['full pressure of 10 in any row', [STALLED, STALLED, { memoryFullMax: 10 }], ['memory-pressure critical'], short],
    ['an OOM kill alone', [{ oomKills: 9 }, { oomKills: 9 }], [], short],
    ['a node that is short of nothing', [STALLED, STALLED], [], { nodeSome10: 4.99 }],
    [
      'a limit that is hit on a node that is short',
      [
        { ...STALLED, memoryLimitBytes: MIB, eventsHigh: 1 },
        { ...STALLED, memoryLimitBytes: MIB, eventsHigh: 1 },
      ],
      PRESSED,
      short,
    ],
    [
      'CPU before memory',
      [
        { ...STALL, ...STALLED },
        { ...STALL, ...STALLED },
      ],
      [...MEDIUM, ...PRESSED],
      short,
    ],
  ])

  const over = (mib: number, from = mib - 1): Partial<StoredMinute>[] =>
    [from, mib].map((beyond) => ({
      memoryBytes: (100 + beyond) * MIB,
      memoryRequestBytes: 100 * MIB,
      usageMillis: 250,
      requestMillis: 300,
    }))
  const WITHIN = over(-10)
  const third = container({ podName: 'third' })
  /** The share of the culprit, by name. */
  const culpritOf = (own: readonly Partial<StoredMinute>[], neighbors: readonly Neighbor[], options: Case = {}) => {
    const { culprit } = only(
      found(
        own.map((row) => ({ ...row, ...STALLED })),
        { ...short, neighbors, ...options },
      ),
    )
    return culprit && [culprit.pod_name, Number(culprit.blame_share.toFixed(4))]
  }

  for (const [what, expected, own, neighbors, options] of [
    ['a neighbor that grew beyond its request', ['other', 1], WITHIN, [neighbor(other, ...over(600))]],
    ['a share of 0.4', ['other', 0.4], over(900), [neighbor(other, ...over(600))]],
    ['a share below it', null, over(901), [neighbor(other, ...over(600))]],
    [
      'one without a request',
      ['other', 1],
      WITHIN,
      [neighbor(other, { memoryBytes: 1, memoryRequestBytes: null }, { memoryBytes: 2, memoryRequestBytes: null })],
    ],
    [
      'the request is that of the newest row',
      null,
      WITHIN,
      [neighbor(other, { memoryBytes: 5, memoryRequestBytes: 1 }, { memoryBytes: 9, memoryRequestBytes: 10 })],
    ],
    ['one within its request', null, WITHIN, [neighbor(other, ...WITHIN)]],
    ['one that did not grow', null, WITHIN, [neighbor(other, ...over(600, 600))]],
    ['one that grew and shrank', null, WITHIN, [neighbor(other, ...over(600), ...over(590, 700))]],
    ['one with one row', null, WITHIN, [neighbor(other, over(600)[1]!)]],
    ['nobody but the victim', null, over(900), [neighbor(other, ...WITHIN)]],
    [
      'the heaviest of those that grew',
      ['other', 0.45],
      WITHIN,
      [neighbor(other, ...over(450)), neighbor(third, ...over(550, 550))],
    ],
    ['of two the heavier', ['third', 0.55], WITHIN, [neighbor(other, ...over(450)), neighbor(third, ...over(550))]],
    [
      'of two with equal waits the first by uid',
      ['other', 0.5],
      WITHIN,
      [neighbor(third, ...over(500)), neighbor(other, ...over(500))],
    ],
    ['a node that was not read as a whole', null, WITHIN, [neighbor(other, ...over(600))], { isNodeRead: false }],
  ] as const)
    test(`2a: ${what}: ${expected ?? 'nobody'}`, () => assert.deepEqual(culpritOf(own, neighbors, options), expected))

  test('2a: a culprit has its names, its mean usage and its newest request', () => {
    assert.deepEqual(only(found([STALLED, STALLED], { ...short, neighbors: [neighbor(other, ...over(10))] })).culprit, {
      kind: 'pod',
      ref: 'batch/other/app',
      pod_uid: 'uid-other',
      namespace: 'batch',
      pod_name: 'other',
      container_uid: 'uid-other/app',
      blame_share: 1,
      cpu_usage_millis: 250,
      cpu_request_millis: 300,
    })
  })
})

describe('memory, steps 3 and 4: a limit', () => {
  const limit = { memoryLimitBytes: 512 * MIB }
  const hit = { ...limit, eventsHigh: 1 }
  eachOf([
    [
      'a limit that is hit',
      [
        { ...hit, ...STALLED },
        { ...hit, ...STALLED },
      ],
      ['memory-limit-thrash medium'],
    ],
    [
      'from either side',
      [
        { ...limit, eventsMax: 1, refaults: 1_000 },
        { ...hit, refaults: 1_000 },
      ],
      ['memory-limit-thrash medium'],
    ],
    [
      'with refaults and pressure',
      [
        { ...hit, ...STALLED, refaults: 1_000 },
        { ...hit, ...STALLED, refaults: 1_000 },
      ],
      ['memory-limit-thrash high'],
    ],
    [
      'with an OOM kill',
      [
        { ...hit, ...STALLED },
        { ...hit, ...STALLED, oomKills: 1 },
      ],
      ['memory-limit-thrash critical'],
    ],
    [
      'in one row',
      [
        { ...hit, ...STALLED },
        { ...limit, ...STALLED },
      ],
      [],
    ],
    [
      'without a limit in the newest row',
      [
        { ...hit, ...STALLED },
        { ...STALLED, eventsHigh: 1 },
      ],
      [],
    ],
    ['without pressure', [hit, hit], []],
    [
      'with pressure of the node below 5',
      [
        { ...hit, ...STALLED },
        { ...hit, ...STALLED },
      ],
      ['memory-limit-thrash medium'],
      { nodeSome10: 4.99 },
    ],
  ])

  test('the times of the finding include the hits of the limit', () => {
    const finding = only(found([hit, { ...hit, ...STALLED }, { ...limit, ...STALLED }, limit]))
    assert.deepEqual([finding.first_seen, finding.last_seen, finding.culprit], [`${at(200)}Z`, `${at(80)}Z`, null])
  })
})

describe('evidence', () => {
  const rows = [
    {
      ...STALL,
      ...STALLED,
      cpuSomeMax: 45.5,
      cpuFullMax: 2.5,
      memorySomeMax: 17.5,
      ...late(700),
      refaults: 30,
      eventsHigh: 2,
      eventsMax: 50,
    },
    { ...STALL, ...STALLED, refaults: 12, eventsHigh: 5, throttledUsec: 6_000_000 },
  ]
  const evidence = {
    window_minutes: 5,
    cpu_psi_some10_max: 45.5,
    cpu_psi_full10_max: 2.5,
    runq_p99_us_max: 700,
    throttled_ratio: 0.05,
    mem_psi_some10_max: 17.5,
    node_mem_some10_max: 0,
    refault_delta: 42,
    mem_events_high_delta: 7,
  }
  test('CPU evidence lacks the pressure of the node, memory evidence has it', () => {
    const [cpu, memory] = found(rows, { nodeSome10: 6.5 })
    assert.deepEqual(cpu!.evidence, evidence)
    assert.deepEqual(memory!.evidence, { ...evidence, node_mem_some10_max: 6.5 })
  })
  test('without a probe there is no run-queue latency', () =>
    assert.equal(only(found([STALL, STALL])).evidence.runq_p99_us_max, null))
})

test('a victim has its names, and times are in whole seconds', () => {
  const finding = only(
    findingsOfVictim(
      {
        container: me,
        rows: rowsOf(minutes(STALL, STALL)).map((row) => ({ ...row, ts: `${row.ts}.123456` })),
        blame: { waits: [], restNs: 0, isWhole: true },
        node: { memorySome10: 0, containers: null },
      },
      () => undefined,
      thresholdsOf(loadConfig({})),
    ),
  )
  assert.deepEqual(finding.victim, {
    pod_uid: 'uid-me',
    namespace: 'shop',
    pod_name: 'me',
    container: 'app',
    container_uid: 'uid-me/app',
    node: 'node-1',
  })
  assert.deepEqual([finding.first_seen, finding.last_seen], [`${at(80)}Z`, `${at(20)}Z`])
})

describe('messages', () => {
  const limited = { memoryLimitBytes: 512 * MIB - 1, eventsHigh: 2, eventsMax: 1, ...STALLED }
  const grown = [
    { memoryBytes: MIB, memoryRequestBytes: 0 },
    { memoryBytes: 3 * MIB - 1, memoryRequestBytes: 0 },
  ]
  for (const [rows, options, expected] of [
    [
      [throttled(0.376)],
      {},
      'was throttled 38% of the time by its own limit of 1.0 cores: raise the limit or lower what it takes.',
    ],
    [
      [throttled(0.5, { limitMillis: null })],
      {},
      'was throttled 50% of the time by a quota: raise the limit or lower what it takes.',
    ],
    [blaming(), {}, 'waits for CPU, and the scheduler blames nobody for it.'],
    [blaming(unknown(452), unit(548)), {}, 'waits for CPU, and 45% of it cannot be attributed to anybody.'],
    [
      blaming(unit(352), unit(330, 'a'), unit(318, 'b')),
      {},
      'waits for CPU with nobody dominating: the heaviest, kubelet.service, accounts for 35%.',
    ],
    [blaming(wait('pod', 'pod:0badcafe', 1)), {}, 'waits for CPU, 100% of it for pod:0badcafe, which is not tracked.'],
    [
      blaming(waitFor(other, 1)),
      { neighbors: [neighbor(other, { requestMillis: 1_500 })] },
      'waits for CPU, 100% of it for batch/other/app, which stays within its request of 1.5 cores.',
    ],
    [blaming(wait('slice', 'vm', 1)), {}, 'waits for CPU, 100% of it for the unclassified group vm.'],
    [
      blaming(unit(1)),
      { isWhole: false },
      'waits for CPU for more groups than are weighed, so that nobody can be named.',
    ],
    [blaming(waitFor(other, 1)), {}, 'waits for CPU, 100% of it for batch/other/app, which has opted out of sampling.'],
    [
      blaming(waitFor(other, 1)),
      busy,
      'waits for CPU, 100% of it for batch/other/app, which takes 0.8 cores against a request of 0.5 cores.',
    ],
    [
      blaming(waitFor(other, 1)),
      { neighbors: [neighbor(other, {})] },
      'waits for CPU, 100% of it for batch/other/app, which takes 0.1 cores with no request.',
    ],
    [blaming(unit(1)), {}, 'waits for CPU, 100% of it for the system unit kubelet.service.'],
    [blaming(wait('kernel', 'kernel', 1)), {}, 'waits for CPU, 100% of it for the kernel.'],
    [[STALLED, STALLED], short, 'is short of memory on a node under memory pressure, and nobody accounts for it.'],
    [
      [STALLED, STALLED],
      { ...short, neighbors: [neighbor(other, ...grown)] },
      'is short of memory on a node under memory pressure: batch/other/app grows and is 2 MiB beyond its request, 100% of what is beyond requests there (a heuristic).',
    ],
    [
      [limited, limited],
      {},
      'is held back by its own memory limit of 511 MiB, hit 6 times in 5 minutes: raise the limit or lower what it takes.',
    ],
  ] as const)
    test(expected, () => assert.equal(only(found(rows, options)).message, `shop/me ${expected}`))

  test('messages are one line of printable characters, whatever names were posted', () => {
    const odd = 'a\r\nb\u0000\u001b[31m\u0085\u2028\u2029\u202e\u200fc'
    const { message, culprit } = only(found(blaming(unit(1, odd))))
    assert.equal(message, 'shop/me waits for CPU, 100% of it for the system unit a b [31m c.')
    assert.equal(culprit!.ref, odd)
  })
})
