import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { routes } from '../handlers/router.ts'
import { lateResolve } from '../jobs/late-resolve.ts'
import { runPass } from '../jobs/pass.ts'
import { createApp } from '../lib/app/app.ts'
import { startApp } from './support/app.ts'
import { until } from './support/until.ts'

// Followers wait for the oldest transaction of the server, so no other test may run one: a server of our own.
delete process.env.BROKER_TEST_URL
const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '14' })

type Line = Record<string, unknown>

// A failed test leaves its clients connected, and these would keep the process alive.
const started = new Set<Client>()
after(() => Promise.all([...started].map((client) => client.stop())))

/** A client that follows: `lines` has the flows up to the last token, as a reader keeps them. */
class Client {
  readonly kept: Line[] = []
  resume = ''
  readonly #query: string
  readonly #target: Pick<typeof app.app, 'request'>
  #unsure: Line[] = []
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  end: Line | undefined
  beats = 0

  constructor(query = '', target: Pick<typeof app.app, 'request'> = app.app) {
    this.#query = query
    this.#target = target
  }

  /** Connects, goes on from the last token, and reads in the background. */
  async start(): Promise<this> {
    started.add(this)
    this.#unsure = []
    const resume = this.resume === '' ? '' : `&resume=${this.resume}`
    const query = this.resume === '' ? this.#query : this.#query.replace(/&since=[^&]*/, '')
    const answer = await this.#target.request(`/flows?follow=true${query}${resume}`)
    assert.equal(answer.status, 200, answer.status === 200 ? '' : await answer.text())
    assert.equal(answer.headers.get('content-type'), 'application/x-ndjson')
    const reader = answer.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>
    this.#reader = reader
    const decoder = new TextDecoder()
    let text = ''
    void (async () => {
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return
        text += decoder.decode(value, { stream: true })
        const lines = text.split('\n')
        text = lines.pop()!
        for (const line of lines) this.#take(JSON.parse(line))
      }
    })().catch(() => {})
    await until('the first token', () => this.resume !== '')
    return this
  }

  #take(line: Line): void {
    if ('uuid' in line) {
      this.#unsure.push(line)
      return
    }
    this.kept.push(...this.#unsure)
    this.#unsure = []
    this.resume = line.resume as string
    if (line.heartbeat) this.beats++
    if (line.end) this.end = line
  }

  /** Drops the connection, with what came after the last token. */
  async stop(): Promise<void> {
    await this.#reader?.cancel()
  }

  get uuids(): unknown[] {
    return this.kept.filter(({ update }) => !update).map(({ uuid }) => uuid)
  }

  get updates(): unknown[] {
    return this.kept.filter(({ update }) => update).map(({ uuid }) => uuid)
  }

  async has(...uuids: string[]): Promise<void> {
    const sorted = [...uuids].sort()
    await until(`the flows ${uuids}`, () => this.uuids.length >= sorted.length)
    assert.deepEqual([...this.uuids].sort(), sorted)
  }
}

let n = 0
const insert = (uuid: string, time = '2026-03-01T10:00:00') =>
  app.sql`insert into traffic (uuid, pod_name, pod_namespace, pod_ip, traffic_type, traffic_in_out_ip, time_stamp)
          values (${uuid}, 'web', 'shop', ${`10.0.0.${n++}`}, 'EGRESS', '10.1.1.1', ${time})`

test('GET /flows 200 with follow: a token at once, then each flow that is stored, and nothing from before', async () => {
  await insert('before')
  const client = await new Client().start()
  assert.equal(client.beats, 1)
  const post = { uuid: 'posted', pod_name: 'web', pod_ip: '10.0.0.200', time_stamp: '2026-03-01T10:00:00' }
  assert.equal((await app.post('/pod/traffic', post)).status, 200)
  await client.has('posted')
  const { items } = (await app.get('/flows?limit=1&pod=x/*&pod=!x/*')).json
  assert.deepEqual(items, [])
  const listed = (await app.get('/flows')).json.items.find(({ uuid }: Line) => uuid === 'posted')
  assert.deepEqual(client.kept, [{ ...listed, update: false }])
  await client.stop()
  await until('it is no longer counted', () => app.deps.followers.size === 0)
})

