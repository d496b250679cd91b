/**
 * `npm run bench`: every path that has a number to hold, printed beside it. Client, broker and PostgreSQL share the machine;
 * compare within one run, and with the first row: the numbers to hold were taken where it was 78 000/s. Options: `--seconds 4` a phase, `--only name,name`.
 */
import { parseArgs } from 'node:util'
import { flowBatch, podAddress, podName, podSpec, singleFlow, syscalls } from './bodies.ts'
import { startBare, startBroker } from './broker.ts'
import { get, type Measured, post, run } from './client.ts'

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '4' }, only: { type: 'string' } },
})
const FOR_MS = Number(options.seconds) * 1_000
const PODS = 5_000
const GROWN_PODS = 50_000
/** Thirty flows a pod. */
const FLOWS_PER_POD = 30
const BATCH = 100

const broker = await startBroker()
const { port } = broker
const print = (line: string) => process.stdout.write(`${line}\n`)
const only = options.only?.split(',')
let flows = 0
/** A moment at which every pod ran. */
const AT = new Date(Date.now() - 3_600_000).toISOString().slice(0, 19)

/** Sends everything, untimed. */
const send = (total: number, request: (i: number) => Buffer) =>
  run({ port, connections: 16, forMs: 600_000, request: (i) => (i < total ? request(i) : null) })

async function phase(
  name: string,
  target: string,
  connections: number,
  perCall: number,
  request: (i: number) => Buffer | null,
): Promise<number> {
  if (only && !only.some((word) => name.includes(word))) return 0
  const measured = await run({ port, connections, forMs: FOR_MS, request })
  const rate = (measured.calls * perCall) / measured.seconds
  print(
    row(
      name,
      connections,
      Math.round(rate).toLocaleString('en').replaceAll(',', ' '),
      target,
      measured,
      await broker.peakMib(),
    ),
  )
  return rate
}

async function single(name: string, targetMs: number, request: (i: number) => Buffer): Promise<void> {
  if (only && !only.some((word) => name.includes(word))) return
  const measured = await run({ port, connections: 1, forMs: FOR_MS / 2, request })
  print(row(name, 1, `p50 ${measured.p50Ms.toFixed(2)} ms`, `${targetMs} ms`, measured, await broker.peakMib()))
}

function row(
  name: string,
  connections: number,
  figure: string,
  target: string,
  { p50Ms, p99Ms, failed }: Measured,
  peakMib: number,
): string {
  const cells = [
    name.padEnd(44),
    String(connections).padStart(3),
    figure.padStart(14),
    target.padStart(12),
    p50Ms.toFixed(2).padStart(8),
    p99Ms.toFixed(2).padStart(8),
    String(failed).padStart(6),
    peakMib.toFixed(0).padStart(8),
  ]
  return `| ${cells.join(' | ')} |`
}

/** What the machine gives today: a route that does nothing, on the same HTTP stack and in its own process. */
async function reference(): Promise<void> {
  const bare = await startBare()
  await run({ port: bare.port, connections: 64, forMs: FOR_MS / 4, request: () => get('/bare') })
  const measured = await run({ port: bare.port, connections: 64, forMs: FOR_MS, request: () => get('/bare') })
  print(
    row(
      '(a route that does nothing)',
      64,
      Math.round(measured.calls / measured.seconds)
        .toLocaleString('en')
        .replaceAll(',', ' '),
      '78 000 then',
      measured,
      0,
    ),
  )
  bare.stop()
}

/** Batches of flows never sent before, rendered before the clock starts. */
function newBatches(count: number, pods: number): Buffer[] {
  const first = flows / BATCH
  flows += count * BATCH
  return Array.from({ length: count }, (_, b) => post('/pod/traffic/batch', flowBatch(first + b, pods)))
}

