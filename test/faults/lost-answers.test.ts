/** A write is not a duplicate because the answer of the database was lost (docs/contract.md#deduplication). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type postgres from 'postgres'
import { DatabaseUnavailable } from '../../lib/db/index.ts'
import { FlowWriter, SeenFlows } from '../../lib/traffic/index.ts'
import { type LossyApp, startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { podPost, servicePost } from '../support/records.ts'
import { until, withMoreTime } from '../support/until.ts'

const INSERT = 'insert into traffic'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3

type Flow = Parameters<FlowWriter['write']>[0][number]

let made = 0

/** A flow with a uuid, a pod and a pair of addresses of its own. */
function flow(fields: Partial<Flow> = {}): Flow {
  made++
  return {
    uuid: `l-${made}`,
    pod_name: `pod-${made}`,
    pod_namespace: 'shop',
    pod_ip: `10.3.${made >> 8}.${made & 255}`,
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: '10.4.0.1',
    traffic_in_out_port: '443',
    decision: 'ALLOW',
    time_stamp: '2024-05-01T10:00:00.123456789',
    syn_retries: 7,
    ...fields,
  }
}
const flows = (count: number) => Array.from({ length: count }, () => flow())
/** The same flow under another uuid and pod, so that the calls of the evaluator can be told apart. */
const again = (one: Flow, fields: Partial<Flow> = {}): Flow => ({
  ...one,
  uuid: `l-${++made}`,
  pod_name: `pod-${made}`,
  ...fields,
})

const main = await startLossyApp()

const times = (count: number, fate: Fate): Fate[] => Array(count).fill(fate)

/** Posts, and returns how many flows the answer counts as stored. */
async function inserted(app: LossyApp, body: Flow | Flow[]): Promise<number> {
  const { status, text } = await app.post(Array.isArray(body) ? '/pod/traffic/batch' : '/pod/traffic', body)
  assert.equal(status, 200, text)
  const answer = JSON.parse(text)
  return Array.isArray(body) ? answer : answer === null ? 0 : 1
}

/** Runs `work`, and checks that exactly the flows in `stored` count, are rows, and had one evaluation each. */
async function assertNew(app: LossyApp, stored: Flow[], others: Flow[], work: () => Promise<number>): Promise<void> {
  const before = await app.counted()
  const heardBefore = await app.heard()
  assert.equal(await work(), stored.length)
  assert.equal(app.toCome, 0, 'every fault has struck')
  assert.equal((await app.counted()).inserted - before.inserted, stored.length, 'metric')
  const heard = await app.heard()
  const news = ({ pod_name }: Flow) => (heard.get(pod_name!) ?? 0) - (heardBefore.get(pod_name!) ?? 0)
  assert.deepEqual(
    stored.map(news),
    stored.map(() => 1),
  )
  assert.deepEqual(
    others.map(news),
    others.map(() => 0),
  )
  const rows =
    await app.sql`select uuid, pod_name from traffic where uuid in ${app.sql(stored.map(({ uuid }) => uuid))}`
  assert.equal(rows.length, stored.length)
}

describe('the answer to POST /pod/traffic', { timeout: 900_000 }, () => {
  test('lost once: the answer is the stored row, and the evaluator is called once', async () => {
    const one = flow()
    const before = await main.counted()
    main.lose(INSERT, 'answer lost')
    const { status, text } = await main.post('/pod/traffic', one)
    assert.equal(status, 200, text)
    const [listed] = JSON.parse(await (await main.app.request(`/pod/traffic/${one.pod_name}`)).text())
    assert.deepEqual(JSON.parse(text), listed)
    assert.equal(listed.uuid, one.uuid)
    const { inserted, duplicate } = await main.counted()
    assert.deepEqual([inserted - before.inserted, duplicate - before.duplicate], [1, 0])
    assert.equal((await main.heard()).get(one.pod_name!), 1)
  })

  test('lost twice: the flow counts as inserted, and a later repeat under another uuid is a duplicate', async () => {
    const one = flow()
    main.lose(INSERT, 'answer lost', 'answer lost')
    await assertNew(main, [one], [], () => inserted(main, one))
    await assertNew(main, [], [again(one)], () => inserted(main, again(one)))
  })

  test('the statement is lost before it is carried out: the next attempt inserts the flow', async () => {
    const one = flow()
    main.lose(INSERT, 'question lost', 'answer lost')
    await assertNew(main, [one], [], () => inserted(main, one))
  })

  test('lost for a flow with nulls, which matches no stored row: the flow counts as inserted', async () => {
    const one = flow({ decision: null, syn_retries: null, pod_port: undefined })
    main.lose(INSERT, 'answer lost')
    await assertNew(main, [one], [], () => inserted(main, one))
  })

  test('lost for a duplicate: it is still a duplicate', async () => {
    const one = flow()
    await inserted(main, one)
    main.deps.seen.clear()
    main.lose(INSERT, 'answer lost')
    const repeat = again(one)
    await assertNew(main, [], [repeat], () => inserted(main, repeat))
  })

  test('lost for a flow whose uuid belongs to another flow: it is still a duplicate', async () => {
    const one = flow()
    await inserted(main, one)
    for (const fields of [
      { traffic_in_out_port: '80' },
      { pod_name: 'elsewhere' },
      { time_stamp: '2024-05-01T10:00:01' },
      { syn_retries: null },
    ]) {
      main.deps.seen.clear()
      main.lose(INSERT, 'answer lost')
      const other = { ...one, ...fields }
      assert.equal(await inserted(main, other), 0)
      assert.equal(main.toCome, 0)
    }
    assert.equal((await main.heard()).get(one.pod_name!), 1)
    assert.equal((await main.heard()).has('elsewhere'), false)
  })
})

