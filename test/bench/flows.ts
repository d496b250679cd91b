/**
 * `npm run bench:flows`: `GET /flows` and `GET /flows/edges` on 50 nodes, 2 000 workloads and 10 million flows over
 * 40 000 edges, filter by filter, with 8 clients; then an export. Options: `--flows 10000000`, `--seconds 3` a filter,
 * `--only WORDS` (repeatable), `--data DIR` to keep the database.
 */
import http from 'node:http'
import { parseArgs } from 'node:util'
import { startBroker } from './broker.ts'
import { get, run } from './client.ts'
import { startFlows } from './flows-data.ts'

const { values: options } = parseArgs({
  options: {
    ...{ flows: { type: 'string', default: '10000000' }, seconds: { type: 'string', default: '3' } },
    ...{ only: { type: 'string', multiple: true }, data: { type: 'string' } },
  },
})
const FLOWS = Number(options.flows)
const CLIENTS = 8
const P95_MS = 50
const EDGES_P95_MS = 200
const print = (line: string) => process.stdout.write(`${line}\n`)

const FILTERS = [
  '',
  'namespace=ns-7',
  'from_namespace=ns-7',
  'to_namespace=ns-7',
  'workload=ns-7/app-47',
  'from_workload=ns-7/Deployment/app-47',
  'to_workload=ns-7/Deployment/app-47',
  'pod=ns-7/app-47-1-0',
  'to_pod=ns-7/app-47-1-0',
  'pod=ns-7/app-47-*',
  'service=ns-8/app-8',
  'ip=10.1.1.3',
  'to_ip=52.10.0.0/16',
  'to_ip=52.10.12.3',
  'label=app=app-47',
  'label=tier=tier-3',
  'node=node-17',
  'from_node=node-17',
  'port=5432',
  'port=443',
  'port=2000-2010',
  'protocol=UDP',
  'verdict=DROP',
  'peer=external',
  'public=true',
  'from_namespace=ns-7&to_namespace=ns-8',
  'from_namespace=ns-7&port=5432',
  'namespace=ns-7&verdict=DROP',
  'from_workload=ns-7/app-47&to_workload=ns-1/app-1',
  'since=7d&until=6d',
  'since=1h',
]

const EDGE_QUERIES = [
  '',
  'since=30d',
  'since=30d&limit=20000',
  'group=namespace&since=30d',
  'group=namespace&since=30d&cidr=8',
  'group=service',
  'cidr=16',
  'order=flows',
  'from_workload=ns-7/app-47',
  'to_workload=ns-7/app-47',
  'namespace=ns-7',
  'peer=external',
  'verdict=DROP',
  'label=app=app-47&since=3d',
]

const { dataDir, stop } = await startFlows(FLOWS, options.data)
const broker = await startBroker({ DATA_DIR: dataDir, JOBS: 'external', LOG_LEVEL: 'info' })

print(`${FLOWS} flows; pages of 1 000, ${CLIENTS} clients; p95 at most ${P95_MS} ms`)
const paths: [path: string, p95Ms: number][] = [
  ...EDGE_QUERIES.map(
    (query) => [`/flows/edges?${query}`, query.includes('namespace&') ? P95_MS : EDGES_P95_MS] as [string, number],
  ),
  ...FILTERS.map((filter) => [`/flows?${filter}`, P95_MS] as [string, number]),
]
for (const [path, p95Ms] of paths) {
  if (options.only && !options.only.some((word) => path.includes(word))) continue
  const once = await run({ port: broker.port, connections: 1, forMs: 1, request: () => get(path) })
  const { calls, failed, slowerThan, p50Ms, p99Ms } = await run({
    ...{ port: broker.port, connections: CLIENTS, forMs: Number(options.seconds) * 1_000 },
    request: () => get(path),
  })
  const within = slowerThan(p95Ms) <= 0.05 * calls
  const ms = (value: number) => value.toFixed(1).padStart(8)
  print(
    `${path.padEnd(62)} one ${ms(once.p50Ms)} ms  p50 ${ms(p50Ms)}  p99 ${ms(p99Ms)} ms ` +
      `${String(calls).padStart(6)} calls ${failed > 0 ? `${failed} FAILED ` : ''}${within ? 'held' : 'SLOW'}`,
  )
}

for (const accept of ['application/x-ndjson', 'text/csv']) {
  if (options.only && !options.only.includes('export')) continue
  const before = await broker.residentMib()
  const startedAt = performance.now()
  let bytes = 0
  let lines = 0
  await new Promise<void>((resolve, reject) => {
    http.get({ port: broker.port, path: '/flows', headers: { accept } }, (answer) => {
      answer.on('data', (part: Buffer) => {
        bytes += part.length
        for (const byte of part) if (byte === 0x0a) lines++
      })
      answer.once('end', resolve).once('error', reject)
    })
  })
  const seconds = (performance.now() - startedAt) / 1_000
  print(
    `export as ${accept}: ${lines} lines, ${Math.round(bytes / 2 ** 20)} MiB, ` +
      `${Math.round(lines / seconds)} a second, ${Math.round((await broker.peakMib()) - before)} MiB more at the most`,
  )
}
await broker.stop()
await stop()
process.exit(0)
