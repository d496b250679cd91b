/**
 * The broker is killed, or answers are lost, while pods restart under the same names and send syscalls: each syscall is
 * in the set of its workload and attributed to the one pod that sent it.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import type postgres from 'postgres'
import { type Broker, get, post, startBroker } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { podPost } from '../support/records.ts'
import { until } from '../support/until.ts'

/** Clients of the two namespaces have pods of the same names. */
const CLIENTS = 4
const NAMESPACES = ['dev', 'prod'] as const
/** After this many posts another pod takes the name. */
const POSTS_PER_POD = depth(3, 12)
const ROUNDS = depth(20, 60)
const BROKER_KILLS = depth(1, 3)

const START = Date.now() - 3_600_000
const at = (second: number) => new Date(START + second * 1_000).toISOString().slice(0, -1)
const podOf = (client: number) => `web-${client >> 1}`
const namespaceOf = (client: number) => NAMESPACES[client & 1]!
const uidOf = (client: number, n: number) => `uid-${client}-${Math.floor(n / POSTS_PER_POD)}`
const nameOf = (client: number, n: number) => `s${client}_${n}`

const spec = (client: number, n: number) =>
  podPost({
    ...{ pod_name: podOf(client), pod_namespace: namespaceOf(client), time_stamp: at(2 * n), capture_level: 'full' },
    ...{ workload_kind: 'StatefulSet', workload_name: podOf(client), pod_obj: { metadata: { uid: uidOf(client, n) } } },
  })
const calls = (client: number, n: number) => [
  {
    ...{ pod_name: podOf(client), pod_namespace: namespaceOf(client), syscalls: ['read', nameOf(client, n)] },
    ...{ arch: 'x86_64', time_stamp: at(2 * n + 1) },
  },
]

/** The count of acknowledged rounds of each client. The next round is sent until it is acknowledged. */
type Ledger = number[]

class Stream {
  rounds = 0
  cut = 0
  readonly refused: string[] = []
  #stopped = false
  readonly #clients: Promise<void>[]

  constructor(t: TestContext, broker: Broker, ledger: Ledger) {
    t.after(() => this.stop())
    this.#clients = ledger.map((_, client) => this.#send(broker, client, ledger))
  }

  async #send({ url }: Broker, client: number, ledger: Ledger): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    try {
      while (!this.#stopped) {
        const n = ledger[client]!
        for (const [path, body] of [
          ['/pod/spec', spec(client, n)],
          ['/pod/syscalls', calls(client, n)],
        ] as const) {
          const { status, text } = await post(url + path, body, { agent })
          if (status !== 200) this.refused.push(`${status} ${text}`)
        }
        ledger[client] = n + 1
        this.rounds++
      }
    } catch {
      this.cut++
    }
    agent.destroy()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#clients)
  }
}

/** Each acknowledged syscall is in its set and is attributed to its own pod only. */
async function assertCredited(sql: postgres.Sql, ledger: Ledger): Promise<void> {
  assert.deepEqual([...(await sql`select pod_name from unattributed_syscalls`)], [])
  for (const [client, count] of ledger.entries()) {
    const of = { namespace: namespaceOf(client), workload: podOf(client) }
    const [set] = await sql`
      select syscalls, hash, union_hash(syscalls, arches) as expected from workload_syscalls
      where pod_namespace = ${of.namespace} and workload_name = ${of.workload}`
    const names = new Set<string>(set!.syscalls.split(','))
    assert.equal(set!.hash, set!.expected)
    const rows = await sql<{ pod_uid: string | null; syscalls: string }[]>`
      select i.pod_uid, c.syscalls
      from syscall_contribution c left join pod_instance i using (pod_name, pod_namespace, instance)
      where c.pod_namespace = ${of.namespace} and c.workload_name = ${of.workload}`
    const senders = new Map<string, (string | null)[]>()
    for (const { pod_uid, syscalls } of rows)
      for (const name of syscalls.split(',')) senders.set(name, [...(senders.get(name) ?? []), pod_uid])
    for (let n = 0; n < count; n++) {
      assert.ok(names.has(nameOf(client, n)), `${nameOf(client, n)} is lost`)
      assert.deepEqual(senders.get(nameOf(client, n)), [uidOf(client, n)], nameOf(client, n))
    }
    // The next syscall may be in the set, since its answer was lost. No others are, also none of the other namespace.
    const others = [...names].filter((name) => name !== 'read' && !name.startsWith(`s${client}_`))
    assert.deepEqual(others, [])
    assert.ok(names.size <= count + 2, `${names.size} names after ${count} posts`)
  }
}

