/**
 * `npm run bench:profiling`: what is read of workload profiling, beside the numbers to hold. Client, broker and PostgreSQL share the
 * machine. Options: `--seconds 3` a read, `--builds 10` of the list, `--sets 1,30,300` of files on the nodes, `--scale 1` of the runtime inventory
 * (2 million files) and of compute (300 nodes of 40 containers), `--only name,name` of the sections. Of compute: `--parts reads,ingest,jobs`,
 * `--steady 120` seconds of what agents post, `--data FOLDER` where the database is kept for the next time; seeding takes many minutes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'
import { type Load, type Measured, run } from './client.ts'
import { measureCompute, PARTS, type Part } from './profiling-compute.ts'
import { FULL, profilePath, seedNodes, seedWorkloads } from './profiling-dataset.ts'
import { measureRuntime } from './profiling-runtime.ts'
import { SupplyChainBroker as Broker, TOKENS } from './supply-chain-broker.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    builds: { type: 'string', default: '10' },
    sets: { type: 'string', default: '1,30,300' },
    scale: { type: 'string', default: '1' },
    only: { type: 'string' },
    parts: { type: 'string' },
    steady: { type: 'string', default: '120' },
    data: { type: 'string' },
  },
})
const FOR_MS = Number(options.seconds) * 1_000
const BUILDS = Number(options.builds)
const SETS = options.sets.split(',').map(Number)
const CLIENTS = 64
/** A list of megabytes is not asked for by many at once. */
const LIST_CLIENTS = 8
const WHOLE_MS = 3_600_000
/** Widths of columns. */
const NAME = 58
const FIGURE = 22
const HOLD = 24

const LIST = '/seccomp/profiles'
const HOLD_BUILD = 'p50 < 400 ms'
const HOLD_CACHED = '> 3 000/s'
const HOLD_SINGLE = '> 2 000/s'
const HOLD_ALWAYS = 'loop < 100 ms, < 300 MiB'

const print = (line: string) => process.stdout.write(`${line}\n`)
// Only the data of compute knows what is there already.
if (options.data !== undefined && options.only !== 'compute') throw new Error('--data goes with --only compute')
const parts = options.parts?.split(',') ?? PARTS
const strange = parts.find((part) => !(PARTS as readonly string[]).includes(part))
if (strange !== undefined) throw new Error(`no part is called ${strange}: there are ${PARTS.join(', ')}`)
const dataDir = options.data ?? mkdtempSync(join(tmpdir(), 'broker-profiling-'))
process.once('exit', () => options.data === undefined && rmSync(dataDir, { recursive: true, force: true }))
const server = await startEmbedded({ dataDir, log: noLog })
await migrate({ connection: server.options, log: noLog })
const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })

const cell = (text: string, width: number) => text.padStart(width)
const ms = (value: number) => value.toFixed(2)

function row(name: string, figure: string, hold: string, measured: Measured, loopMaxMs: number, peakMib: number): void {
  const { p50Ms, p99Ms, maxMs, failed } = measured
  const cells = [name.padEnd(NAME), cell(figure, FIGURE), cell(hold, HOLD)]
  cells.push(
    cell(ms(p50Ms), 9),
    cell(ms(p99Ms), 9),
    cell(ms(maxMs), 9),
    cell(String(failed), 6),
    cell(ms(loopMaxMs), 11),
    cell(peakMib.toFixed(0), 8),
  )
  print(`| ${cells.join(' | ')} |`)
}

function request(path: string, { method = 'GET', gzip = false, isConditional = false } = {}): Buffer {
  const headers = [`${method} ${path} HTTP/1.1`, 'host: broker', `authorization: Bearer ${TOKENS.BROKER_TOKEN_READ}`]
  if (gzip) headers.push('accept-encoding: gzip')
  if (isConditional) headers.push('if-none-match: *')
  return Buffer.from(`${headers.join('\r\n')}\r\n\r\n`)
}

