/**
 * PostgreSQL as docs/install.md sets it up: two servers that Patroni runs, and PgBouncer behind which HAProxy finds the
 * primary. The files of the document are used as they are, except for addresses. Everything listens on loopback.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type postgres from 'postgres'
import { openPool } from '../../../lib/db/open-pool.ts'
import { request } from '../../support/broker.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import { DOCUMENT, fromDocument } from './document.ts'
import { Node, SUPERUSER } from './node.ts'
import { Programs, postgresPrograms } from './programs.ts'

const MAINTENANCE = 'postgres'
/** Another database on the same servers, to be copied into the one of the brokers. */
const OLD = 'old'
const START_MS = 60_000

type Mode = 'asynchronous' | 'synchronous' | 'strict'

interface Ports {
  haproxy: number
  pgbouncer: number
}

interface Passwords {
  broker: string
  superuser: string
}

interface Member {
  name: string
  role: string
  state: string
}

export class Cluster {
  readonly nodes: readonly Node[]
  readonly #folder: string
  readonly #ports: Ports
  readonly #passwords: Passwords

  private constructor(nodes: readonly Node[], folder: string, ports: Ports, passwords: Passwords) {
    this.nodes = nodes
    this.#folder = folder
    this.#ports = ports
    this.#passwords = passwords
  }