async function reads(label: string, pods: number): Promise<Record<string, number>> {
  const pick = (i: number) => (i * 7_919) % pods
  const byPod = Math.floor(flows / FLOWS_PER_POD)
  const rates: Record<string, number> = {}
  rates.ip = await phase(`GET /pod/ip/{ip}, ${label}`, '20 000/s', 64, 1, (i) => get(`/pod/ip/${podAddress(pick(i))}`))
  rates.at = await phase(`GET /pod/ip/{ip}?at=, ${label}`, '20 000/s', 64, 1, (i) =>
    get(`/pod/ip/${podAddress(pick(i))}?at=${AT}`),
  )
  rates.name = await phase(`GET /pod/name/{name}, ${label}`, '25 000/s', 64, 1, (i) =>
    get(`/pod/name/${podName(pick(i))}`),
  )
  rates.list = await phase(`GET /pod/traffic?limit=5000, ${label}`, '90/s', 8, 1, () => get('/pod/traffic?limit=5000'))
  rates.byPod = await phase(`GET /pod/traffic/{name}, ~30 rows, ${label}`, '6 000/s', 8, 1, (i) =>
    get(`/pod/traffic/${podName((i * 7_919) % Math.min(byPod, pods))}`),
  )
  return rates
}

print(
  `Node ${process.version}, ${process.platform}, ${FOR_MS / 1_000} s a phase, ${new Date().toISOString().slice(0, 10)}`,
)
print(`| ${'path'.padEnd(44)} |   c |         figure |         hold |   p50 ms |   p99 ms | failed | peak MiB |`)
print(`|${'-'.repeat(46)}|----:|---------------:|-------------:|---------:|---------:|-------:|---------:|`)

await reference()

const specs = Array.from({ length: PODS }, (_, i) => post('/pod/spec', podSpec(i)))
await send(PODS, (i) => specs[i]!)
await phase('POST /pod/spec repeated', '15 000/s', 64, 1, (i) => specs[i % PODS]!)

const fresh = newBatches((PODS * FLOWS_PER_POD) / BATCH, PODS)
await send(100, (i) => fresh[i]!)
await phase('POST /pod/traffic/batch, all new', '50 000/s', 8, BATCH, (i) => fresh[i + 100] ?? null)
await send(fresh.length, (i) => fresh[i]!)
const known = fresh.slice(-600)
await send(known.length, (i) => known[i]!)
await phase('POST /pod/traffic/batch, all repeats', '400 000/s', 8, BATCH, (i) => known[i % known.length]!)
const singles = Array.from({ length: 100_000 }, (_, i) => post('/pod/traffic', singleFlow(5_000_000 + i, PODS)))
await phase('POST /pod/traffic, all new', '10 000/s', 64, 1, (i) => singles[i] ?? null)

const calls = Array.from({ length: PODS }, (_, i) => post('/pod/syscalls', syscalls(i)))
await send(PODS, (i) => calls[i]!)
await phase('POST /pod/syscalls repeated', '15 000/s', 64, 1, (i) => calls[i % PODS]!)
const later = (i: number) => new Date(Date.now() + i).toISOString().slice(0, -1)
await phase('POST /pod/syscalls, nothing but newer', '', 64, 1, (i) =>
  post('/pod/syscalls', syscalls(i % PODS, later(i))),
)

const small = await reads(`${PODS / 1_000}k pods`, PODS)
await single('GET /pod/ip/{ip}, one client', 0.2, (i) => get(`/pod/ip/${podAddress((i * 7_919) % PODS)}`))
await single('GET /pod/name/{name}, one client', 0.15, (i) => get(`/pod/name/${podName((i * 7_919) % PODS)}`))
await single('GET /pod/traffic/{name}, one client', 0.2, (i) => get(`/pod/traffic/${podName((i * 7_919) % PODS)}`))
await single('GET /pod/traffic?limit=5000, one client', 15, () => get('/pod/traffic?limit=5000'))

await send(GROWN_PODS - PODS, (i) => post('/pod/spec', podSpec(PODS + i)))
for (let sent = 0; sent < 13_500; sent += 1_500) {
  const batches = newBatches(1_500, GROWN_PODS)
  await send(batches.length, (i) => batches[i]!)
}
const grown = await reads(`${GROWN_PODS / 1_000}k pods`, GROWN_PODS)
for (const [name, rate] of Object.entries(grown)) {
  if (small[name])
    print(`ten times the rows: ${name.padEnd(6)} at ${(rate / small[name]).toFixed(2)} of its rate (hold 0.9)`)
}
print(`resident memory of the broker: ${Math.round(await broker.peakMib())} MiB at its peak (hold 300 MiB)`)
await broker.stop()