function posted(path: string, body: string): Buffer {
  const token = `authorization: Bearer ${TOKENS.BROKER_TOKEN_INGEST}`
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: broker\r\n${token}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

/** Runs a load and prints it; `hold` is the number to hold beside those that always hold. */
async function measure(
  broker: Broker,
  name: string,
  hold: string,
  load: Omit<Load, 'port' | 'forMs'>,
  forMs = FOR_MS,
): Promise<void> {
  await broker.loop()
  broker.peakMib()
  const measured = await run({ port: broker.port, forMs, ...load })
  const rate = Math.round(measured.calls / measured.seconds)
    .toLocaleString('en')
    .replaceAll(',', ' ')
  row(name, `${rate}/s`, hold, measured, (await broker.loop()).maxMs, broker.peakMib())
}

async function withBroker(env: NodeJS.ProcessEnv, work: (broker: Broker) => Promise<void>): Promise<void> {
  const broker = await Broker.start(server.url, env)
  try {
    await work(broker)
  } finally {
    await broker.stop()
  }
}

/** What profiles are made of, where one of their sections is run. */
const PROFILES = new Set(['builds', 'cached', 'single'])

const sections = {
  /** The list made for each request, with so many distinct sets of files on the nodes. */
  async builds(): Promise<void> {
    for (const sets of SETS) {
      await seedNodes(sql, FULL, sets)
      await withBroker({ SECCOMP_PROFILES_CACHE_TTL_SECS: '0' }, async (broker) => {
        const builds = (count: number) => ({
          connections: 1,
          isHead: true,
          request: (i: number) => (i < count ? request(LIST, { method: 'HEAD' }) : null),
        })
        await run({ port: broker.port, forMs: WHOLE_MS, ...builds(2) })
        const hold = sets === 1 ? HOLD_BUILD : ''
        await measure(broker, `profiles: a build, ${sets} sets of files`, hold, builds(BUILDS), WHOLE_MS)
      })
    }
    await seedNodes(sql, FULL, 1)
  },

  /** The list from memory. */
  async cached(): Promise<void> {
    await withBroker({ SECCOMP_PROFILES_CACHE_TTL_SECS: '3600' }, async (broker) => {
      const asked = async (gzip: boolean) => {
        const headers = {
          authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}`,
          'accept-encoding': gzip ? 'gzip' : 'identity',
        }
        const answer = await fetch(`http://127.0.0.1:${broker.port}${LIST}`, { headers, method: 'HEAD' })
        return (Number(answer.headers.get('content-length')) / 1_048_576).toFixed(2)
      }
      print(`  ${FULL.workloads} workloads are ${await asked(false)} MiB, packed ${await asked(true)} MiB`)
      await measure(broker, `profiles: from memory, HEAD, ${CLIENTS} clients`, HOLD_CACHED, {
        connections: CLIENTS,
        isHead: true,
        request: () => request(LIST, { method: 'HEAD' }),
      })
      await measure(broker, `profiles: from memory, by who has it, ${CLIENTS} clients`, HOLD_CACHED, {
        connections: CLIENTS,
        request: () => request(LIST, { isConditional: true }),
      })
      for (const gzip of [true, false])
        await measure(broker, `profiles: from memory, ${gzip ? 'gzip' : 'plain'}, ${LIST_CLIENTS} clients`, '', {
          connections: LIST_CLIENTS,
          request: () => request(LIST, { gzip }),
        })
    })
  },

  /** One workload. */
  async single(): Promise<void> {
    await withBroker({}, async (broker) => {
      const paths = Array.from({ length: FULL.workloads }, (_, i) => request(profilePath((i * 7) % FULL.workloads)))
      const one = (connections: number) => ({ connections, request: (i: number) => paths[i % paths.length]! })
      await run({ port: broker.port, forMs: FOR_MS / 3, ...one(CLIENTS) })
      await measure(broker, `profile: one workload, ${CLIENTS} clients`, HOLD_SINGLE, one(CLIENTS))
      await measure(broker, 'profile: one workload, 1 client', '', one(1))
      const hash = async (i: number) => {
        const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }
        const answer = await fetch(`http://127.0.0.1:${broker.port}${profilePath(i)}`, { headers })
        return ((await answer.json()) as { hash: string }).hash
      }
      const file = request(`${profilePath(7).replace('/profiles/', '/profile-file/')}/${await hash(7)}`)
      await measure(broker, `profile file, ${CLIENTS} clients`, '', { connections: CLIENTS, request: () => file })
    })
  },

  /** What ran in workloads and of images. */
  async runtime(): Promise<void> {
    await withBroker({}, async (broker) => {
      const ask = (
        what: string,
        hold: string,
        asked: (i: number) => { path: string; body?: unknown },
        count: number,
      ) => {
        const next = (i: number) => {
          if (i >= count) return null
          const { path, body } = asked(i)
          return body === undefined ? request(path) : posted(path, JSON.stringify(body))
        }
        return measure(broker, what, hold, { connections: 1, request: next }, WHOLE_MS)
      }
      await measureRuntime(sql, Number(options.scale), { ask, print })
    })
  },

  /** What containers take and wait for. */
  async compute(): Promise<void> {
    await measureCompute({
      sql,
      databaseUrl: server.url,
      scale: Number(options.scale),
      parts: parts as readonly Part[],
      forMs: FOR_MS,
      steadyMs: Number(options.steady) * 1_000,
      withBroker,
      ask: (broker, what, hold, path, count) =>
        measure(
          broker,
          what,
          hold,
          { connections: 1, request: (i) => (i < count ? request(path(i)) : null) },
          WHOLE_MS,
        ),
      row,
      print,
    })
  },
}

try {
  const [version] = await sql<{ server_version: string }[]>`show server_version`
  const machine = `${cpus().length} x ${cpus()[0]!.model}, load ${loadavg()[0]!.toFixed(1)}, PostgreSQL ${version!.server_version}, Node ${process.version}`
  print(
    `${machine}, ${FOR_MS / 1_000} s a read, ${new Date().toISOString().slice(0, 10)}; always to hold: ${HOLD_ALWAYS}`,
  )
  print(
    `| ${'what'.padEnd(NAME)} | ${cell('figure', FIGURE)} | ${cell('hold', HOLD)} |    p50 ms |    p99 ms |    max ms | failed | loop max ms | peak MiB |`,
  )
  print(
    `|${'-'.repeat(NAME + 2)}|${'-'.repeat(FIGURE + 1)}:|${'-'.repeat(HOLD + 1)}:|----------:|----------:|----------:|-------:|------------:|---------:|`,
  )
  const only = options.only?.split(',') ?? Object.keys(sections)
  if (only.some((name) => PROFILES.has(name))) {
    await seedWorkloads(sql, FULL)
    await seedNodes(sql, FULL, 1)
  }
  for (const [name, section] of Object.entries(sections)) if (only.includes(name)) await section()
} finally {
  await sql.end({ timeout: 1 })
  await server.stop()
}