test('GET /flows 200 with follow: with `since` the history first, in the order of time', async () => {
  await app.sql`truncate traffic`
  await app.sql`insert into traffic (uuid, time_stamp)
                select 'h' || n, timestamp '2026-03-01' + n * interval '1 second' from generate_series(1, 2500) n`
  const client = await new Client('&since=2026-03-01T00:00:11').start()
  await insert('late', '2026-03-01T00:00:10')
  await insert('new', '2026-03-01T00:00:12')
  await until('all flows', () => client.uuids.length >= 2_491)
  assert.deepEqual(client.uuids, [...Array.from({ length: 2_490 }, (_, i) => `h${i + 11}`), 'new'])
  await client.stop()
})

test('GET /flows 200 with follow: a filter applies to the history and to new flows', async () => {
  await app.sql`truncate traffic`
  await insert('mine')
  await app.sql`insert into traffic (uuid, time_stamp) values ('other', '2026-03-01T10:00:00')`
  const client = await new Client('&namespace=shop&since=2026-01-01T00:00:00&fields=uuid').start()
  await app.sql`insert into traffic (uuid, time_stamp) values ('other-2', '2026-03-01T10:00:00')`
  await insert('mine-2')
  await client.has('mine', 'mine-2')
  assert.deepEqual(client.kept, [
    { uuid: 'mine', update: false },
    { uuid: 'mine-2', update: false },
  ])
  await client.stop()
})

test('GET /flows 200 with follow: a flow whose transaction ends late is neither missed nor repeated', async () => {
  await app.sql`truncate traffic`
  const fromNow = await new Client().start()
  let listed: Client | undefined
  await app.sql.begin(async (slow) => {
    await slow`insert into traffic (uuid, time_stamp) values ('slow', '2026-03-01T10:00:00')`
    await insert('quick')
    // A list has what is committed, and its token goes on with the rest.
    const text = (await app.get('/flows', { headers: { accept: 'application/x-ndjson' } })).text
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      lines.slice(0, -1).map(({ uuid }) => uuid),
      ['quick'],
    )
    listed = new Client()
    listed.resume = lines.at(-1).resume
    await listed.start()
    // The flows of the later transaction wait for the earlier one.
    const since = performance.now()
    await until('two looks at the database', () => app.deps.followers.lookedAt > since + 500)
    assert.deepEqual(fromNow.uuids, [])
    await until('the lag shows', () => app.deps.followers.lagSecs > 0.2)
  })
  await fromNow.has('quick', 'slow')
  await insert('after')
  await fromNow.has('quick', 'slow', 'after')
  await listed!.has('slow', 'after')
  await fromNow.stop()
  await listed!.stop()
})

test('GET /flows 200 with follow: what a list had is not repeated while transactions that began before it end one by one', async () => {
  await app.sql`truncate traffic`
  const slow = (uuid: string) => {
    let end!: () => void
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    return new Promise<() => Promise<unknown>>((ready) => {
      const done = app.sql.begin(async (sql) => {
        await sql`insert into traffic (uuid, time_stamp) values (${uuid}, '2026-03-01T10:00:00')`
        ready(() => {
          end()
          return done
        })
        await ended
      })
    })
  }
  const endFirst = await slow('first')
  const endSecond = await slow('second')
  await insert('listed')
  const client = await new Client().start()
  await endFirst()
  await client.has('first')
  await endSecond()
  await client.has('first', 'second')
  await insert('last')
  await client.has('first', 'second', 'last')
  await client.stop()
})

test('GET /flows 200 with follow: a flow that was written again before it was read is new, not an update', async () => {
  await app.sql`truncate traffic`
  const client = await new Client().start()
  await client.stop()
  await insert('twice')
  await app.sql`update traffic set first_tx = tx, tx = pg_current_xact_id()`
  await client.start()
  await client.has('twice')
  assert.deepEqual(client.updates, [])
  await client.stop()
})

