/** The command line as a process, in front of the whole app. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { seedShop } from '../support/policy-cluster.ts'
import { program } from '../support/program.ts'
import { type StubAnswer, startStub } from '../support/stub.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
await seedShop(app)
const folder = mkdtempSync(join(tmpdir(), 'ctb-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Answers that come before those of the app. */
const first: StubAnswer[] = []
const server = await startStub(async ({ method, path, query, headers, body }) => {
  const canned = first.shift()
  if (canned !== undefined) return canned
  const url = `${path}?${new URLSearchParams(query)}`
  const sent = Object.fromEntries(
    ['authorization', 'content-type'].flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : [])),
  )
  const { status, text } = await app.request(method, url, { headers: sent, ...(body === '' ? {} : { body }) })
  return { status, text }
})

interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const ENV = { PATH: process.env.PATH, CTB_SERVER: server.url, CTB_TOKEN: TOKENS.BROKER_TOKEN_READ }

function ctb(args: string[], { input = '', env = ENV as NodeJS.ProcessEnv } = {}): Promise<Run> {
  const child = spawn(process.execPath, [...program('wrangler-free-deploy/cli/main.ts'), ...args], { env })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text
  })
  child.stdin.end(input)
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, out, err })))
}

const DENY = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: shop}
spec: {podSelector: {}}
`

test('policies are generated, tried, tightened and tried again', async () => {
  const whole = join(folder, 'shop.yaml')
  const made = await ctb(['policy', 'generate', '-n', 'shop', '--out', whole])
  assert.deepEqual([made.code, made.out, made.err], [0, '', ''])
  const tried = await ctb(['policy', 'try', '-f', whole])
  assert.deepEqual([tried.code, tried.err], [0, ''])
  assert.match(tried.out, /^6 edges: 6 allowed, 0 denied, 0 unknown$/m)
  const tight = join(folder, 'tight.yaml')
  writeFileSync(tight, readFileSync(whole, 'utf8').replace('port: 9090', 'port: 9091'))
  const denied = await ctb(['policy', 'try', '-f', tight])
  assert.equal(denied.code, 1)
  assert.match(
    denied.out,
    /^- monitoring\/StatefulSet\/prometheus -> shop\/Deployment\/api 9090\/TCP {2}1 flows, last new .*\n {4}ingress, shop\/api-deployment spec.ingress\[\d\]: port 9090\/TCP is not among 9091\/TCP$/m,
  )
})

test('one workload, to stdout; what was not observed for long enough is refused with 5', async () => {
  const made = await ctb(['policy', 'generate', 'shop/Deployment/api', '--format', 'cilium'])
  assert.equal(made.code, 0)
  assert.match(made.out, /^kind: CiliumNetworkPolicy$/m)
  const named = await ctb(['policy', 'generate', '-n', 'shop', 'Deployment/api', '--format', 'cilium'])
  assert.equal(named.out, made.out)
  const refused = await ctb(['policy', 'generate', 'shop/Deployment/api', '--min-days', '300'])
  assert.deepEqual([refused.code, refused.out], [5, ''])
  assert.match(refused.err, /^refused: shop\/Deployment\/api: observed since/)
  const taken = await ctb(['policy', 'generate', 'shop/Deployment/api', '--min-days', '300', '--acknowledge-partial'])
  assert.equal(taken.code, 0)
})

test('files and stdin are tried together; JSON is the whole answer; colours only where they are asked for', async () => {
  const file = join(folder, 'deny.yaml')
  writeFileSync(file, DENY)
  const json = JSON.stringify({
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'allow', namespace: 'shop' } },
    spec: { podSelector: {}, ingress: [{}] },
  })
  const tried = await ctb(['policy', 'try', '-f', file, '-f', '-', '-o', 'json'], { input: json })
  assert.equal(tried.code, 0, tried.err)
  assert.deepEqual(
    JSON.parse(tried.out).policies.map(({ name }: { name: string }) => name),
    ['deny', 'allow'],
  )
  const plain = await ctb(['policy', 'try', '-f', file])
  assert.equal(plain.code, 1)
  assert.ok(!plain.out.includes('\u001b'))
  assert.ok((await ctb(['policy', 'try', '-f', file, '--color', 'always'])).out.includes('\u001b[31m- '))
})

test('exit codes: 2 for what is not understood, 3 for what is not there, 4 for the token, 6 for no answer', async () => {
  const bad = join(folder, 'bad.yaml')
  writeFileSync(bad, DENY.replace('podSelector: {}', 'podSelector: {matchLabels: {app: [web]}}'))
  const runs: [string[], number, RegExp, NodeJS.ProcessEnv?][] = [
    [['policy', 'try'], 2, /file/],
    [['policy', 'tri'], 2, /try/],
    [['policy', 'generate', 'shop/api'], 2, /NAMESPACE\/KIND\/NAME/],
    [['policy', 'generate', 'shop/Deployment/api', '--format', 'calico'], 2, /kubernetes/],
    [['policy', 'try', '-f', bad], 2, /document 1: spec.podSelector.matchLabels/],
    [['policy', 'try', '-f', join(folder, 'nowhere.yaml')], 2, /no such file/],
    [['policy', 'generate', 'shop/Deployment/api', '--server', 'broker'], 2, /--server/],
    [['policy', 'generate', 'shop/Deployment/nobody'], 3, /No data found/],
    [['policy', 'generate', 'shop/Deployment/api'], 4, /bearer token/, { ...ENV, CTB_TOKEN: 'wrong-token-of-a-user' }],
    [
      ['policy', 'generate', 'shop/Deployment/api'],
      6,
      /cannot be reached/,
      { ...ENV, CTB_SERVER: 'http://127.0.0.1:1' },
    ],
  ]
  const done = await Promise.all(runs.map(([args, , , env]) => ctb(args, env === undefined ? {} : { env })))
  for (const [i, [args, code, says]] of runs.entries()) {
    assert.equal(done[i]!.code, code, `${args.join(' ')}: ${done[i]!.err}`)
    assert.match(done[i]!.err, says)
    assert.equal(done[i]!.out, '')
    assert.ok(!done[i]!.err.includes('wrong-token'), 'a token is never shown')
  }
})

test('the token may be in a file, and a busy broker is asked again', async () => {
  const file = join(folder, 'token')
  writeFileSync(file, `${TOKENS.BROKER_TOKEN_READ}\n`)
  first.push({ status: 503, text: 'database busy', headers: { 'retry-after': '0' } })
  const env = { ...ENV, CTB_TOKEN: undefined }
  const made = await ctb(['policy', 'generate', 'shop/Deployment/api', '--token-file', file], { env })
  assert.equal(made.code, 0, made.err)
  assert.match(made.err, /^database busy \(asked again in 0 s\)$/m)
})

test('texts of a cluster do not reach the terminal as controls', async () => {
  const text = '# \u001b[2J\u202e evil\nkind: NetworkPolicy\n'
  first.push({ status: 200, text })
  const { out } = await ctb(['policy', 'generate', 'shop/Deployment/api'])
  assert.equal(out, '#  [2J  evil\nkind: NetworkPolicy\n')
})
