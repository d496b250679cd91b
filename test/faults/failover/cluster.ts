/**
 * PostgreSQL as docs/install.md sets it up: two servers that Patroni runs, and PgBouncer behind which HAProxy finds the
 * primary. The files of the document are used as they are, except for addresses. Everything listens on loopback.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import type postgres from 'postgres'
import { readPidFile } from '../../../lib/db/embedded/attach.ts'
import { openPool } from '../../../lib/db/open-pool.ts'
import { blocksOf } from '../../install/document.ts'
import { request } from '../../support/broker.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import { killAll, type Program, Programs, postgresPrograms, processesIn } from './programs.ts'

const PAGE = fileURLToPath(new URL('../../../docs/install.md', import.meta.url))
const SECTION = 'Patroni'
/** Addresses of the document. */
const SERVERS = ['10.0.0.11:5432', '10.0.0.12:5432'] as const
const PROXIES = '10.0.0.10'
const HAPROXY_PORT = '5000'
const PGBOUNCER_PORT = '6432'
const OLD_DATABASE = 'db.example.com/broker'
const SUPERUSER = 'postgres'
const MAINTENANCE = 'postgres'
/** Another database on the same servers, to be copied into the one of the brokers. */
const OLD = 'old'
const START_MS = 60_000

type Mode = 'asynchronous' | 'synchronous' | 'strict'

interface Member {
  name: string
  role: string
  state: string
}

/** The blocks of the document in that language, with some of their text replaced. Each must occur. */
function fromDocument(language: string, replaced: readonly (readonly [string, string])[]): string {
  const blocks = blocksOf(readFileSync(PAGE, 'utf8')).filter(
    (one) => one.section === SECTION && one.language === language,
  )
  const shown = blocks.map((block) => `${block.text}\n`).join('')
  return replaced.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), `docs/install.md, ${SECTION}, ${language}: ${from}`)
    return text.replaceAll(from, to)
  }, shown)
}

/** The settings of Patroni in the document. */
export const patroniSettings = () => load(fromDocument('yaml', [])) as { ttl: number }

class Node {
  readonly name: string
  readonly data: string
  readonly port: number
  readonly api: string
  readonly #start: () => Program
  #patroni: Program | undefined

  constructor(name: string, data: string, port: number, api: string, start: () => Program) {
    ;[this.name, this.data, this.port, this.api] = [name, data, port, api]
    this.#start = start
  }

  start(): void {
    this.#patroni = this.#start()
  }

