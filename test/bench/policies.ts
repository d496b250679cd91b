/**
 * `npm run bench:policies`: network policies made from, and tried on, 10 million flows over 40 000 edges of 2 000
 * workloads, beside the numbers to hold. Options: `--flows 10000000`, `--times 10`, `--data DIR` to keep the database.
 */
import http from 'node:http'
import { parseArgs } from 'node:util'
import { startBroker } from './broker.ts'
import { startFlows } from './flows-data.ts'

const { values: options } = parseArgs({
  options: {
    ...{ flows: { type: 'string', default: '10000000' }, times: { type: 'string', default: '10' } },
    data: { type: 'string' },
  },
})
const HOLD_POLICY_MS = 300
const HOLD_TRY_MS = 2_000
const HOLD_LOOP_MS = 100
const TRIED = 20
/** Policies of which each rule is left out once. */
const MINIMIZED = 3

const print = (line: string) => process.stdout.write(`${line}\n`)
const { dataDir, stop } = await startFlows(Number(options.flows), options.data)
const broker = await startBroker({ DATA_DIR: dataDir, JOBS: 'external', LOG_LEVEL: 'info' })

interface Answer {
  readonly status: number
  readonly text: string
  readonly ms: number
}

function ask(method: string, path: string, body = ''): Promise<Answer> {
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const headers = body === '' ? {} : { 'content-type': 'application/yaml', 'content-length': Buffer.byteLength(body) }
    const request = http.request({ port: broker.port, method, path, headers, agent: false }, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.once('error', reject).once('end', () => {
        const text = Buffer.concat(parts).toString()
        resolve({ status: answer.statusCode!, text, ms: performance.now() - startedAt })
      })
    })
    request.once('error', reject).end(body)
  })
}

/** The longest time that `/version`, which needs no database, waited while `work` ran. */
async function loopHeldMs(work: () => Promise<void>): Promise<number> {
  let isOver = false
  let longest = 0
  const probe = (async () => {
    while (!isOver) {
      longest = Math.max(longest, (await ask('GET', '/version')).ms)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  await work()
  isOver = true
  await probe
  return longest
}

async function measure(name: string, holdMs: number, requests: () => Promise<Answer>): Promise<string> {
  const times: number[] = []
  let last: Answer | null = null
  const held = await loopHeldMs(async () => {
    for (let i = 0; i < Number(options.times); i++) {
      last = await requests()
      times.push(last.ms)
    }
  })
  times.sort((a, b) => a - b)
  const { status, text } = last!
  const [fastest, slowest] = [times[0]!, times.at(-1)!]
  const isHeld = status === 200 && slowest <= holdMs && held <= HOLD_LOOP_MS
  print(
    `${name.padEnd(48)} ${status} ${String(text.length).padStart(9)} bytes  fastest ${fastest.toFixed(0).padStart(6)}  ` +
      `slowest ${slowest.toFixed(0).padStart(6)} of ${holdMs} ms  loop ${held.toFixed(0)} of ${HOLD_LOOP_MS} ms  ` +
      `${isHeld ? 'held' : 'NOT HELD'}`,
  )
  if (status !== 200) print(text.slice(0, 500))
  return text
}

const query = 'acknowledgePartial=true'
const policies: string[] = []
for (const format of ['kubernetes', 'cilium'])
  for (const workload of ['ns-7/Deployment/app-47', 'ns-0/Deployment/app-0'])
    await measure(`generate ${workload} ${format}`, HOLD_POLICY_MS, () =>
      ask('GET', `/workloads/${workload}/networkpolicy?format=${format}&${query}`),
    )
await measure('generate namespace ns-7', HOLD_TRY_MS, () => ask('GET', `/namespaces/ns-7/networkpolicies?${query}`))
for (let i = 0; i < TRIED; i++)
  policies.push((await ask('GET', `/workloads/ns-${i}/Deployment/app-${i}/networkpolicy?${query}`)).text)
const trial = JSON.parse(
  await measure(`try ${TRIED} policies`, HOLD_TRY_MS, () => ask('POST', '/networkpolicy/try', policies.join('---\n'))),
)
print(JSON.stringify({ ...trial, policies: undefined, deniedEdges: trial.deniedEdges?.length }))
const denials = Array.from(
  { length: TRIED },
  (_, i) => `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: ns-${i}}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`,
)
await measure(`try ${TRIED} default denials`, HOLD_TRY_MS, () =>
  ask('POST', '/networkpolicy/try', denials.join('---\n')),
)
// Pods of a workload differ in this label: what edges cannot tell is read from flows.
for (const namespaces of [1, 40]) {
  const differing = Array.from(
    { length: namespaces },
    (_, i) => `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: differing, namespace: ns-${i + 7}}
spec: {podSelector: {matchLabels: {tier: tier-3}}, policyTypes: [Egress]}
`,
  )
  await measure(`try a label in which pods differ, ${namespaces} namespaces`, HOLD_TRY_MS, () =>
    ask('POST', '/networkpolicy/try', differing.join('---\n')),
  )
}
print(`${Math.round(await broker.peakMib())} MiB at the most`)

interface Rules {
  spec: { ingress?: object[]; egress?: object[] }
}
interface Tried {
  evaluated: number
  denied: number
}
async function denies(namespace: string, ...items: object[]): Promise<Tried> {
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
  return JSON.parse((await ask('POST', `/networkpolicy/try?namespace=${namespace}`, body)).text)
}
for (const namespace of ['ns-7', 'ns-8']) {
  const all = JSON.parse((await ask('GET', `/namespaces/${namespace}/networkpolicies?output=json&${query}`)).text)
  const { evaluated, denied } = await denies(namespace, ...all.items)
  print(`closure of ${namespace}: ${evaluated} edges, ${denied} denied ${denied === 0 ? 'held' : 'NOT HELD'}`)
  let rules = 0
  let needed = 0
  for (const policy of (all.items as Rules[]).slice(1, 1 + MINIMIZED))
    for (const direction of ['ingress', 'egress'] as const)
      for (const [i] of (policy.spec[direction] ?? []).entries()) {
        const fewer = policy.spec[direction]!.toSpliced(i, 1)
        rules++
        const without = { ...policy, spec: { ...policy.spec, [direction]: fewer } }
        if ((await denies(namespace, without)).denied > 0) needed++
      }
  // The data has no resolver, so each policy has the usual rule for one.
  const isHeld = needed === rules - MINIMIZED
  print(`rules of ${MINIMIZED} policies of ${namespace}: ${rules}, ${needed} needed ${isHeld ? 'held' : 'NOT HELD'}`)
}
await broker.stop()
await stop()
process.exit(0)
