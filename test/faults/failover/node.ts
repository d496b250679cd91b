/** A PostgreSQL server that Patroni runs. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { isPostmaster, readPidFile } from '../../../lib/db/embedded/attach.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import { patroniSettings } from './document.ts'
import { killAll, type Program, type Programs, postgresPrograms, processesIn } from './programs.ts'

export const SUPERUSER = 'postgres'

export class Node {
  readonly name: string
  readonly data: string
  readonly port: number
  readonly apiPort: number
  readonly #start: () => Program
  #patroni: Program | undefined

  private constructor(name: string, data: string, port: number, apiPort: number, start: () => Program) {
    this.name = name
    this.data = data
    this.port = port
    this.apiPort = apiPort
    this.#start = start
  }

  /** It is not started yet. */
  static async create(programs: Programs, name: string, etcdUrl: string, superPassword: string): Promise<Node> {
    const [home, port, apiPort] = [programs.makeFolder(name), await freePort(), await freePort()]
    const data = join(home, 'data')
    const settings = configuration({ name, home, data, port, apiPort, etcdUrl, superPassword })
    const file = programs.writeFile(`${name}/patroni.yml`, JSON.stringify(settings))
    return new Node(name, data, port, apiPort, () => programs.start('patroni', [file]))
  }

  /** The address of the interface of Patroni. */
  get api(): string {
    return `http://127.0.0.1:${this.apiPort}`
  }

  start(): void {
    this.#patroni = this.#start()
  }

  /** Kills the postmaster, Patroni and `others` at the same time; resolves when no process of them is left. */
  async kill(others: readonly number[] = []): Promise<void> {
    const { pid } = readPidFile(this.data)!
    assert.ok(isPostmaster(pid, this.data))
    killAll([pid, this.#patroni!.pid, ...others])
    await this.#patroni!.end('SIGKILL')
    await this.#untilGone()
  }

  async end(): Promise<void> {
    await this.#patroni?.end('SIGTERM')
    this.killLeftovers()
    await this.#untilGone()
  }

  killLeftovers(): void {
    killAll(processesIn(this.data))
  }

  async #untilGone(): Promise<void> {
    await until(`the processes of ${this.name} end`, () => processesIn(this.data).length === 0)
  }

  /** The last lines that it printed. */
  tail(): string {
    return `${this.name}: ${this.#patroni?.tail()}`
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
      // Memory of a killed server goes with its folder.
      parameters: { unix_socket_directories: '', dynamic_shared_memory_type: 'mmap' },
      // A server that pg_rewind cannot mend is made anew from the primary.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      basebackup: [{ checkpoint: 'fast' }],
    },
  }
}