test('GET /flows 200 with follow: a flow of which more becomes known comes again as an update', async () => {
  await app.sql`truncate traffic`
  const now = new Date().toISOString().slice(0, 19)
  const early = await new Client().start()
  await app.post('/pod/traffic', {
    ...{ uuid: 'peer', pod_name: 'web', pod_namespace: 'shop', pod_ip: '10.7.0.1', traffic_in_out_ip: '10.7.7.7' },
    ...{ traffic_type: 'EGRESS', time_stamp: now },
  })
  await early.has('peer')
  await app.post('/svc/spec', { svc_ip: '10.7.7.7', svc_name: 'db', svc_namespace: 'shop', time_stamp: now })
  const late = await new Client('&since=1h').start()
  await late.has('peer')
  const { config, db } = app.deps
  const pass = await runPass(lateResolve, { config, db, log: app.deps.log, signal: AbortSignal.timeout(60_000) })
  assert.equal(pass.rows, 1)
  for (const client of [early, late]) {
    await until('the update', () => client.updates.length > 0)
    assert.deepEqual([client.uuids, client.updates], [['peer'], ['peer']])
    assert.deepEqual((client.kept.at(-1)!.to as Line).name, 'db')
    await client.stop()
  }
  // For one that begins now the flow is news.
  const newcomer = await new Client('&since=1h').start()
  await newcomer.has('peer')
  assert.deepEqual(newcomer.updates, [])
  await newcomer.stop()
})

test('GET /flows 200 with follow: more flows than one statement reads, of one transaction, with breaks in between', async () => {
  await app.sql`truncate traffic`
  const client = await new Client('&fields=uuid,time_stamp').start()
  await client.stop()
  // A uuid has a flow on each of two days; a statement that reads a thousand of them would end between the two.
  await app.sql`
    insert into traffic (uuid, time_stamp)
    select 'm' || n / 2, timestamp '2026-03-01' + n % 2 * interval '1 day' from generate_series(1, 3500) n`
  await app.sql`insert into traffic (uuid, time_stamp) values ('', '2026-03-01')`
  for (let count = 0; count < 3_501; ) {
    await client.start()
    await until('more flows', () => client.uuids.length > count)
    await client.stop()
    count = client.uuids.length
  }
  assert.equal(new Set(client.kept.map(({ uuid, time_stamp }) => `${time_stamp} ${uuid}`)).size, 3_501)
  assert.equal(client.uuids.length, 3_501)
})

test('GET /flows with follow: random transactions and readers that are cut off: none missing, none twice', async () => {
  await app.sql`truncate traffic`
  const random = (limit: number) => Math.floor(Math.random() * limit)
  const clients = await Promise.all(
    ['', '&since=2026-01-01T00:00:00', '&namespace=shop'].map((query) => new Client(`${query}&fields=uuid`).start()),
  )
  const open: { write: (uuid: string) => Promise<unknown>; end: (isCommit: boolean) => Promise<unknown> }[] = []
  const stored: string[] = []
  async function begin(): Promise<void> {
    let end!: (isCommit: boolean) => void
    const ended = new Promise<boolean>((resolve) => {
      end = resolve
    })
    await new Promise<void>((ready) => {
      const done = app.sql
        .begin(async (sql) => {
          const written: string[] = []
          open.push({
            write: async (uuid) => {
              await sql`insert into traffic (uuid, pod_namespace, time_stamp) values (${uuid}, 'shop', '2026-03-01')`
              written.push(uuid)
            },
            end: (isCommit) => {
              end(isCommit)
              return done
            },
          })
          ready()
          if (!(await ended)) throw new Error('rolled back')
          stored.push(...written)
        })
        .catch(() => {})
    })
  }
  for (let step = 0; step < 120; step++) {
    const kind = random(8)
    if (kind === 0 && open.length < 2) await begin()
    else if (kind === 1 && open.length > 0) await open.splice(random(open.length), 1)[0]!.end(random(4) > 0)
    else if (kind === 2) {
      const client = clients[random(clients.length)]!
      await client.stop()
      await client.start()
    } else if (kind === 3 && open.length > 0) await open[random(open.length)]!.write(`t${step}`)
    else {
      await insert(`i${step}`)
      stored.push(`i${step}`)
    }
  }
  for (const { end } of open) await end(true)
  for (const client of clients) await client.has(...stored)
  for (const client of clients) await client.stop()
})

