/** ctb reaches a broker in a cluster through kubectl, and leaves none of it running. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { forwarded } from '../../wrangler-free-deploy/cli/connection/forward.ts'
import type { CliContext } from '../../wrangler-free-deploy/cli/context.ts'
import { type StubAnswer, startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'
import { inProcess } from './in-process.ts'
import { isRunning, standIn } from './kubectl.ts'
import { ctbOf, fileOf, PROGRAM, pathOf, TOKEN } from './support.ts'

const MADE: StubAnswer = { text: 'kind: NetworkPolicy\n', headers: { 'content-type': 'application/yaml' } }
const WORDS = ['policy', 'generate', 'shop/Deployment/api']
const SELECTOR =
  'app.kubernetes.io/name=cluster-telemetry-broker,app.kubernetes.io/component=broker,cluster-telemetry-broker/port!=metrics'
const LISTING = 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\\n"}{end}'

let answers: StubAnswer[] = []
const stub = await startStub(() => answers.shift() ?? MADE)
const ctb = inProcess('')
const gone = (pid: number) => until('kubectl has ended', () => !isRunning(pid), 10_000)

test('the Service is found by its labels, forwarded, asked with the token, and the forward ends', async () => {
  const kubectl = standIn(stub.url)
  stub.heard.length = 0
  const done = await ctbOf('')([...WORDS, '--context', 'prod', '--kubeconfig', 'some/config'], { env: kubectl.env })
  assert.deepEqual(done, { code: 0, out: MADE.text, err: '' })
  assert.equal(stub.heard[0]!.headers.authorization, `Bearer ${TOKEN}`)
  const [listed, forwarded, ...more] = kubectl.started()
  const cluster = ['--context=prod', '--kubeconfig=some/config']
  assert.deepEqual(listed!.words, [
    ...[...cluster, 'get', 'services', '--all-namespaces'],
    ...[`--selector=${SELECTOR}`, `--output=${LISTING}`],
  ])
  assert.deepEqual(forwarded!.words, [
    ...[...cluster, 'port-forward', '--namespace=telemetry', '--address=127.0.0.1'],
    ...['service/telemetry-broker', ':9090'],
  ])
  assert.deepEqual(more, [])
  for (const { env } of [listed!, forwarded!]) assert.ok(!JSON.stringify(env).includes(TOKEN))
  await gone(forwarded!.pid)
})

test('a named Service is not searched; a namespace alone is', async () => {
  const named = standIn(stub.url)
  const words = ['--broker-namespace', 'here', '--broker-service', 'mine']
  assert.equal((await ctb([...WORDS, ...words], { env: named.env })).code, 0)
  assert.deepEqual(
    named.started().map((one) => one.words),
    [['port-forward', '--namespace=here', '--address=127.0.0.1', 'service/mine', ':9090']],
  )
  const within = standIn(stub.url)
  assert.equal((await ctb([...WORDS, '--broker-namespace', 'telemetry'], { env: within.env })).code, 0)
  assert.deepEqual(within.started()[0]!.words.slice(0, 3), ['get', 'services', '--namespace=telemetry'])
})

test('several brokers are a question back, none is not reachable', async () => {
  const several = standIn(stub.url, { services: 'a one\nb two\n' })
  assert.deepEqual(await ctb([...WORDS, '--context', 'x'], { env: several.env }), {
    ...{ code: 2, out: '' },
    err:
      'the cluster has 2 brokers; expected the flags of one:\n' +
      '  --broker-namespace a --broker-service one\n  --broker-namespace b --broker-service two\n',
  })
  const none = await ctb([...WORDS, '--broker-namespace', 'empty'], { env: standIn(stub.url, { services: '' }).env })
  assert.deepEqual([none.code, none.out], [6, ''])
  assert.match(none.err, /^no Service has the labels of the broker in namespace empty: /)
})

test('kubectl says in its words what it cannot do, as text', async () => {
  const fault =
    'E1127 08:02:55.811608    3317 memcache.go:265] "Unhandled Error" err="connection refused"\n' +
    'E1127 08:02:55.811608    3317 other.go:1] "Other"\n' +
    'The connection to the server \u001b]8;;https://evil.test\u0007127.0.0.1:1 was refused\u202e\n'
  const listed = await ctb([...WORDS, '--context', 'x'], { env: standIn(stub.url, { fault }).env })
  assert.deepEqual([listed.code, listed.out], [6, ''])
  assert.match(
    listed.err,
    /^kubectl: "Other"\nkubectl: The connection to the server .*127\.0\.0\.1:1 was refused *\nkubectl cannot list the Services of the broker; .*\n$/,
  )
  assert.doesNotMatch(listed.err, /[^\P{C}\n]/u)
  const words = [...WORDS, '--broker-service', 'x']
  const forwarded = await ctb(words, { env: standIn(stub.url, { fault: 'error: no pods\n' }).env })
  assert.deepEqual(forwarded, {
    ...{ code: 6, out: '', err: 'kubectl: error: no pods\nkubectl cannot forward a port to service/x\n' },
  })
})

test('without kubectl ctb says what to install', async () => {
  const { code, err } = await ctb([...WORDS, '--context', 'x'], { env: { PATH: pathOf('nowhere'), CTB_SERVER: '' } })
  assert.equal(code, 6)
  assert.match(err, /^kubectl cannot be started: it was not found in PATH\. Install it \(https:\/\/kubernetes\.io\//)
})

test('an address and a cluster exclude each other; a flag is stronger than CTB_SERVER', async () => {
  const { env, started } = standIn(stub.url)
  for (const flag of ['--context', '--kubeconfig', '--broker-namespace', '--broker-service']) {
    const both = await ctb([...WORDS, '--server', stub.url, flag, 'x'], { env })
    assert.deepEqual(both, {
      ...{ code: 2, out: '', err: 'expected --server, or --context and the other flags of a cluster\n' },
    })
  }
  assert.deepEqual(started(), [])
  assert.equal((await ctb([...WORDS, '--context', 'x'], { env: { ...env, CTB_SERVER: 'http://127.0.0.1:1' } })).code, 0)
  assert.equal(started().length, 2)
})

test('a plugin of kubectl asks in the current context, unless an address is given', async () => {
  const plugin = standIn(stub.url)
  assert.equal((await ctb(WORDS, { env: plugin.env, isPlugin: true })).code, 0)
  assert.deepEqual(
    plugin.started().map(({ words }) => words[0]),
    ['get', 'port-forward'],
  )
  const named = standIn(stub.url)
  assert.equal((await ctb(WORDS, { env: { ...named.env, CTB_SERVER: stub.url }, isPlugin: true })).code, 0)
  assert.equal((await ctb([...WORDS, '--server', stub.url], { env: named.env, isPlugin: true })).code, 0)
  assert.deepEqual(named.started(), [])
})

test('a request that is printed starts nothing', async () => {
  const { env, started } = standIn(stub.url)
  const { code, out, err } = await ctb(['images', '--context', 'x', '--print-request'], { env })
  assert.deepEqual([code, started()], [0, []])
  assert.match(out, / 'http:\/\/127\.0\.0\.1:9090\/images\?limit=\d+'\n$/)
  assert.equal(err, 'the request needs a port that leads to the broker: kubectl port-forward service/NAME 9090\n')
})

test('a forward that ended is started again for the next request', async (t) => {
  const { env, started } = standIn(stub.url)
  const context = { env, say: () => {}, onEnd: (stop: () => void) => t.after(stop) } as unknown as CliContext
  const first = await forwarded(context, {})
  assert.equal(await forwarded(context, {}), first)
  process.kill(started().at(-1)!.pid)
  const next = await until('it is noticed', async () => {
    const url = await forwarded(context, {})
    return url !== first && url
  })
  assert.equal((await fetch(next)).status, 200)
})

/** ctb, which waits for an answer that never comes. */
async function waiting(words: readonly string[] = WORDS) {
  answers = ['hang']
  stub.heard.length = 0
  const { env, started } = standIn(stub.url)
  const child = spawn(process.execPath, [...PROGRAM, ...words, '--context', 'x'], {
    env: { ...env, CTB_TOKEN: TOKEN },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await until('the broker is asked', () => stub.heard.length > 0)
  return { child, closed: once(child, 'exit'), pid: started().at(-1)!.pid }
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)
  test(`${signal} ends the forward`, async () => {
    const { child, closed, pid } = await waiting()
    assert.ok(isRunning(pid))
    child.kill(signal)
    assert.deepEqual(await closed, [code, null])
    await gone(pid)
  })

test('a reader that has enough ends the forward', async () => {
  const { env, started } = standIn(stub.url)
  answers = [{ text: '# long\n'.repeat(100_000), headers: { 'content-type': 'application/yaml' } }]
  const child = spawn(process.execPath, [...PROGRAM, ...WORDS, '--context', 'x'], {
    env: { ...env, CTB_TOKEN: TOKEN },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const closed = once(child, 'exit')
  child.stdout.destroy()
  await closed
  await gone(started().at(-1)!.pid)
})

test('a failure ends the forward', async () => {
  const { env, started } = standIn(stub.url)
  answers = [{ status: 404, text: 'No data found', headers: { 'content-type': 'text/plain' } }]
  const { code, err } = await ctbOf('')([...WORDS, '--context', 'x'], { env })
  assert.deepEqual([code, err], [3, 'No data found\n'])
  await gone(started().at(-1)!.pid)
})

test('an uncaught fault ends the forward, and shows no token', async () => {
  const { env, started } = standIn(stub.url)
  const fault = fileOf(
    'fault.cjs',
    `const http = require('node:http')
     const { request } = http
     http.request = (...args) => {
       setImmediate(() => { throw new Error('of a test') })
       return request(...args)
     }`,
  )
  answers = ['hang']
  const words = [...WORDS, '--context', 'x']
  const { code, out, err } = await ctbOf('')(words, { env: { ...env, NODE_OPTIONS: `--require ${fault}` } })
  answers = []
  assert.deepEqual([code, out], [70, ''])
  assert.match(err, /^Error: of a test\n {4}at /)
  assert.ok(!err.includes(TOKEN))
  await gone(started().at(-1)!.pid)
})

const noKubectl = spawnSync('kubectl', ['version', '--client']).status === 0 ? false : 'needs kubectl'

const kubeconfigOf = (server: string) =>
  fileOf(
    'kubeconfig.yaml',
    `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "${server}"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`,
  )
// kubectl keeps what it learned of a cluster at home.
const real = { PATH: process.env.PATH, HOME: pathOf('home'), CTB_SERVER: '' }

test('kubectl itself takes the arguments', { skip: noKubectl }, async () => {
  // Nothing listens on port 1.
  const kubeconfig = kubeconfigOf('http://127.0.0.1:1')
  for (const words of [
    ['--context', 'x'],
    ['--broker-service', 'b'],
    ['--broker-service', 'b', '--broker-namespace', 'n'],
  ]) {
    const { code, out, err } = await ctb([...WORDS, '--kubeconfig', kubeconfig, ...words], { env: real })
    assert.deepEqual([code, out], [6, ''])
    assert.match(err, /^kubectl: The connection to the server 127\.0\.0\.1:1 was refused.*\nkubectl cannot .*\n$/)
  }
  const { code, err } = await ctb([...WORDS, '--kubeconfig', kubeconfig, '--context', 'nope'], { env: real })
  assert.equal(code, 6)
  assert.match(err, /^kubectl: .*context was not found for specified context: nope\n/)
})

test('kubectl itself lists the Services by the labels', { skip: noKubectl }, async () => {
  const service = (namespace: string, name: string) => ({
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name } },
    spec: { ports: [{ port: 9090 }], selector: { app: name } },
  })
  let services = [service('a', 'one'), service('b', 'two')]
  const verbs = ['get', 'list']
  const answered: Readonly<Record<string, () => unknown>> = {
    '/api': () => ({ kind: 'APIVersions', versions: ['v1'] }),
    '/apis': () => ({ kind: 'APIGroupList', apiVersion: 'v1', groups: [] }),
    '/api/v1': () => ({
      ...{ kind: 'APIResourceList', groupVersion: 'v1' },
      resources: [{ name: 'services', singularName: 'service', namespaced: true, kind: 'Service', verbs }],
    }),
    '/api/v1/services': () => ({ kind: 'ServiceList', apiVersion: 'v1', metadata: {}, items: services }),
  }
  const api = await startStub(({ path }) => {
    const json = answered[path]?.()
    return json === undefined ? { status: 404, json: { kind: 'Status', message: 'none', code: 404 } } : { json }
  })
  const words = [...WORDS, '--kubeconfig', kubeconfigOf(api.url)]
  const several = await ctb(words, { env: real })
  assert.equal(several.code, 2, several.err)
  assert.match(several.err, /brokers; .*\n {2}--broker-namespace a --broker-service one\n {2}--broker-namespace b /)
  const listed = api.heard.find(({ path }) => path === '/api/v1/services')!
  assert.equal(listed.query.labelSelector, SELECTOR)
  services = [service('a', 'one')]
  const only = await ctb(words, { env: real })
  assert.equal(only.code, 6)
  assert.match(only.err, /\nkubectl cannot forward a port to service\/one in namespace a\n$/)
  assert.ok(api.heard.some(({ path }) => path === '/api/v1/namespaces/a/services/one'))
})

test('the labels and the port are those of the chart', () => {
  const chart = (path: string) =>
    readFileSync(new URL(`../../wrangler-free-deploy/chart/${path}`, import.meta.url), 'utf8')
  assert.match(chart('Chart.yaml'), /^name: cluster-telemetry-broker$/m)
  assert.match(chart('templates/_names.tpl'), /^app\.kubernetes\.io\/name: \{\{ \$root\.Chart\.Name \}\}$/m)
  assert.match(chart('templates/_names.tpl'), /^app\.kubernetes\.io\/component: \{\{ index \. 1 \}\}$/m)
  assert.match(chart('templates/broker/service.yaml'), /"telemetry-broker\.labels" \(list \$ "broker"\)/)
  assert.match(chart('templates/broker/service.yaml'), /^ {6}port: 9090$/m)
  assert.match(chart('templates/monitoring/services.yaml'), /^ {4}cluster-telemetry-broker\/port: metrics$/m)
})

test('as a plugin of kubectl its usage has the words of the plugin', async () => {
  const { out } = await ctb(['images', '--help'], { isPlugin: true })
  assert.match(out, /^USAGE\n {2}kubectl telemetry-broker images \[flags\]\n/)
})
