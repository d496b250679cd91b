/**
 * `npm run bench:soak`: mixed traffic of agents and readers at a steady rate, by default 1 000 requests/s for 30 minutes. Requests
 * leave when they are due, whether or not the ones before were answered, and their time counts from then. Prints a line a
 * minute. Options: `--minutes 30`, `--rate 1000`.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { flowBatch, podAddress, podName, podSpec, singleFlow, syscalls } from './bodies.ts'
import { startBroker } from './broker.ts'
import { get, openLoop, post, run } from './client.ts'

const { values: options } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, rate: { type: 'string', default: '1000' } },
})
const MINUTES = Number(options.minutes)
const RATE = Number(options.rate)
const PODS = 5_000
const CONNECTIONS = 64
const HOLD_MS = 50
/** After this the process has seen everything there is to see, and its memory is to stay where it is. */
const SETTLED_MINUTES = Math.min(10, MINUTES / 3)

const broker = await startBroker()
const { port } = broker
const print = (line: string) => process.stdout.write(`${line}\n`)

const specs = Array.from({ length: PODS }, (_, i) => podSpec(i))
const calls = Array.from({ length: PODS }, (_, i) => post('/pod/syscalls', syscalls(i)))
await run({ port, connections: 16, forMs: 600_000, request: (i) => (i < PODS ? post('/pod/spec', specs[i]!) : null) })

/** Some flows of every pod, so that whoever asks for them finds some. */
const SEED_BATCHES = 1_000
await run({
  port,
  connections: 8,
  forMs: 600_000,
  request: (i) => (i < SEED_BATCHES ? post('/pod/traffic/batch', flowBatch(i, PODS)) : null),
})
await run({ port, connections: 16, forMs: 600_000, request: (i) => calls[i] ?? null })

const now = () => new Date().toISOString().slice(0, -1)
/** A body as it was rendered, with the time at which it leaves. */
const timed = (body: string) => body.replace(/"time_stamp":"[^"]+"/g, `"time_stamp":"${now()}"`)
const pick = (i: number) => (i * 7_919) % PODS
let flows = SEED_BATCHES * 100
/** What was sent lately, to be repeated. */
const recent: string[] = []

/** Of a hundred requests: how many of each. A tenth of the flows that agents report is new. */
const MIX: [share: number, name: string, request: (i: number) => Buffer][] = [
  [
    10,
    'new flow',
    (i) => {
      const body = timed(singleFlow(flows++, PODS))
      recent[i % 1_000] = body
      return post('/pod/traffic', body)
    },
  ],
  [
    30,
    'repeated flow',
    (i) => post('/pod/traffic', recent[(i * 31) % Math.max(1, recent.length)] ?? singleFlow(0, PODS)),
  ],
  [2, 'batch, a tenth new', () => post('/pod/traffic/batch', mixedBatch())],
  [20, 'spec', (i) => post('/pod/spec', timed(specs[pick(i)]!))],
  [8, 'syscalls', (i) => calls[pick(i)]!],
  [10, 'by address', (i) => get(`/pod/ip/${podAddress(pick(i))}`)],
  [9, 'by name', (i) => get(`/pod/name/${podName(pick(i))}`)],
  [10, 'flows of a pod', (i) => get(`/pod/traffic/${podName(pick(i))}`)],
  [0.5, 'newest 100', () => get('/pod/traffic?limit=100')],
  [0.4, 'pods of a node', (i) => get(`/pod/list/node-${i % 50}`)],
  [0.08, 'metrics', () => get('/metrics')],
  // A page that polls every minute, open in a dozen browsers.
  [0.02, 'live pods, nodes', (i) => get(i % 2 === 0 ? '/pod/info?include_dead=false' : '/node/status')],
]

const FIRST_BATCH = 100_000
let batches = FIRST_BATCH
function mixedBatch(): string {
  const known = JSON.parse(flowBatch(batches % 100, PODS)) as object[]
  const fresh = JSON.parse(timed(flowBatch(batches++, PODS))) as object[]
  return JSON.stringify([...fresh.slice(0, 10), ...known.slice(10)])
}

/** Spread evenly: every request of a cycle of ten thousand has its place. */
const cycle: ((i: number) => Buffer)[] = []
for (const [share, , request] of MIX) for (let n = 0; n < Math.round(share * 100); n++) cycle.push(request)
const order = cycle.map((_, i) => (i * 6_173) % cycle.length)

print(
  `Node ${process.version}, ${process.platform}, ${RATE} requests/s for ${MINUTES} min, ${new Date().toISOString().slice(0, 10)}`,
)
print(MIX.map(([share, name]) => `${share} % ${name}`).join(', '))
print('| minute | sent | failed |  p50 ms |  p99 ms |  max ms | resident MiB | stolen % |')
print('|-------:|-----:|-------:|--------:|--------:|--------:|-------------:|---------:|')

/** Processor time in ticks, in all and what the hypervisor gave to other machines; nothing where the system does not tell. */
function ticks(): { all: number; stolen: number } | null {
  try {
    const [, ...times] = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/).map(Number)
    return { all: times.slice(0, 8).reduce((sum, one) => sum + one, 0), stolen: times[7]! }
  } catch {
    return null
  }
}
let before = ticks()
/** Of the time since it was last asked, in percent: a minute that was taken from us says nothing of the broker. */
function stolenShare(): string {
  const [from, to] = [before, ticks()]
  before = to
  return (from && to ? ((100 * (to.stolen - from.stolen)) / (to.all - from.all)).toFixed(1) : '?').padStart(8)
}

const resident: number[] = []
const p99s: number[] = []
let failed = 0
let late = 0
let sent = 0
for (let minute = 1; minute <= MINUTES; minute++) {
  const measured = await openLoop({
    ports: [port],
    connections: CONNECTIONS,
    forMs: 60_000,
    ratePerSecond: RATE,
    request: (i) => cycle[order[(sent + i) % order.length]!]!(sent + i),
  })
  sent += measured.calls
  failed += measured.failed
  late += measured.slowerThan(HOLD_MS)
  resident.push(await broker.residentMib())
  const stolen = stolenShare()
  p99s.push(measured.p99Ms)
  const figures = [measured.p50Ms, measured.p99Ms, measured.maxMs].map((ms) => ms.toFixed(2).padStart(7)).join(' | ')
  print(
    `| ${String(minute).padStart(6)} | ${measured.calls} | ${String(measured.failed).padStart(6)} | ${figures} | ${resident.at(-1)!.toFixed(0).padStart(12)} | ${stolen} |`,
  )
}
const settled = resident.slice(SETTLED_MINUTES)
const half = settled.length >> 1
const quantile = (values: number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.round(q * (values.length - 1))]!.toFixed(1)
const mean = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / values.length
print(
  `resident after minute ${SETTLED_MINUTES}: ${mean(settled.slice(0, half)).toFixed(0)} MiB in the first half, ${mean(settled.slice(half)).toFixed(0)} MiB in the second (hold: flat)`,
)
print(
  `over ${HOLD_MS} ms: ${((100 * late) / sent).toFixed(2)} % of all (hold 1); p99 of a minute: ${quantile(p99s, 0.5)} ms in the middle, ${quantile(p99s, 1)} at worst; failed: ${failed} of ${sent} (hold 0)`,
)
const tables = await broker.tables()
for (const { name, rows, size } of tables) print(`${name}: ${rows} rows, ${size}`)
print(`flows sent anew: ${flows + (batches - FIRST_BATCH) * 10}`)
await broker.stop()
