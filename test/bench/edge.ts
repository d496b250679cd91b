/**
 * `npm run bench:edge`: what a small look-up costs in processor time through the edge proxy beside straight to the broker, in turn, with 8
 * connections. Options: `--seconds 6` a phase, `--rounds 5`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { podAddress, podName, podSpec } from './bodies.ts'
import { startBroker } from './broker.ts'
import { get, post, read, run } from './client.ts'

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '6' }, rounds: { type: 'string', default: '5' } },
})
const FOR_MS = Number(options.seconds) * 1_000
const ROUNDS = Number(options.rounds)
const CONNECTIONS = 8
const PODS = 5_000
const HOLD_US = 150
const US_PER_SECOND = 1e6
const INGEST = 'an-ingest-token-for-the-benchmark'
const READ = 'a-read-token-for-the-benchmark'
const print = (line: string) => process.stdout.write(`${line}\n`)

/** The built proxy as its own process, as it is started in production. */
async function startEdge(brokerPort: number) {
  const env = {
    ...process.env,
    LISTEN_ADDR: '127.0.0.1:0',
    ADMIN_ADDR: '127.0.0.1:0',
    BROKER_URL: `http://127.0.0.1:${brokerPort}`,
    BROKER_TOKEN_READ: READ,
  }
  const args = ['--v8-pool-size=1', 'dist/wrangler-free-deploy/edge/server.js']
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  process.once('exit', () => child.kill('SIGKILL'))
  const { edge, admin } = await new Promise<{ edge: string; admin: string }>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the edge proxy ended with ${code}`)))
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => {
      if (!line.includes('"listening"')) return
      resolve(JSON.parse(line))
      // From here on the log is read, not looked at.
      lines.close()
      child.stdout.resume()
    })
  })
  const portOf = (url: string) => Number(new URL(url).port)
  return {
    port: portOf(edge),
    admin: portOf(admin),
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

const broker = await startBroker({ BROKER_TOKEN_READ: READ, BROKER_TOKEN_INGEST: INGEST })
const edge = await startEdge(broker.port)

const authorized = (bytes: Buffer, token: string) =>
  Buffer.from(bytes.toString().replace('host: broker\r\n', `host: broker\r\nauthorization: Bearer ${token}\r\n`))
await run({
  port: broker.port,
  connections: 16,
  forMs: 60_000,
  request: (i) => (i < PODS ? authorized(post('/pod/spec', podSpec(i)), INGEST) : null),
})

async function cpuSeconds(port: number): Promise<number> {
  return Number(/^process_cpu_seconds_total (\S+)$/m.exec(await read(port, '/metrics'))?.[1])
}

const byName = (i: number) => get(`/pod/name/${podName(i % PODS)}`)
const byAddress = (i: number) => get(`/pod/ip/${podAddress(i % PODS)}`)

interface Phase {
  /** Microseconds of processor a request. */
  brokerUs: number
  edgeUs: number
  rate: number
  p50Ms: number
}

async function phase(port: number, request: (i: number) => Buffer): Promise<Phase> {
  const before = [await cpuSeconds(broker.port), await cpuSeconds(edge.admin)]
  const { calls, failed, seconds, p50Ms } = await run({ port, connections: CONNECTIONS, forMs: FOR_MS, request })
  const after = [await cpuSeconds(broker.port), await cpuSeconds(edge.admin)]
  if (failed > 0) throw new Error(`${failed} of ${calls} look-ups failed`)
  const us = (which: 0 | 1) => ((after[which]! - before[which]!) * US_PER_SECOND) / calls
  return { brokerUs: us(0), edgeUs: us(1), rate: calls / seconds, p50Ms }
}

const median = (numbers: number[]) => numbers.sort((a, b) => a - b)[numbers.length >> 1]!
const shown = ({ rate, p50Ms }: Phase) => `${Math.round(rate)}/s, p50 ${p50Ms.toFixed(2)} ms`

print(
  `Node ${process.version}, ${process.platform}, ${CONNECTIONS} connections, ${FOR_MS / 1_000} s a phase, ${new Date().toISOString().slice(0, 10)}`,
)
for (const [name, request] of [
  ['GET /pod/name/{name}', byName],
  ['GET /pod/ip/{ip}', byAddress],
] as const) {
  const direct = (i: number) => authorized(request(i), READ)
  await phase(edge.port, request)
  await phase(broker.port, direct)
  const pairs: { broker: number; edge: number; onTop: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const straight = await phase(broker.port, direct)
    const through = await phase(edge.port, request)
    const onTop = through.edgeUs + through.brokerUs - straight.brokerUs
    pairs.push({ broker: straight.brokerUs, edge: through.edgeUs, onTop })
    print(
      `${name}: broker ${straight.brokerUs.toFixed(0)} us (${shown(straight)}); through the edge ${through.brokerUs.toFixed(0)} us + ` +
        `${through.edgeUs.toFixed(0)} us of the edge (${shown(through)})`,
    )
  }
  const of = (key: keyof (typeof pairs)[number]) => median(pairs.map((pair) => pair[key]))
  print(
    `${name}: the edge takes ${of('edge').toFixed(0)} us of processor a request (hold ${HOLD_US}) beside ${of('broker').toFixed(0)} of the broker, ` +
      `${of('onTop').toFixed(0)} with what it makes the broker take more`,
  )
  // On a machine that others use, too, processor time counts what they take from caches.
  const quietest = pairs.reduce((one, other) => (other.edge + other.broker < one.edge + one.broker ? other : one))
  print(
    `${name}: in the quietest round ${quietest.edge.toFixed(0)} us beside ${quietest.broker.toFixed(0)} of the broker`,
  )
}
await edge.stop()
await broker.stop()
