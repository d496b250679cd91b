import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { Finding } from '../../lib/compute/findings/index.ts'
import { startApp, TOKENS } from '../support/app.ts'
import {
  container,
  minutes,
  type StoredHistory,
  type StoredMinute,
  storeCompute,
  timeAt,
  wait,
  waitFor,
} from '../support/compute.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'

const PATH = '/compute/findings'
const app = await startApp()
const { sql } = app
const MIB = 2 ** 20

beforeEach(async () => {
  await sql`truncate compute_container, compute_minute, compute_contention, compute_node restart identity`
})

const STALL = { cpuSomeAvg: 30 }
const SHORT = { memorySomeAvg: 20 }
const history = (names: Parameters<typeof container>[0], ...rows: (Partial<StoredMinute> | null)[]): StoredHistory => ({
  container: container(names),
  minutes: minutes(...rows),
})
const store = (histories: readonly StoredHistory[], nodes?: Iterable<readonly [string, number]>) =>
  storeCompute(sql, histories, nodes)

interface Answer {
  findings: Finding[]
  truncated: boolean
  victims_evaluated: number
  history_disabled: boolean
}
async function read(query = ''): Promise<Answer> {
  const answer = await app.get(PATH + query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const brief = ({ findings }: Answer) => findings.map(({ victim, kind }) => `${victim.pod_name} ${kind}`)
const NOTHING = { findings: [], truncated: false, victims_evaluated: 0, history_disabled: false }

test('GET /compute/findings 200: no findings in an empty database', async () => {
  const answer = await app.get(PATH)
  assert.equal(answer.text, '{"findings":[],"truncated":false,"victims_evaluated":0,"history_disabled":false}')
  assert.match(answer.headers.get('content-type')!, /^application\/json/)
})

test('GET /compute/findings 200: a noisy neighbor in full, keys in wire order', async () => {
  const noisy = history(
    { podName: 'batch-0', namespace: 'batch', name: 'worker' },
    { usageMillis: 900, requestMillis: 500 },
    { usageMillis: 1_100, requestMillis: 500 },
  )
  const [late, unit] = [{ runqCount: 80, runqOverflow: 0 }, wait('system', 'sshd.service', 200_000)]
  const victim = history(
    { podName: 'web-0' },
    {
      ...STALL,
      ...late,
      cpuSomeMax: 45.5,
      cpuFullMax: 2.5,
      runqP99Us: 30_000,
      refaults: 7,
      eventsHigh: 2,
      memorySomeMax: 3.5,
      throttledUsec: 3_750_000,
    },
    {
      ...STALL,
      ...late,
      runqP99Us: 25_000,
      refaults: 7,
      throttledUsec: 3_750_000,
      waits: [waitFor(noisy.container, 600_000), unit, waitFor(container({ podName: 'web-0' }), 5e9)],
    },
  )
  const now = await store([victim, noisy], [['node-1', 9]])
  const { findings, ...rest } = await read('?namespace=shop')
  assert.deepEqual(rest, { truncated: false, victims_evaluated: 1, history_disabled: false })
  const expected = {
    kind: 'noisy-neighbor',
    severity: 'high',
    victim: {
      pod_uid: 'uid-web-0',
      namespace: 'shop',
      pod_name: 'web-0',
      container: 'app',
      container_uid: 'uid-web-0/app',
      node: 'node-1',
    },
    culprit: {
      kind: 'pod',
      ref: 'batch/batch-0/worker',
      pod_uid: 'uid-batch-0',
      namespace: 'batch',
      pod_name: 'batch-0',
      container_uid: 'uid-batch-0/worker',
      blame_share: 0.75,
      cpu_usage_millis: 1_000,
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
      mem_events_high_delta: 2,
    },
    first_seen: `${timeAt(now, 80)}Z`,
    last_seen: `${timeAt(now, 20)}Z`,
    message:
      'shop/web-0 waits for CPU, 75% of it for batch/batch-0/worker, which takes 1.0 cores against a request of 0.5 cores.',
  }
  assert.equal(JSON.stringify(findings), JSON.stringify([expected]))
})

test('GET /compute/findings 200: memory pressure has a culprit of another namespace, and none if the node has enough memory', async () => {
  const grown = [
    { memoryBytes: 500 * MIB, memoryRequestBytes: MIB },
    { memoryBytes: 600 * MIB, memoryRequestBytes: MIB },
  ]
  const rows = (node: string) => [
    history({ podName: `web-${node}`, node }, SHORT, SHORT),
    history({ podName: `cache-${node}`, namespace: 'data', node }, ...grown),
    history({ podName: `idle-${node}`, namespace: 'data', node }),
  ]
  await store(
    [...rows('a'), ...rows('b'), ...rows('c')],
    [
      ['a', 5],
      ['b', 4.9],
    ],
  )
  const { findings } = await read('?namespace=shop')
  assert.deepEqual(
    findings.map(({ kind, victim, culprit, evidence }) => [
      kind,
      victim.node,
      culprit?.pod_name,
      culprit?.blame_share,
      evidence.node_mem_some10_max,
    ]),
    [['memory-pressure', 'a', 'cache-a', 1, 5]],
  )
})

describe('the window', () => {
  test('GET /compute/findings 200: the window is five minutes of one-minute rows', async () => {
    await store([
      history({ podName: 'old' }, { ...STALL, ageSecs: 400 }, { ...STALL, ageSecs: 330 }),
      history({ podName: 'half' }, { ...STALL, ageSecs: 330 }, { ...STALL, ageSecs: 20 }),
      history({ podName: 'whole' }, { ...STALL, ageSecs: 270 }, { ...STALL, ageSecs: 20 }),
      history({ podName: 'coarse' }, { ...STALL, resolutionSecs: 120 }, { ...STALL, resolutionSecs: 120 }),
      history({ podName: 'mixed' }, {}, { ...STALL, resolutionSecs: 120 }, { ...STALL, resolutionSecs: 120 }, {}),
      history({ podName: 'ahead' }, { ...STALL, ageSecs: -200 }, { ...STALL, ageSecs: -299 }),
    ])
    const answer = await read()
    assert.deepEqual([brief(answer), answer.victims_evaluated], [['ahead cpu-contended', 'whole cpu-contended'], 4])
  })

  test('GET /compute/findings 200: the window has the six newest rows of a container', async () => {
    const dense = (podName: string, stalled: (i: number) => boolean) =>
      history(
        { podName },
        ...Array.from({ length: 8 }, (_, i) => ({ ageSecs: 20 + 10 * i, ...(stalled(i) ? STALL : {}) })).reverse(),
      )
    await store([dense('newest', (i) => i < 2), dense('oldest', (i) => i >= 5), dense('sixth', (i) => i >= 4)])
    assert.deepEqual(brief(await read()), ['newest cpu-contended', 'sixth cpu-contended'])
  })

  test('GET /compute/findings 200: minutes that were posted late count', async () => {
    await store([history({ podName: 'late' }, STALL, STALL)])
    await sql`update compute_minute set is_late = true`
    assert.deepEqual(brief(await read()), ['late cpu-contended'])
  })
})

describe('the scope', () => {
  test('GET /compute/findings 200: both filters apply, and blank filters are ignored', async () => {
    const places = [
      ['a', 'n1'],
      ['a', 'n2'],
      ['b', 'n1'],
    ] as const
    await store(places.map(([namespace, node], i) => history({ namespace, node, podName: `p${i}` }, STALL, STALL)))
    for (const [query, expected] of [
      ['', [0, 1, 2]],
      ['?namespace=&node=%20', [0, 1, 2]],
      ['?namespace=a', [0, 1]],
      ['?node=n1', [0, 2]],
      ['?namespace=b&node=', [2]],
      ['?namespace=a&node=n1', [0]],
      ['?namespace=b&node=n2', []],
      ['?namespace=A', []],
    ] as const) {
      const answer = await read(query)
      assert.deepEqual(
        brief(answer),
        expected.map((i) => `p${i} cpu-contended`),
        query,
      )
      assert.deepEqual([answer.victims_evaluated, answer.truncated], [expected.length, false], query)
    }
  })

  test('GET /compute/findings 200: containers by the bytes of their uid, the CPU finding of each first', async () => {
    const uids = ['b', 'B', 'é', '\u{1F600}', '\uFFFD', '10', '9']
    const nameOf = (uid: string) => `p-${uids.indexOf(uid)}`
    await store(
      uids.map((podUid) =>
        history({ podUid, podName: nameOf(podUid) }, { ...STALL, ...SHORT }, { ...STALL, ...SHORT }),
      ),
      [['node-1', 30]],
    )
    const sorted = [...uids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).map(nameOf)
    assert.deepEqual(
      brief(await read()),
      sorted.flatMap((name) => [`${name} cpu-contended`, `${name} memory-pressure`]),
    )
  })
})

describe('limits', () => {
  const crowd = (count: number, rows: Partial<StoredMinute>[], node = 'node-1') =>
    Array.from({ length: count }, (_, i) =>
      history({ podName: `p${String(i).padStart(5, '0')}-${node}`, node }, ...rows),
    )

  test('GET /compute/findings 200: 500 containers are evaluated, the first by uid', async () => {
    await store(crowd(500, [STALL, STALL]))
    const whole = await read()
    assert.deepEqual([whole.truncated, whole.victims_evaluated, whole.findings.length], [false, 500, 500])
    await store([history({ podName: 'p00000-a' }, STALL, STALL)])
    const cut = await read()
    assert.deepEqual([cut.truncated, cut.victims_evaluated, cut.findings.length], [true, 500, 500])
    assert.deepEqual(cut.findings.map(({ victim }) => victim.pod_name).slice(0, 2), ['p00000-a', 'p00000-node-1'])
    assert.equal(cut.findings.at(-1)!.victim.pod_name, 'p00498-node-1')
  })

  test('GET /compute/findings 200: all waits of a victim count, however many groups there are', async () => {
    const groups = Array.from({ length: 59 }, (_, i) => wait('system', `unit-${i}`, 100))
    const noisy = history({ podName: 'noisy' }, { usageMillis: 9 })
    const waits = (own: number) => [
      ...groups,
      waitFor(noisy.container, own),
      wait('unknown', 'exited', 100),
      wait('unknown', 'cgroup:7', 100),
    ]
    // 6 100 further waits have known causes.
    await store([
      history({ podName: 'below' }, { ...STALL, waits: waits(4_066) }, STALL),
      history({ podName: 'enough' }, { ...STALL, waits: waits(4_067) }, STALL),
      // Four tenths of 10 000 waits are unknown.
      history(
        { podName: 'unsure' },
        {
          ...STALL,
          waits: [...groups.slice(0, 19), waitFor(noisy.container, 4_100), wait('unknown', 'exited', 4_000)],
        },
        STALL,
      ),
      noisy,
    ])
    const answer = await read()
    assert.deepEqual(
      [brief(answer), answer.truncated],
      [['below cpu-contended', 'enough noisy-neighbor', 'unsure cpu-contended'], false],
    )
    assert.deepEqual(
      [answer.findings[1]!.culprit!.blame_share, answer.findings[1]!.culprit!.cpu_usage_millis],
      [4_067 / 10_167, 9],
    )
  })

  test('GET /compute/findings 200: no shares are computed if there are more pairs than the limit', async () => {
    const units = (count: number) => Array.from({ length: count }, () => wait('system', 'kubelet.service', 1))
    await store([history({ podName: 'most' }, { ...STALL, waits: units(1_000) }, STALL)])
    assert.deepEqual([brief(await read()), (await read()).truncated], [['most noisy-neighbor'], false])
    await store([history({ podName: 'more' }, { ...STALL, waits: units(1_001) }, STALL)])
    assert.deepEqual(
      [brief(await read()), (await read()).truncated],
      [['more cpu-contended', 'most noisy-neighbor'], true],
    )
  })

  test('GET /compute/findings 200: of containers with equal waits the first by code units is the culprit, with its names', async () => {
    // By code units the first precedes the second, by bytes it follows it.
    const [a, b] = ['\u{1F600}', '\uFFFD'].map((podName) => history({ podName }, { usageMillis: 7 })) as [
      StoredHistory,
      StoredHistory,
    ]
    await store([
      a,
      b,
      history({ podName: 'me' }, { ...STALL, waits: [waitFor(b.container, 5), waitFor(a.container, 5)] }, STALL),
    ])
    const { culprit } = (await read()).findings[0]!
    assert.deepEqual([culprit!.pod_name, culprit!.cpu_usage_millis], ['\u{1F600}', 7])
  })

  test('GET /compute/findings 200: a node above the limit of rows has no culprit, one below it has', async () => {
    const grown = [
      { memoryBytes: MIB, memoryRequestBytes: 0 },
      { memoryBytes: 3 * MIB, memoryRequestBytes: 0 },
    ]
    const on = (node: string) => [
      history({ podName: `me-${node}`, node, namespace: 'mine' }, SHORT, SHORT),
      history({ podName: `hog-${node}`, node }, ...grown),
    ]
    await store(
      [...on('a'), ...on('b'), ...crowd(2_997, [{}], 'b')],
      [
        ['a', 9],
        ['b', 9],
      ],
    )
    const culprits = async () => {
      const { findings, truncated } = await read('?namespace=mine')
      return [...findings.map(({ culprit }) => culprit?.pod_name), truncated]
    }
    assert.deepEqual(await culprits(), ['hog-a', undefined, true], '3 001 containers')
    assert.deepEqual((await read('?namespace=mine&node=b')).findings[0]!.culprit?.pod_name, 'hog-b', '2 999 containers')
  })
})

test('GET /compute/findings 200: names that need escapes are returned unchanged, and are one line in a message', async () => {
  const odd = 'quote"back\\slash\nend\u0001\u2028é😀'
  const other = `${odd}2`
  const noisy = container({ podName: other, namespace: odd, name: odd })
  await store([
    history({ podName: odd, name: odd }, { ...STALL, waits: [waitFor(noisy, 1)] }, STALL),
    { container: noisy, minutes: minutes({}) },
  ])
  const [finding] = (await read('?namespace=shop')).findings
  assert.deepEqual(
    [finding!.victim.pod_name, finding!.culprit!.pod_name, finding!.culprit!.ref],
    [odd, other, `${odd}/${other}/${odd}`],
  )
  assert.match(
    finding!.message,
    /^shop\/quote"back\\slash end é😀 waits for CPU, 100% of it for [^\p{Cc}\p{Zl}\p{Zp}]*\.$/u,
  )
})

test('GET /compute/findings 200: the thresholds come from the environment', async () => {
  const other = await startApp({
    COMPUTE_THRESHOLD_STALL_SOME: ' 30.5 ',
    COMPUTE_THRESHOLD_REFAULT_PER_MIN: 'x',
    COMPUTE_THRESHOLD_MEM_STALL_SOME: '-1',
  })
  const rows = [
    history({ podName: 'calm' }, STALL, STALL),
    history({ podName: 'stalled' }, { cpuSomeAvg: 30.5 }, { cpuSomeAvg: 30.5 }),
    history({ podName: 'thrashing' }, { refaults: 1_000 }, { memorySomeAvg: 10, refaults: 1_000 }),
  ]
  await storeCompute(other.sql, rows, [['node-1', 9]])
  assert.deepEqual(brief((await other.get(PATH)).json), ['stalled cpu-contended', 'thrashing memory-pressure'])
})

test('GET /compute/findings 200: with history off there are no findings, whatever is stored', async () => {
  const without = await startApp({ COMPUTE_HISTORY_RETENTION_DAYS: '0' })
  await storeCompute(without.sql, [history({}, STALL, STALL)])
  for (const query of ['', '?namespace=shop', '?node=node-1'])
    assert.deepEqual((await without.get(PATH + query)).json, { ...NOTHING, history_disabled: true })
})

test('GET /compute/findings 400: a filter with U+0000', async () => {
  for (const name of ['namespace', 'node']) {
    const answer = await app.get(`${PATH}?${name}=a%00`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Query deserialize error: ${name}: `))
  }
})

test('GET /compute/findings 401: no token', async () => {
  const guarded = await startApp(TOKENS)
  assertUnauthorized(await guarded.get(PATH))
  assert.equal((await guarded.get(PATH, { token: TOKENS.BROKER_TOKEN_READ })).status, 200)
})

test('GET /compute/findings 503: no room in the read budget', async () => {
  const small = await startApp({ BROKER_READ_MEMORY_BUDGET_MB: '1', BROKER_READ_ACQUIRE_WAIT_MS: '0' })
  const release = await small.deps.budget.acquire(1)
  assertShed(await small.get(PATH), 1_024, 1_024)
  release()
  assert.equal((await small.get(PATH)).status, 200)
})

test('GET /compute/findings 503: the database took too long', async () => {
  const slow = await startApp({ DB_STATEMENT_TIMEOUT_MS: '300' })
  await whileLocked(slow.sql, 'compute_container', async () => assertDatabaseBusy(await slow.get(PATH)))
})
