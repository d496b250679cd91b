/**
 * Broker, database or answers are lost while unions grow, resources change and nodes report their files: acknowledged
 * posts are stored, every post is stored whole, and a post without an answer may be sent again
 * (docs/contract.md#seccomp-profiles).
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { before, describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import {
  type Broker,
  connectTo,
  createDataDir,
  get,
  postmasterPid,
  type Reply,
  request,
  startBroker,
} from '../support/broker.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const T = '2026-01-01T09:00:00'
const WORKLOADS = 3
const CLIENTS = 4
const FILES = 40
const BEFORE = depth(20, 60)
const AFTER = depth(20, 60)
const BROKER_KILLS = depth(1, 3)
/** Pause of a client after a refusal. */
const CLIENT_PAUSE_MS = depth(25, 5)

const spec = (pod: string, workload: string) => ({
  ...{
    pod_name: pod,
    pod_namespace: 'shop',
    pod_ip: '10.0.0.1',
    node_name: 'n',
    is_dead: false,
    time_stamp: T,
    pod_obj: null,
  },
  ...{ workload_kind: 'Deployment', workload_name: workload },
})
const calls = (pod: string, names: string[]) => [
  { pod_name: pod, pod_namespace: '', syscalls: names, arch: 'x86_64', time_stamp: T },
]
const resource = (version: number) => ({
  spec: { syscalls: [{ names: ['read', `s${version}`] }], workloadRef: { kind: 'Deployment', name: 'web' } },
  hash: `h${version}`,
  distribution: { ready: version, total: version },
})
/** Every third version is the same on all nodes. */
const filesOf = (node: string, version: number) =>
  Array.from({ length: FILES }, (_, i) => ({
    path: `${version % 3 ? node : 'all'}-${i}`,
    hash: version % 3 ? `h${version}` : 'h',
  }))

describe('a lost answer of the database', { timeout: 900_000 }, async () => {
  const lossy = await startLossyApp()
  const { sql } = lossy
  const send = (method: string, path: string, body: unknown) =>
    lossy.app.request(path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  await send('POST', '/pod/spec', spec('lossy', 'lossy'))

  const writes: {
    what: string
    words: string
    write: (n: number) => Promise<Response>
    read: (n: number) => Promise<unknown>
  }[] = [
    {
      what: 'for a growing union',
      words: 'add_syscalls',
      write: async (n) => send('POST', '/pod/syscalls', calls('lossy', [`s${n}`])),
      read: async (n) => sql`select syscalls like ${`%s${n}%`} as is_there, updated_at::text from workload_syscalls`,
    },
    {
      what: 'for a resource',
      words: 'insert into seccomp_cr',
      write: async (n) => send('PUT', '/seccomp/crs/shop/lossy', resource(n)),
      read: async (n) =>
        sql`select syscalls = ${`read,s${n}`} and hash = ${`h${n}`} and ready = ${n} as is_there, updated_at::text from seccomp_cr`,
    },
    {
      what: 'for the files of a node',
      words: 'post_node_files',
      write: async (n) => send('POST', '/seccomp/node-status', { node_name: 'lossy', files: filesOf('lossy', n) }),
      read: async () => sql`
        select count(f.path) = ${FILES} and (select count(*) from seccomp_file_set) = 1 as is_there
        from seccomp_node n join seccomp_file f using (file_set_id)`,
    },
  ]
  let n = 0
  for (const { what, words, write, read } of writes)
    for (const fate of ['answer lost', 'question lost', 'left'] satisfies Fate[])
      test(`${what}: ${fate}, the write is stored, and a repeat changes nothing`, async () => {
        n++
        lossy.lose(words, fate)
        assert.equal((await write(n)).status, 200)
        assert.equal(lossy.toCome, 0, 'the fault has struck')
        const [found, ...others] = [...((await read(n)) as { is_there: boolean }[])]
        assert.deepEqual([found?.is_there, others], [true, []])
        // A repeat by a client without an answer changes nothing.
        assert.equal((await write(n)).status, 200)
        assert.deepEqual([...((await read(n)) as unknown[])], [found])
      })

  test('for a node with unchanged files: its time is stored', async () => {
    const write = () => send('POST', '/seccomp/node-status', { node_name: 'same', paths: ['a'] })
    assert.equal((await write()).status, 200)
    const read = async () =>
      (await sql`select file_set_id::text, updated_at::text as at from seccomp_node where node_name = 'same'`)[0]!
    const was = await read()
    for (const fate of ['answer lost', 'question lost'] satisfies Fate[]) {
      lossy.lose('update seccomp_node', fate)
      assert.equal((await write()).status, 200)
      assert.equal(lossy.toCome, 0)
      const is = await read()
      assert.equal(is.file_set_id, was.file_set_id)
      assert.ok(is.at > was.at)
    }
  })
})

/** Sent and acknowledged versions by client. Each client has a pod, a resource and a node of its own. */
class Ledger {
  readonly sent = Array<number>(CLIENTS).fill(0)
  readonly acknowledged = Array<number>(CLIENTS).fill(0)
}

const nameOf = (client: number) => `client-${client}`
const workloadOf = (client: number) => `web-${client % WORKLOADS}`

/** Clients that send one version after the other of their pod, resource and node. */
class Stream {
  rounds = 0
  cut = 0
  readonly refused: Reply[] = []
  #stopped = false
  readonly #clients: Promise<void>[]

  constructor(t: TestContext, broker: Broker, ledger: Ledger) {
    t.after(() => this.stop())
    this.#clients = Array.from({ length: CLIENTS }, (_, client) => this.#send(broker, client, ledger))
  }

  async #send({ url }: Broker, client: number, ledger: Ledger): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    while (!this.#stopped) {
      const version = ++ledger.sent[client]!
      const answers = []
      for (const [method, path, body] of writesOf(client, version))
        answers.push(await this.#attempt(send(url, method, path, body, agent)))
      if (!answers.every(Boolean)) continue
      ledger.acknowledged[client] = version
      this.rounds++
    }
    agent.destroy()
  }

  async #attempt(answer: Promise<Reply>): Promise<boolean> {
    try {
      const reply = await answer
      if (reply.status === 200) return true
      this.refused.push(reply)
    } catch {
      this.cut++
    }
    await delay(CLIENT_PAUSE_MS)
    return false
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#clients)
  }
}