  /** With empty databases `broker` and `old`, which belong to the role `broker`. Everything ends with the test. */
  static async start(t: TestContext): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), 'broker-failover-'))
    chmodSync(folder, 0o755)
    const nodes: Node[] = []
    const ends: (() => Promise<void>)[] = []
    const remove = () => rmSync(folder, { recursive: true, force: true })
    t.after(async () => {
      for (const end of ends.reverse()) await end()
      remove()
    })
    process.once('exit', () => {
      for (const node of nodes) node.killLeftovers()
      remove()
    })
    // A run that is stopped: what listens to `exit` ends all processes.
    process.once('SIGTERM', () => process.exit(1))
    const programs = new Programs(folder)
    const passwords = { broker: randomBytes(8).toString('hex'), superuser: randomBytes(8).toString('hex') }

    const etcdUrl = `http://127.0.0.1:${await freePort()}`
    const peerUrl = `http://127.0.0.1:${await freePort()}`
    const etcd = programs.start('etcd', [
      ...['--data-dir', programs.makeFolder('etcd'), '--log-level', 'error'],
      ...['--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      ...['--initial-cluster', `default=${peerUrl}`],
    ])
    ends.push(() => etcd.end('SIGTERM'))
    await until('etcd answers', async () => (await request(`${etcdUrl}/health`)).json.health === 'true')

    for (const name of ['a', 'b']) {
      const node = await Node.create(programs, name, etcdUrl, passwords.superuser)
      nodes.push(node)
      ends.push(() => node.end())
    }

    const ports = { haproxy: await freePort(), pgbouncer: await freePort() }
    const haproxyFile = programs.writeFile(
      'haproxy.cfg',
      fromDocument('haproxy', [
        [DOCUMENT.haproxy, `127.0.0.1:${ports.haproxy}`],
        ...nodes.map(({ port, apiPort }, at) => [DOCUMENT.servers[at]!, `127.0.0.1:${port} port ${apiPort}`] as const),
      ]),
    )
    const haproxy = programs.start('haproxy', ['-db', '-f', haproxyFile])
    ends.push(() => haproxy.end('SIGTERM'))

    const users = programs.writeFile('userlist.txt', `"broker" "${passwords.broker}"\n`)
    const pgbouncerFile = programs.writeFile(
      'pgbouncer.ini',
      fromDocument('ini', [
        [DOCUMENT.proxies, '127.0.0.1'],
        ['port=5000', `port=${ports.haproxy}`],
        ['listen_port = 6432', `listen_port = ${ports.pgbouncer}\nunix_socket_dir =`],
        [DOCUMENT.users, users],
      ]),
    )
    const pgbouncer = programs.start('pgbouncer', ['-q', pgbouncerFile])
    ends.push(() => pgbouncer.end('SIGINT'))

    const cluster = new Cluster(nodes, folder, ports, passwords)
    try {
      await cluster.#bootstrap()
    } catch (error) {
      t.diagnostic([etcd.tail(), ...nodes.map((node) => node.tail()), haproxy.tail(), pgbouncer.tail()].join('\n'))
      throw error
    }
    return cluster
  }

  async #bootstrap(): Promise<void> {
    const [first, second] = this.nodes as [Node, Node]
    first.start()
    await until(
      'the first server is the primary',
      async () => (await this.#status(first, '/primary')) === 200,
      START_MS,
    )
    second.start()
    await this.untilStandby('synchronous', START_MS)
    await this.asSuperuser(async (sql) => {
      await sql.unsafe(`create role broker login password '${this.#passwords.broker}'`)
      await sql.unsafe('create database broker owner broker')
      await sql.unsafe(`create database ${OLD} owner broker`)
    }, MAINTENANCE)
  }

  /** The variables of a broker in the document. */
  get environment(): Record<string, string> {
    const text = fromDocument('properties', [
      [DOCUMENT.password, this.#passwords.broker],
      [DOCUMENT.pgbouncer, `127.0.0.1:${this.#ports.pgbouncer}`],
    ])
    return Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]))
  }

  /** The address of the old database. */
  get oldUrl(): string {
    return `postgres://broker:${this.#passwords.broker}@127.0.0.1:${this.#ports.haproxy}/${OLD}`
  }

  /** The commands of the document that fill the database, for a shell. `migrate` replaces `npm run migrate`. */
  commands(migrate: string): string {
    const text = fromDocument('sh', [
      [DOCUMENT.oldDatabase, `127.0.0.1:${this.#ports.haproxy}/${OLD}`],
      [DOCUMENT.password, this.#passwords.broker],
      [DOCUMENT.haproxy, `127.0.0.1:${this.#ports.haproxy}`],
      ['npm run migrate', migrate],
      ['broker.dump', join(this.#folder, 'broker.dump')],
    ])
    return `PATH=${postgresPrograms()}:$PATH\n${text}`
  }

  async #status({ api }: Node, path: string): Promise<number> {
    return (await request(`${api}${path}`)).status
  }

  /** The server that is the primary now, or undefined. */
  async primary(): Promise<Node | undefined> {
    for (const node of this.nodes) if ((await this.#status(node, '/primary').catch(() => 0)) === 200) return node
    return undefined
  }

  async roles(): Promise<{ primary: Node; standby: Node }> {
    const primary = await until('there is a primary', () => this.primary())
    return { primary, standby: this.nodes.find((node) => node !== primary)! }
  }

  /** Waits until Patroni and PostgreSQL agree that the standby streams, as the mode asks. */
  async untilStandby(mode: Mode, limitMs?: number): Promise<void> {
    const isSynchronous = mode !== 'asynchronous'
    await until(
      `the standby is ${mode}`,
      async () => {
        const { primary, standby } = await this.roles()
        const { members } = (await request(`${primary.api}/cluster`)).json as { members: Member[] }
        const member = members.find(({ name }) => name === standby.name)
        if (member?.role !== (isSynchronous ? 'sync_standby' : 'replica') || member.state !== 'running') return false
        const state = isSynchronous ? 'sync' : 'async'
        const rows = await this.asSuperuser(
          (sql) => sql`
            select from pg_stat_replication where application_name = ${standby.name} and sync_state = ${state}
              and state = 'streaming'`,
          MAINTENANCE,
        )
        return rows.length === 1
      },
      limitMs,
    )
  }

  /** Changes the mode; with both servers up, `untilStandby` tells when it holds. */
  async setMode(mode: Mode): Promise<void> {
    const { primary } = await this.roles()
    const body = JSON.stringify({
      synchronous_mode: mode !== 'asynchronous',
      synchronous_mode_strict: mode === 'strict',
    })
    assert.equal((await request(`${primary.api}/config`, { method: 'PATCH', body })).status, 200)
  }

  /** The servers that commits wait for: empty for none, `*` for any. */
  async awaited(): Promise<string> {
    const [row] = await this.asSuperuser(
      (sql) => sql<{ names: string }[]>`select current_setting('synchronous_standby_names') as names`,
      MAINTENANCE,
    )
    return row!.names
  }

  /** Stops the processes of the primary that send to the standby, which gets nothing from then on. */
  async stopSending(): Promise<number[]> {
    const rows = await this.asSuperuser(
      (sql) => sql<{ pid: number }[]>`select pid from pg_stat_replication`,
      MAINTENANCE,
    )
    const senders = rows.map(({ pid }) => pid)
    for (const pid of senders) process.kill(pid, 'SIGSTOP')
    return senders
  }

  /** Sessions whose commit waits for a standby. */
  async waiting(): Promise<number> {
    const rows = await this.asSuperuser(
      (sql) => sql`select from pg_stat_activity where wait_event = 'SyncRep'`,
      MAINTENANCE,
    )
    return rows.length
  }

  /** Runs `work` on a connection to the primary. */
  async asSuperuser<T>(work: (sql: postgres.Sql) => Promise<T>, database = 'broker'): Promise<T> {
    const { primary } = await this.roles()
    const sql = openPool(`postgres://${SUPERUSER}:${this.#passwords.superuser}@127.0.0.1:${primary.port}/${database}`, {
      max: 1,
      fetch_types: false,
      connect_timeout: 0,
      onnotice: () => {},
    })
    try {
      return await work(sql)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
}