test('GET /flows 410: a token of another database, of a later backup, or older than what is kept', async () => {
  const client = await new Client().start()
  await client.stop()
  const keys = JSON.parse(Buffer.from(client.resume, 'base64url').toString())
  const forged = (change: (keys: unknown[]) => void) => {
    const other = [...keys]
    change(other)
    return Buffer.from(JSON.stringify(other)).toString('base64url')
  }
  for (const [resume, text] of [
    [forged((all) => all.splice(1, 1, '123-00000001-5')), /another database or time line: begin anew with since=/],
    [forged((all) => all.splice(6, 1, '9000000000000000000')), /another database or time line/],
    [forged((all) => all.splice(3, 1, (all[3] as number) - 15 * 86_400)), /kept for 14 days, and the token is older/],
  ] as const) {
    const answer = await app.get(`/flows?follow=true&resume=${resume}`)
    assert.equal(answer.status, 410, answer.text)
    assert.match(answer.text, text)
  }
  for (const resume of [
    'abc',
    forged((all) => all.splice(5, 1, '-1')),
    forged((all) => all.pop()),
    `${client.resume}=`,
  ])
    assert.equal((await app.get(`/flows?follow=true&resume=${resume}`)).status, 400)
})

for (const [query, text] of [
  ['follow=yes', /follow: /],
  ['follow=true&until=1h', /until: a followed stream has none/],
  ['follow=true&limit=5', /limit: a followed stream has none/],
  ['follow=true&order=oldest', /order: a followed stream has its own order/],
  ['resume=', /^$/],
] as const)
  test(`GET /flows 400: ${query}`, async () => {
    const answer = await app.get(`/flows?${query}`)
    if (query === 'resume=') assert.equal(answer.status, 200)
    else {
      assert.equal(answer.status, 400, answer.text)
      assert.match(answer.text, text)
    }
  })

test('GET /flows 400: a token with another filter, with `since`, and without `follow`', async () => {
  const client = await new Client().start()
  await client.stop()
  for (const [query, text] of [
    ['follow=true&namespace=shop', /resume: it belongs to another filter/],
    ['follow=true&since=1h', /since: the token of resume has its own/],
    ['', /resume: it needs follow=true/],
  ] as const) {
    const answer = await app.get(`/flows?${query}&resume=${client.resume}`)
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.text, text)
  }
})

test('GET /flows 200 with follow: a heartbeat when nothing comes, and after the longest time an end with a token', async () => {
  await app.sql`truncate traffic`
  const { followers } = app.deps
  const { heartbeatMs, longestMs } = followers
  try {
    followers.heartbeatMs = 300
    const client = await new Client().start()
    const first = client.resume
    await until('a further heartbeat', () => client.beats > 2)
    assert.equal(client.end, undefined)
    followers.longestMs = 1
    await until('the end', () => client.end)
    assert.deepEqual(client.end, { end: true, count: 0, resume: client.resume })
    await until('it is no longer counted', () => followers.size === 0)
    followers.longestMs = longestMs
    await insert('between')
    // Either token goes on with what came since.
    const again = new Client()
    again.resume = first
    for (const one of [client, again]) {
      await one.start()
      await one.has('between')
      await one.stop()
    }
  } finally {
    Object.assign(followers, { heartbeatMs, longestMs })
  }
})

test('GET /flows 200 with follow: the stream ends when the process does', async () => {
  let isDraining = false
  const other = createApp({ ...app.deps, draining: () => isDraining }, routes)
  const client = await new Client('', other).start()
  isDraining = true
  await until('the end', () => client.end)
  assert.equal(client.end!.resume, client.resume)
})

test('HEAD /flows with follow: nobody follows', async () => {
  const answer = await app.request('HEAD', '/flows?follow=true')
  assert.equal(answer.status, 200)
  assert.equal(app.deps.followers.size, 0)
})

test('GET /flows 503: more than 200 followers', async () => {
  const followers = Array.from({ length: 200 }, () => ({ caughtUpAt: 0, wake: () => {} }))
  for (const one of followers) app.deps.followers.add(one)
  const answer = await app.get('/flows?follow=true')
  assert.equal(answer.status, 503)
  assert.equal(answer.headers.get('retry-after'), '5')
  assert.match(answer.text, /^200 clients follow flows here/)
  for (const one of followers) app.deps.followers.delete(one)
})