describe('the answer to POST /pod/traffic/batch', { timeout: 900_000 }, () => {
  test('lost for a batch of new flows: all count as inserted, whether the statement expects new flows or not', async () => {
    for (const isExpected of [false, true]) {
      const known = flow()
      await inserted(main, known)
      main.deps.seen.clear()
      await inserted(main, isExpected ? flows(2) : [again(known)])
      const batch = flows(100)
      main.lose(INSERT, 'answer lost')
      await assertNew(main, batch, [], () => inserted(main, batch))
    }
  })

  test('the answers of the first attempt and of the query for its rows are lost: all flows count as inserted', async () => {
    await inserted(main, flows(1))
    const batch = flows(10)
    // The second attempt is refused for a taken uuid; the answer of the statement after it is lost, too.
    main.lose(INSERT, 'answer lost', 'answered', 'answer lost')
    await assertNew(main, batch, [], () => inserted(main, batch))
  })

  test('lost for new flows mixed with known flows, repeats and UDP flows that suppress each other: only the new ones count', async () => {
    const compose = () => {
      const [stored, fresh] = [flow(), flow()]
      const udp = flow({ ip_protocol: 'UDP' })
      const nulls = flow({ pod_ip: null })
      const sameUuid = flow({ uuid: fresh.uuid })
      return {
        stored,
        news: [fresh, udp, nulls],
        others: [
          again(stored),
          again(fresh),
          again(udp, { pod_port: '9' }),
          again(udp, { traffic_in_out_port: '9' }),
          again(nulls),
          sameUuid,
        ],
      }
    }
    for (const fates of [
      [],
      ['answer lost'],
      ['answer lost', 'answer lost'],
      ['question lost', 'answer lost'],
    ] as Fate[][]) {
      for (const isExpected of [false, true]) {
        const { stored, news, others } = compose()
        await inserted(main, stored)
        main.deps.seen.clear()
        await inserted(main, isExpected ? flows(3) : [again(stored)])
        main.deps.seen.clear()
        main.lose(INSERT, ...fates)
        await assertNew(main, news, others, () => inserted(main, [...news, ...others]))
      }
    }
  })

  test('the next attempt runs while the first is still under way: each flow is stored and counted once', async () => {
    const held = flow({ pod_ip: '10.255.0.1' })
    const batch = [flow(), flow(), again(held, { pod_ip: '10.255.0.2', uuid: held.uuid })]
    // Another session holds the uuid of the last flow: the first attempt waits for it, and the second for the first.
    const holder = hold((sql) => sql`insert into traffic (uuid, time_stamp) values (${held.uuid}, ${held.time_stamp})`)
    await holder.isHeld
    const waiters = async (count: number) => {
      const rows =
        await main.sql`select from pg_stat_activity where application_name = 'lossy' and wait_event_type = 'Lock' and datname = current_database()`
      return rows.length === count
    }
    main.lose(INSERT, 'left')
    await assertNew(main, batch, [], async () => {
      const answer = inserted(main, batch)
      await until('both attempts wait', () => waiters(2))
      await holder.release()
      return answer
    })
  })

  test('the answers of all attempts are lost: 503, and the same flows count as inserted when they are posted again', async () => {
    const twice = flow()
    for (const body of [
      flow(),
      flows(20),
      [flow({ pod_ip: null }), flow({ ip_protocol: 'UDP' })],
      [twice, { ...twice }],
    ]) {
      const all = [...new Map([body].flat().map((one) => [one.uuid, one])).values()]
      main.lose(INSERT, ...times(ATTEMPTS, 'answer lost'))
      const before = await main.counted()
      const { status } = await main.post(Array.isArray(body) ? '/pod/traffic/batch' : '/pod/traffic', body)
      assert.equal(status, 503)
      assert.equal(main.toCome, 0)
      assert.deepEqual(await main.counted(), before)
      const heard = await main.heard()
      for (const { pod_name } of all) assert.equal(heard.has(pod_name!), false)
      // A repeat from another sender in between does not count, and does not make the flows duplicates.
      const [first] = all as [Flow]
      if (first.pod_ip !== null) assert.equal(await inserted(main, again(first)), 0)
      await assertNew(main, all, [], () => inserted(main, body))
      await assertNew(main, [], all, () => inserted(main, body))
      main.deps.seen.clear()
      await assertNew(main, [], all, () => inserted(main, body))
    }
  })

  test('flows of a post that got 503 count as inserted when they are posted again with others, even if answers are lost again', async () => {
    const batch = flows(5)
    main.lose(INSERT, ...times(ATTEMPTS, 'answer lost'))
    assert.equal((await main.post('/pod/traffic/batch', batch)).status, 503)
    const udp = flow({ ip_protocol: 'UDP' })
    const more = [...flows(3), udp]
    const suppressed = [again(udp, { pod_port: '9' }), again(batch[0]!)]
    main.lose(INSERT, 'answer lost', 'answer lost')
    await assertNew(main, [...batch, ...more], suppressed, () => inserted(main, [...batch, ...more, ...suppressed]))
  })

  test('the database falls silent: 503, and the same flows count as inserted when they are posted again', async () => {
    await withMoreTime(400, async (ms) => {
      const silent = await startLossyApp({ statementTimeoutMs: 0, deadlineMs: ms })
      const batch = flows(5)
      silent.lose(INSERT, 'muted')
      const { status } = await silent.post('/pod/traffic/batch', batch)
      assert.equal(status, 503)
      assert.equal(silent.db.stats().gates.ingest.replaced, 1)
      await until('they are stored', async () => (await silent.sql`select from traffic`).length === 5)
      await assertNew(silent, batch, [], () => inserted(silent, batch))
    })
  })
})