  /** Kills the postmaster, Patroni and `others` at the same time; resolves when no process of them is left. */
  async kill(others: readonly number[] = []): Promise<void> {
    killAll([readPidFile(this.data)!.pid, this.#patroni!.pid, ...others])
    await this.#patroni!.end('SIGKILL')
    await until(`the processes of ${this.name} end`, () => processesIn(this.data).length === 0)
  }

  async end(): Promise<void> {
    await this.#patroni?.end('SIGTERM')
    killAll(processesIn(this.data))
    await until(`the processes of ${this.name} end`, () => processesIn(this.data).length === 0)
  }

  tail(): string {
    return `${this.name}: ${this.#patroni?.tail()}`
  }
}

export type { Node }

export class Cluster {
  readonly nodes: readonly Node[]
  readonly #folder: string
  readonly #ports: { haproxy: string; pgbouncer: string }
  readonly #passwords: { broker: string; superuser: string }

  private constructor(
    nodes: readonly Node[],
    folder: string,
    ports: { haproxy: string; pgbouncer: string },
    passwords: { broker: string; superuser: string },
  ) {
    this.nodes = nodes
    this.#folder = folder
    this.#ports = ports
    this.#passwords = passwords
  }

  /** With empty databases `broker` and `old`, which belong to the role `broker`. Everything ends with the test. */
  static async start(t: TestContext): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), 'broker-failover-'))
    chmodSync(folder, 0o755)
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    const programs = new Programs(folder)
    const [password, superPassword] = [randomBytes(8).toString('hex'), randomBytes(8).toString('hex')]

    const etcdUrl = `http://127.0.0.1:${await freePort()}`
    const peerUrl = `http://127.0.0.1:${await freePort()}`
    const etcd = programs.start('etcd', [
      ...['--data-dir', programs.makeFolder('etcd'), '--log-level', 'error'],
      ...['--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      ...['--initial-cluster', `default=${peerUrl}`],
    ])
    t.after(() => etcd.end('SIGTERM'))
    await until('etcd answers', async () => (await request(`${etcdUrl}/health`)).json.health === 'true')

    const nodes: Node[] = []
    for (const name of ['a', 'b']) {
      const [home, port, apiPort] = [programs.makeFolder(name), await freePort(), await freePort()]
      const data = join(home, 'data')
      const file = programs.writeFile(
        `${name}/patroni.yml`,
        JSON.stringify(configuration({ name, home, data, port, apiPort, etcdUrl, superPassword })),
      )
      const start = () => programs.start('patroni', [file])
      const node = new Node(name, data, port, `http://127.0.0.1:${apiPort}`, start)
      nodes.push(node)
      t.after(() => node.end())
    }

    const haproxyPort = String(await freePort())
    const haproxyFile = programs.writeFile(
      'haproxy.cfg',
      fromDocument('haproxy', [
        [`${PROXIES}:${HAPROXY_PORT}`, `127.0.0.1:${haproxyPort}`],
        ...nodes.map(({ port, api }, at) => [SERVERS[at]!, `127.0.0.1:${port} port ${new URL(api).port}`] as const),
      ]),
    )
    const haproxy = programs.start('haproxy', ['-db', '-f', haproxyFile])
    t.after(() => haproxy.end('SIGTERM'))

    const poolerPort = String(await freePort())
    const users = programs.writeFile('userlist.txt', `"broker" "${password}"\n`)
    const poolerFile = programs.writeFile(
      'pgbouncer.ini',
      fromDocument('ini', [
        [`host=${PROXIES} port=${HAPROXY_PORT}`, `host=127.0.0.1 port=${haproxyPort}`],
        [`listen_addr = ${PROXIES}`, 'listen_addr = 127.0.0.1\nunix_socket_dir ='],
        [`listen_port = ${PGBOUNCER_PORT}`, `listen_port = ${poolerPort}`],
        ['/etc/pgbouncer/userlist.txt', users],
      ]),
    )
    const pooler = programs.start('pgbouncer', ['-q', poolerFile])
    t.after(() => pooler.end('SIGINT'))

    const ports = { haproxy: haproxyPort, pgbouncer: poolerPort }
    const cluster = new Cluster(nodes, folder, ports, { broker: password, superuser: superPassword })
    try {
      await cluster.#bootstrap()
    } catch (error) {
      t.diagnostic([etcd.tail(), ...nodes.map((node) => node.tail()), haproxy.tail(), pooler.tail()].join('\n'))
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
      ['PASSWORD', this.#passwords.broker],
      [`${PROXIES}:${PGBOUNCER_PORT}`, `127.0.0.1:${this.#ports.pgbouncer}`],
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
      [OLD_DATABASE, `127.0.0.1:${this.#ports.haproxy}/${OLD}`],
      ['PASSWORD', this.#passwords.broker],
      [`${PROXIES}:${HAPROXY_PORT}`, `127.0.0.1:${this.#ports.haproxy}`],
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

interface Place {
  name: string
  home: string
  data: string
  port: number
  apiPort: number
  etcdUrl: string
  superPassword: string
}

function configuration({ name, home, data, port, apiPort, etcdUrl, superPassword }: Place): object {
  const [address, api] = [`127.0.0.1:${port}`, `127.0.0.1:${apiPort}`]
  return {
    scope: 'broker',
    name,
    restapi: { listen: api, connect_address: api },
    etcd3: { url: etcdUrl },
    bootstrap: {
      dcs: patroniSettings(),
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: data,
      bin_dir: postgresPrograms(),
      pgpass: join(home, 'pgpass'),
      authentication: {
        superuser: { username: SUPERUSER, password: superPassword },
        replication: { username: 'replicator', password: superPassword },
      },
      pg_hba: ['host replication replicator 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 scram-sha-256'],
      parameters: { unix_socket_directories: '' },
      // A server that pg_rewind cannot mend is made anew from the primary.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      basebackup: [{ checkpoint: 'fast' }],
    },
  }
}
