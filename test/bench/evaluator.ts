/**
 * `npm run bench:evaluator`: new flows a second with an evaluator that takes 500 ms for each, beside those without one, in turn.
 * Options: `--seconds 10` a phase.
 */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { flowBatch, podSpec } from './bodies.ts'
import { type Bench, startBroker } from './broker.ts'
import { post, read, run } from './client.ts'

const { values: options } = parseArgs({ options: { seconds: { type: 'string', default: '10' } } })
const FOR_MS = Number(options.seconds) * 1_000
const ROUNDS = 3
const EVALUATION_MS = 500
const PODS = 5_000
const print = (line: string) => process.stdout.write(`${line}\n`)

let evaluated = 0
const evaluator = http.createServer((incoming, outgoing) => {
  incoming.resume().on('end', () => {
    setTimeout(() => {
      evaluated++
      outgoing.setHeader('content-type', 'application/json')
      outgoing.end('{"results":[{"policyNamespace":"shop","policyName":"web","direction":"Egress","verdict":"Allow"}]}')
    }, EVALUATION_MS)
  })
})
await new Promise<void>((resolve) => evaluator.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(evaluator.address() as AddressInfo).port}`

const without = await startBroker()
const slow = await startBroker({ EVALUATOR_URL: url, AUDIT_EVAL_TIMEOUT_MS: '5000' })

/** Batches that each broker was sent. */
const sent = new Map<Bench, number>()

async function ingest(broker: Bench): Promise<number> {
  const first = sent.get(broker) ?? 0
  let next = first
  const { calls, seconds, failed } = await run({
    port: broker.port,
    connections: 8,
    forMs: FOR_MS,
    request: (i) => {
      next = first + i + 1
      return post('/pod/traffic/batch', flowBatch(first + i, PODS))
    },
  })
  sent.set(broker, next)
  if (failed > 0) throw new Error(`${failed} batches failed`)
  return (calls * 100) / seconds
}

async function metric({ port }: Bench, name: string): Promise<number> {
  const text = await read(port, '/metrics')
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

print(
  `Node ${process.version}, ${process.platform}, ${FOR_MS / 1_000} s a phase, ${new Date().toISOString().slice(0, 10)}`,
)
for (const broker of [without, slow]) {
  await run({
    port: broker.port,
    connections: 16,
    forMs: 60_000,
    request: (i) => (i < PODS ? post('/pod/spec', podSpec(i)) : null),
  })
  await ingest(broker)
}
const rates: [number, number][] = []
for (let round = 0; round < ROUNDS; round++) {
  const pair: [number, number] = [await ingest(without), await ingest(slow)]
  rates.push(pair)
  print(
    `new flows a second: ${Math.round(pair[0])} without, ${Math.round(pair[1])} with an evaluator of ${EVALUATION_MS} ms`,
  )
}
const median = rates.map(([a, b]) => b / a).sort((a, b) => a - b)[ROUNDS >> 1]!
print(`share of the rate: ${median.toFixed(2)} (hold 0.9)`)
print(
  `evaluated: ${evaluated}, shed and counted: ${await metric(slow, 'broker_audit_dropped_total')}, waiting: ${await metric(slow, 'broker_audit_queue_length')}`,
)
print(`inserted flows: ${await metric(slow, 'broker_traffic_flows_total\\{outcome="inserted"\\}')}`)
print(`resident memory with the evaluator: ${Math.round(await slow.peakMib())} MiB at its peak (hold 300 MiB)`)
await without.stop()
await slow.stop()
evaluator.close()
evaluator.closeAllConnections()