/** A writer on a proxied database; `heard` holds the uuids that it reported as new. */
function makeWriter(app: LossyApp) {
  const heard: string[] = []
  const seen = new SeenFlows({ maxKeys: 1_000, generationMs: 1_000_000, now: () => 0 })
  const clock = { now: 0 }
  const writer = new FlowWriter(
    app.db.ingest,
    seen,
    ({ uuid }) => void heard.push(uuid),
    () => clock.now,
  )
  return { write: (...all: Flow[]) => writer.write(all, { records: false }), heard, seen, clock }
}

/** A session that does `work` in a transaction, holds its locks until it is released, and then rolls back. */
function hold(work: (sql: postgres.TransactionSql) => Promise<unknown>) {
  let release = () => {}
  let isHeld = () => {}
  const isReleased = new Promise<void>((resolve) => {
    release = resolve
  })
  const held = new Promise<void>((resolve) => {
    isHeld = resolve
  })
  const over = main.sql
    .begin(async (sql) => {
      await work(sql)
      isHeld()
      await isReleased
      throw new Error('taken back')
    })
    .catch(() => {})
  return {
    isHeld: held,
    async release() {
      release()
      await over
    },
  }
}

/** `b` waits until the database says whether `other` is new; `other` is a duplicate, so `b` is new. */
async function scene() {
  const stored = flow({ ip_protocol: 'UDP', pod_port: '1', traffic_in_out_port: '1' })
  await inserted(main, stored)
  const other = again(stored, { pod_port: '2' })
  return { a: flow(), b: again(other, { traffic_in_out_port: '2' }), other }
}

