/**
 * `npm run bench:flows-growth`: how the size of the table of flows changes the rate at which new ones are stored.
 * Databases of 1, 10 and 50 million flows (`--sizes 1000000,10000000,50000000`) get new flows of living pods, in batches
 * as the agents of 50 nodes send them: in turn, `--rounds 4` times for `--seconds 30`. Then the same with each database
 * freshly started and, for root on Linux, nothing of it in memory. `--data DIR` keeps the databases; 50 million flows
 * take 35 GB.
 */

import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startBroker } from './broker.ts'
import { post, run } from './client.ts'
import { NODES, newestGeneration, openFlows, PODS } from './flows-data.ts'

const { values: options } = parseArgs({
  options: {
    ...{ sizes: { type: 'string', default: '1000000,10000000,50000000' }, data: { type: 'string' } },
    ...{ rounds: { type: 'string', default: '4' }, seconds: { type: 'string', default: '30' } },
  },
})
const SIZES = options.sizes.split(',').map(Number)
const ROUNDS = Number(options.rounds)
const FOR_MS = Number(options.seconds) * 1_000
const FLOWS_PER_BATCH = 100
const CONNECTIONS = 4
const SERVICES = 500
/** Frees all memory that holds what files have. */
const DROP_CACHES = '/proc/sys/vm/drop_caches'
const print = (line: string) => process.stdout.write(`${line}\n`)

const folder = options.data ?? mkdtempSync(join(tmpdir(), 'broker-growth-'))
process.once('exit', () => options.data ?? rmSync(folder, { recursive: true, force: true }))
const dataDirOf = (size: number) => {
  const path = join(folder, String(size))
  mkdirSync(path, { recursive: true })
  return path
}

const below = (n: number) => Math.floor(Math.random() * n)
const address = (generation: number, pod: number) => `10.${generation}.${Math.floor(pod / 256)}.${pod % 256}`

/** A new flow of a pod: of ten, six are to pods, one is to a service, and three leave the cluster, one of them UDP. */
function flow(generation: number, pod: number) {
  const kind = below(10)
  const peer = below(PODS)
  return {
    uuid: randomUUID(),
    pod_name: `app-${Math.floor(pod / 5)}-${pod % 5}-${generation}`,
    pod_namespace: `ns-${Math.floor(pod / 5) % 40}`,
    pod_ip: address(generation, pod),
    pod_port: '0',
    ip_protocol: kind === 9 ? 'UDP' : 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip:
      kind < 6
        ? address(generation, peer)
        : kind === 6
          ? `10.96.${Math.floor((peer % SERVICES) / 256)}.${(peer % SERVICES) % 256}`
          : `60.${below(250)}.${below(250)}.${below(250)}`,
    traffic_in_out_port: String(1_024 + below(60_000)),
    decision: 'ALLOW',
    time_stamp: new Date().toISOString().slice(0, -1),
  }
}

/** A batch of one node. */
function batch(generation: number): Buffer {
  const node = below(NODES)
  const flows = Array.from({ length: FLOWS_PER_BATCH }, () => flow(generation, node + NODES * below(PODS / NODES)))
  return post('/pod/traffic/batch', JSON.stringify(flows))
}

async function open(size: number) {
  const dataDir = dataDirOf(size)
  const { sql, stop } = await openFlows(size, dataDir)
  const broker = await startBroker({ DATA_DIR: dataDir, JOBS: 'external' })
  const counters = async () => {
    const [row] = await sql<{ wal_bytes: number; images: number; read: number }[]>`
      select w.wal_bytes::float8 as wal_bytes, w.wal_fpi::float8 as images,
             (select blks_read::float8 from pg_stat_database where datname = current_database()) as read
      from pg_stat_wal w`
    return row!
  }
  return {
    /** Posts new flows for a while; returns the rate, and what PostgreSQL read and wrote for each flow. */
    async measure() {
      const generation = newestGeneration(size)
      const before = await counters()
      const { calls, failed, seconds } = await run({
        ...{ port: broker.port, connections: CONNECTIONS, forMs: FOR_MS, request: () => batch(generation) },
      })
      if (failed > 0) throw new Error(`${failed} posts failed`)
      const flows = calls * FLOWS_PER_BATCH
      const after = await counters()
      return {
        rate: flows / seconds,
        walBytes: (after.wal_bytes - before.wal_bytes) / flows,
        images: (after.images - before.images) / flows,
        read: (after.read - before.read) / flows,
      }
    },
    async stop() {
      await broker.stop()
      await stop()
    },
  }
}
type Site = Awaited<ReturnType<typeof open>>
type Phase = Awaited<ReturnType<Site['measure']>>

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!

function report(title: string, phases: Map<number, Phase[]>): void {
  print(
    `\n${title}\n| flows | new flows/s, each round | median | to the first | WAL B/flow | page images/flow | pages read/flow |`,
  )
  print('|---:|---:|---:|---:|---:|---:|---:|')
  const base = median(phases.get(SIZES[0]!)!.map(({ rate }) => rate))
  for (const [size, all] of phases) {
    const of = (member: keyof Phase) => median(all.map((one) => one[member]))
    const each = all.map(({ rate }) => Math.round(rate)).join(' ')
    const rate = of('rate')
    print(
      `| ${size} | ${each} | ${Math.round(rate)} | ${(rate / base).toFixed(2)} | ${Math.round(of('walBytes'))} | ` +
        `${of('images').toFixed(2)} | ${of('read').toFixed(2)} |`,
    )
  }
}

for (const size of SIZES) await (await openFlows(size, dataDirOf(size))).stop()

const sites = new Map<number, Site>()
for (const size of SIZES) sites.set(size, await open(size))
const warm = new Map<number, Phase[]>(SIZES.map((size) => [size, []]))
// The first round fills caches and is not counted.
for (let round = 0; round <= ROUNDS; round++)
  for (const [size, site] of sites) {
    const phase = await site.measure()
    if (round > 0) warm.get(size)!.push(phase)
  }
report('warm', warm)
for (const site of sites.values()) await site.stop()

const cold = new Map<number, Phase[]>(SIZES.map((size) => [size, []]))
if (process.platform === 'linux' && process.getuid?.() === 0) {
  for (let round = 0; round < ROUNDS; round++)
    for (const size of SIZES) {
      spawnSync('sync')
      writeFileSync(DROP_CACHES, '3')
      const site = await open(size)
      cold.get(size)!.push(await site.measure())
      await site.stop()
    }
  report('cold', cold)
} else print('cold: needs root on Linux')
process.exit(0)