describe('kill -9 of the broker', { timeout: 900_000 }, () => {
  test('while pods of two namespaces restart: each acknowledged syscall is in the set and attributed to its pod', async (t) => {
    const database = await createTestDatabase()
    const start = () => startBroker({ databaseUrl: database.url })
    const ledger: Ledger = Array(CLIENTS).fill(0)
    let broker = await start()
    for (let kill = 0; kill < BROKER_KILLS; kill++) {
      const stream = new Stream(t, broker, ledger)
      await until('writes are acknowledged', () => stream.rounds >= ROUNDS)
      broker.kill('SIGKILL')
      await broker.exited
      await stream.stop()
      assert.ok(stream.cut > 0, 'something was on its way')
      assert.deepEqual(stream.refused, [])

      broker = await start()
      await assertCredited(database.adminSql, ledger)
      for (const [client, count] of ledger.entries())
        if (count > 0) {
          const { json } = await get(
            `${broker.url}/seccomp/profiles/${namespaceOf(client)}/StatefulSet/${podOf(client)}`,
          )
          assert.deepEqual([json.capture.level, json.captureComplete], ['full', true])
        }
    }
    assert.deepEqual(await broker.stop(), { code: 0, signal: null })
  })
})

describe('a lost answer of the database', { timeout: 900_000 }, async () => {
  const lossy = await startLossyApp()
  const { sql } = lossy
  let made = 0

  const send = async (path: string, body: unknown) => assert.equal((await lossy.post(path, body)).status, 200)
  const pod = (name: string, pod_namespace: string, uid: string, second: number) =>
    podPost({
      ...{ pod_name: name, pod_namespace, workload_kind: 'Deployment', workload_name: name, capture_level: 'full' },
      ...{ pod_obj: { metadata: { uid } }, time_stamp: at(second) },
    })
  const entry = (pod_name: string, pod_namespace: string, syscalls: string[], second: number) => [
    { pod_name, pod_namespace, syscalls, arch: 'x86_64', time_stamp: at(second) },
  ]
  const contributions = async (name: string) =>
    (
      await sql`
        select c.pod_namespace, i.pod_uid, c.syscalls, c.is_doubtful
        from syscall_contribution c join pod_instance i using (pod_name, pod_namespace, instance)
        where c.pod_name = ${name} order by 1, 2`
    ).map((row) => Object.values(row).join(' '))
  const counted = async (reason: string) =>
    (await lossy.deps.metrics.unattributedSyscalls.get()).values.find(({ labels }) => labels.reason === reason)
      ?.value ?? 0

  for (const fate of ['answer lost', 'question lost', 'left'] satisfies Fate[]) {
    test(`${fate}, for a pod with waiting syscalls: they are attributed to it once`, async () => {
      const name = `waits-${++made}`
      await send('/pod/syscalls', entry(name, '', ['read', 'write'], 1))
      lossy.lose('upsert_pods', fate)
      await send('/pod/spec', pod(name, 'shop', 'a', 2))
      assert.equal(lossy.toCome, 0, 'the fault has struck')
      assert.deepEqual(await contributions(name), ['shop a read,write false'])
      assert.deepEqual([...(await sql`select from unattributed_syscalls where pod_name = ${name}`)], [])
    })

    test(`${fate}, for syscalls of a pod that took over a name: they are attributed to that pod`, async () => {
      const name = `again-${++made}`
      await send('/pod/spec', pod(name, 'shop', 'a', 1))
      await send('/pod/syscalls', entry(name, '', ['read'], 2))
      await send('/pod/spec', pod(name, 'shop', 'b', 3))
      lossy.lose('add_syscalls', fate)
      await send('/pod/syscalls', entry(name, '', ['bpf'], 4))
      assert.equal(lossy.toCome, 0, 'the fault has struck')
      assert.deepEqual(await contributions(name), ['shop a read false', 'shop b bpf false'])
    })

    test(`${fate}, for syscalls that may be of two pods: counted once, and not attributed`, async () => {
      const name = `two-${++made}`
      for (const namespace of NAMESPACES) {
        await send('/pod/spec', pod(name, namespace, namespace, 1))
        await send('/pod/syscalls', entry(name, namespace, ['read'], 2))
      }
      const before = await counted('ambiguous')
      lossy.lose('add_syscalls', fate)
      await send('/pod/syscalls', entry(name, '', ['ptrace'], 3))
      assert.equal(lossy.toCome, 0, 'the fault has struck')
      assert.equal((await counted('ambiguous')) - before, 1)
      assert.deepEqual(await contributions(name), ['dev dev read true', 'prod prod read true'])
    })
  }
})