describe('the writer', { timeout: 900_000 }, () => {
  test('posts that are stored one by one after a faulty post count as inserted, even if answers are lost', async () => {
    const { write, heard } = makeWriter(main)
    const [one, two, three] = [flow(), flow(), flow()]
    const posts = [write(flow()), write(one), write(flow({ decision: '\0' })), write(two, three)]
    // The first two statements: the one under way, and the one with all other posts, which fails.
    main.lose(INSERT, 'answered', 'answered', 'answer lost', 'answered', 'answer lost')
    const outcomes = await Promise.allSettled(posts)
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value.length : null)),
      [1, 1, null, 2],
    )
    assert.equal(main.toCome, 0)
    assert.equal(heard.length, 4)
    assert.equal(new Set(heard).size, 4)
  })

  // In the next two tests the flows of a post are stored by two statements: the second flow waits for a flow under way.
  test('flows stored before their post failed count as inserted when they are posted again, and are reported once', async () => {
    const { write, heard } = makeWriter(main)
    const { a, b, other } = await scene()
    const holder = hold((sql) => sql`lock table traffic in share mode`)
    await holder.isHeld
    main.lose(INSERT, 'answered', 'answered', ...times(ATTEMPTS, 'answer lost'))
    const known = write(other)
    const post = write(a, b)
    await holder.release()
    assert.deepEqual(await known, [])
    await assert.rejects(post, DatabaseUnavailable)
    assert.equal(main.toCome, 0)
    assert.deepEqual(heard, [a.uuid])
    assert.deepEqual(await write(again(a)), [])
    main.lose(INSERT, ...times(ATTEMPTS, 'answer lost'))
    await assert.rejects(write(a), DatabaseUnavailable)
    assert.deepEqual(new Set(await write(a, b)), new Set([a.uuid, b.uuid]))
    assert.deepEqual(heard, [a.uuid, b.uuid])
    assert.deepEqual(await write(a, b), [])
  })

  test('flows stored after their post failed count as inserted when they are posted again, and are reported once', async () => {
    const { write, heard } = makeWriter(main)
    const { a, b, other } = await scene()
    const holder = hold((sql) => sql`insert into traffic (uuid, time_stamp) values (${a.uuid}, ${a.time_stamp})`)
    await holder.isHeld
    main.lose(INSERT, 'answered', 'answered', ...times(ATTEMPTS, 'answer lost'))
    const known = write(other)
    const post = write(a, b)
    assert.deepEqual(await known, [])
    await assert.rejects(post, DatabaseUnavailable)
    assert.equal(main.toCome, 0)
    assert.deepEqual(heard, [])
    await holder.release()
    await until('the other is stored', () => heard.length > 0)
    assert.deepEqual(await write(again(a)), [])
    assert.deepEqual(new Set(await write(a, b)), new Set([a.uuid, b.uuid]))
    assert.deepEqual(heard, [a.uuid, b.uuid])
  })

  test('flows of a failed post count as inserted again for 29 minutes, and as duplicates after 30', async () => {
    for (const [minutes, count] of [
      [29, 1],
      [30, 0],
    ] as const) {
      const { write, clock } = makeWriter(main)
      const one = flow()
      main.lose(INSERT, ...times(ATTEMPTS, 'answer lost'))
      await assert.rejects(write(one), DatabaseUnavailable)
      clock.now += minutes * 60_000
      const other = flow()
      main.lose(INSERT, ...times(ATTEMPTS, 'answer lost'))
      await assert.rejects(write(other), DatabaseUnavailable)
      assert.equal((await write(one)).length, count)
      assert.equal((await write(other)).length, 1)
    }
  })
})

describe('the answers of the other routes that write', { timeout: 900_000 }, () => {
  const pod = podPost({ pod_namespace: 'shop', pod_ip: '10.9.9.9' })
  const cases: [path: string, statement: string, body: () => unknown][] = [
    ['/pod/spec', 'upsert_pods', () => pod],
    ['/pod/mark_dead', 'update pod set is_dead', () => ({ pod_name: pod.pod_name, pod_ip: '10.9.9.9' })],
    ['/svc/spec', 'upsert_services', () => servicePost({ svc_ip: '10.96.77.77', svc_name: 'lost' })],
    [
      '/pod/syscalls',
      'add_syscalls',
      () => [
        { pod_name: 'p', pod_namespace: 'shop', syscalls: ['read'], arch: 'x', time_stamp: '2024-05-01T10:00:00' },
      ],
    ],
    [
      '/node/facts',
      'insert into node_facts',
      () => ({ node_name: 'n', provider: '', distro: '', cni: '', ip_family: '', node_os: '' }),
    ],
  ]
  for (const [path, statement, body] of cases) {
    test(`POST ${path}: the answer is the same whether or not that of the database was lost`, async () => {
      const clean = await startLossyApp()
      if (path === '/pod/mark_dead')
        for (const app of [main, clean]) assert.equal((await app.post('/pod/spec', pod)).status, 200)
      const expected = await clean.post(path, body())
      main.lose(statement, 'answer lost', 'answer lost')
      assert.deepEqual(await main.post(path, body()), expected)
      assert.equal(main.toCome, 0)
      assert.equal(expected.status, 200)
      if (path === '/pod/mark_dead') assert.equal(expected.text, '1')
    })
  }
})