const writesOf = (client: number, version: number): [method: string, path: string, body: unknown][] => [
  ['POST', '/pod/syscalls', calls(nameOf(client), [`s${client}_${version % 300}`])],
  ['PUT', `/seccomp/crs/shop/${nameOf(client)}`, resource(version)],
  ['POST', '/seccomp/node-status', { node_name: nameOf(client), files: filesOf(nameOf(client), version) }],
]

const send = (url: string, method: string, path: string, body: unknown, agent?: http.Agent) =>
  request(url + path, {
    method,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
    ...(agent ? { agent } : {}),
  })

async function introduce({ url }: Broker): Promise<void> {
  for (let client = 0; client < CLIENTS; client++)
    assert.equal((await send(url, 'POST', '/pod/spec', spec(nameOf(client), workloadOf(client)))).status, 200)
}

/** Everything is whole and not older than acknowledged, also after the versions without an answer are sent again. */
async function settle(broker: Broker, dataDir: string, ledger: Ledger): Promise<void> {
  const sql = connectTo(dataDir)
  try {
    await assertWhole(sql, ledger)
    for (let client = 0; client < CLIENTS; client++)
      for (const [method, path, body] of writesOf(client, ledger.sent[client]!))
        assert.equal((await send(broker.url, method, path, body)).status, 200)
    ledger.acknowledged.splice(0, CLIENTS, ...ledger.sent)
    // The next new set of files deletes the unused sets.
    await send(broker.url, 'POST', '/seccomp/node-status', { node_name: 'last', paths: [`${ledger.sent}`] })
    await assertWhole(sql, ledger)
    const orphans =
      await sql`select from seccomp_file_set s where not exists (select from seccomp_node n where n.file_set_id = s.id)`
    assert.equal(orphans.length, 0)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function assertWhole(sql: postgres.Sql, { sent, acknowledged }: Ledger): Promise<void> {
  const inRange = (client: number, version: number) => version >= acknowledged[client]! && version <= sent[client]!
  for (let client = 0; client < CLIENTS; client++) {
    const name = nameOf(client)
    const [cr] =
      await sql`select syscalls, hash, ready::integer as ready, total::integer as total from seccomp_cr where name = ${name}`
    const version = cr!.ready as number
    assert.ok(inRange(client, version), `${name}: resource ${version}`)
    assert.deepEqual({ ...cr }, { syscalls: `read,s${version}`, hash: `h${version}`, ready: version, total: version })

    const files = await sql`
      select f.path, f.hash from seccomp_node n join seccomp_file f using (file_set_id) where n.node_name = ${name} order by f.path`
    const shown = JSON.stringify(files)
    const isWhole = (version: number) =>
      JSON.stringify(filesOf(name, version).sort((a, b) => (a.path < b.path ? -1 : 1))) === shown
    const versions = Array.from(
      { length: sent[client]! - acknowledged[client]! + 1 },
      (_, i) => acknowledged[client]! + i,
    )
    assert.ok(versions.some(isWhole), `${name}: files ${shown.slice(0, 100)}`)
  }
  const unions =
    await sql`select workload_name, syscalls, syscall_count::integer as count, hash, union_hash(syscalls, arches) as expected from workload_syscalls`
  for (let client = 0; client < CLIENTS; client++) {
    const { syscalls, count, hash, expected } = unions.find(
      ({ workload_name }) => workload_name === workloadOf(client),
    )!
    const names = new Set<string>(syscalls.split(','))
    assert.deepEqual([names.size, hash], [count, expected])
    const [row] = await sql`select syscalls from pod_syscalls where pod_name = ${nameOf(client)}`
    for (const one of row!.syscalls.split(',')) assert.ok(names.has(one), `${one} is in no union`)
    assert.ok(names.has(`s${client}_${acknowledged[client]! % 300}`), 'an acknowledged name is lost')
  }
}

const failures = (broker: Broker) => broker.log.filter(({ level }) => level === 'error' || level === 'fatal')

const dataDir = createDataDir()
const ledger = new Ledger()
let broker: Broker

before(async () => {
  broker = await startBroker({ dataDir })
  await introduce(broker)
})

describe('kill -9 of the broker', { timeout: 900_000 }, () => {
  test('leaves unions, resources and files whole, and loses no acknowledged write', async (t) => {
    for (let kill = 0; kill < BROKER_KILLS; kill++) {
      const stream = new Stream(t, broker, ledger)
      await until('writes are acknowledged', () => stream.rounds >= BEFORE)
      broker.kill('SIGKILL')
      assert.deepEqual(await broker.exited, { code: null, signal: 'SIGKILL' })
      await stream.stop()
      assert.ok(stream.cut > 0, 'something was on its way')
      assert.deepEqual(stream.refused, [])

      broker = await startBroker({ dataDir })
      await settle(broker, dataDir, ledger)
    }
  })
})

describe('the database dies, and the broker stays up', { timeout: 900_000 }, () => {
  const deaths: {
    name: string
    strike: (postmaster: number, backend: number) => void
    survives?: boolean
    skip?: string | false
  }[] = [
    { name: 'kill -9 of the postmaster', strike: (pid) => process.kill(pid, 'SIGKILL') },
    {
      name: 'kill -9 of a backend that writes',
      strike: (_, backend) => process.kill(backend, 'SIGKILL'),
      survives: true,
      skip: onlyFull,
    },
    { name: 'a fast stop', strike: (pid) => process.kill(pid, 'SIGINT'), skip: onlyFull },
  ]
  for (const { name, strike, survives = false, skip = false } of deaths) {
    test(`${name}: only 503, then recovery by itself; everything is whole and no acknowledged write is lost`, {
      skip,
    }, async (t) => {
      const postmaster = postmasterPid(dataDir)!
      const stream = new Stream(t, broker, ledger)
      await until('writes are acknowledged', () => stream.rounds >= BEFORE)
      assert.deepEqual(stream.refused, [])

      strike(postmaster, await aBackend(dataDir))
      await until('the database is gone', () => survives || postmasterPid(dataDir) !== postmaster)
      const before = stream.rounds
      await until('writes are acknowledged again', () => stream.rounds >= before + AFTER)
      await until('the broker is ready', async () => (await get(`${broker.admin}/readyz`)).status === 200)
      await stream.stop()

      assert.equal(broker.hasExited, false)
      assert.equal(stream.cut, 0, 'a request had no answer')
      for (const { status, headers, text } of stream.refused) {
        assert.equal(status, 503, text)
        assert.equal(headers['retry-after'], '1')
      }
      assert.deepEqual(failures(broker), [])
      assert.equal(broker.stderr, '')
      await settle(broker, dataDir, ledger)
    })
  }

  test('after these faults the broker stops with 0', async () => {
    assert.deepEqual(await broker.stop(), { code: 0, signal: null })
    assert.equal(postmasterPid(dataDir), undefined)
  })
})

/** The process id of a backend that writes. */
async function aBackend(dataDir: string): Promise<number> {
  const sql = connectTo(dataDir, 1)
  try {
    return await until('something is being written', async () => {
      const [row] = await sql<{ pid: number }[]>`
        select pid from pg_stat_activity
        where application_name = 'cluster-telemetry-broker' and query ~ 'post_node_files|seccomp_cr|add_syscalls' and pid <> pg_backend_pid()
        order by state = 'active' desc limit 1`
      return row?.pid
    })
  } finally {
    await sql.end({ timeout: 1 })
  }
}
