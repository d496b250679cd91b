/** `ctb policy` in front of a broker that knows a shop. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { inProcess } from './in-process.ts'
import { fileOf, PROGRAM, pathOf, run, startShop, TOKEN } from './support.ts'
import { DENY } from './texts.ts'

const shop = await startShop()
const ctb = inProcess(shop.url)
const headers = { authorization: `Bearer ${TOKEN}` }

test('policies are generated, tried, tightened and tried again', async () => {
  const whole = pathOf('shop.yaml')
  const made = await ctb(['policy', 'generate', '-n', 'shop', '--out', whole])
  const dropped = 'dropped, so not allowed: shop/Deployment/web to shop/StatefulSet/db on 5432/TCP'
  assert.deepEqual(made, { code: 0, out: '', err: `left out: ${dropped}\n` })
  const tried = await ctb(['policy', 'try', '-f', whole])
  assert.deepEqual([tried.code, tried.err], [0, ''])
  assert.match(tried.out, /^6 edges evaluated: 6 allowed, 0 denied, 0 unknown$/m)
  const tight = fileOf('tight.yaml', readFileSync(whole, 'utf8').replace('port: 9090', 'port: 9091'))
  const denied = await ctb(['policy', 'try', '-f', tight])
  assert.equal(denied.code, 1)
  const [, edge, why] = /^(- .*)\n(.*)$/m.exec(denied.out)!
  assert.match(
    edge!,
    /^- monitoring\/StatefulSet\/prometheus -> shop\/Deployment\/api 9090\/TCP {2}1 flow, last new [-\d]+T[:\d]+Z$/,
  )
  assert.match(
    why!,
    /^ {4}ingress: policy shop\/api-deployment spec.ingress\[\d\]: port 9090\/TCP is not among 9091\/TCP$/,
  )
})

test('a pipeline stops where a policy would deny something, also when its output is cut short', async () => {
  const words = [process.execPath, ...PROGRAM, 'policy', 'try', '-f', fileOf('deny-all.yaml', DENY)]
  const shell = (script: string) =>
    run('bash', ['--norc', '-c', script, 'ctb', ...words], { env: { CTB_SERVER: shop.url, CTB_TOKEN: TOKEN } })
  const stopped = await shell('set -e; "$@" > /dev/null; echo applied')
  assert.deepEqual(stopped, { code: 1, out: '', err: '' })
  const read = await shell('set -o pipefail; "$@" | true')
  assert.deepEqual(read, { code: 1, out: '', err: '' })
})

test('workloads that are left out are said, as connections are', async () => {
  const own = await startShop()
  await own.sql`delete from pod where pod_name = 'db-0'`
  for (const output of ['yaml', 'json']) {
    const { err } = await inProcess(own.url)(['policy', 'generate', '-n', 'shop', '-o', output])
    assert.match(
      err,
      /^left out: shop\/StatefulSet\/db: its connections were seen, but no pod of it is known any more$/m,
    )
  }
})

test('one workload; its answer arrives byte by byte, in both notations', async () => {
  for (const [format, output] of [
    ['kubernetes', 'yaml'],
    ['cilium', 'json'],
  ] as const) {
    const path = `/workloads/shop/Deployment/api/networkpolicy?format=${format}&output=${output}`
    const words = ['policy', 'generate', 'shop/Deployment/api', '--format', format, '-o', output]
    const made = await ctb(words)
    assert.deepEqual(made, { code: 0, out: (await shop.get(path, { headers })).text, err: '' })
    const named = await ctb(['policy', 'generate', '-n', 'shop', 'Deployment/api', `--format=${format}`, '-o', output])
    assert.equal(named.out, made.out)
  }
})

test('what was not observed for long enough is refused with 5 and the words of the broker', async () => {
  const refused = await ctb(['policy', 'generate', 'shop/Deployment/api', '--min-days', '300'])
  const { text } = await shop.get('/workloads/shop/Deployment/api/networkpolicy?min_days=300', { headers })
  assert.deepEqual(refused, { code: 5, out: '', err: `${text.trim()}\n` })
  const taken = await ctb(['policy', 'generate', 'shop/Deployment/api', '--min-days', '300', '--acknowledge-partial'])
  assert.deepEqual([taken.code, taken.err], [0, ''])
})

test('all flags of generate reach the broker', async () => {
  const words = ['policy', 'generate', 'shop/Deployment/api', '--direction', 'egress', '--since', '60d', '--cidr', '24']
  const { code, out } = await ctb(words)
  assert.equal(code, 0)
  assert.match(out, /^ {2}policyTypes:\n {4}- Egress\n {2}egress:$/m)
  assert.match(out, /cidr: '93\.184\.216\.0\/24'/)
})

test('files and stdin are tried together, as one answer', async () => {
  const file = fileOf('deny.yaml', `\ufeff${DENY}`)
  const json = JSON.stringify(
    {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'allow', namespace: 'shop' } },
      spec: { podSelector: {}, ingress: [{}] },
    },
    null,
    '\t',
  )
  const tried = await ctb(['policy', 'try', '-f', file, '-f', '-', '-o', 'json'], { input: json })
  assert.deepEqual([tried.code, tried.err], [0, ''])
  const { policies } = JSON.parse(tried.out) as { policies: { document: number; name: string }[] }
  assert.deepEqual(
    policies.map(({ document, name }) => [document, name]),
    [
      [1, 'deny'],
      [2, 'allow'],
    ],
  )
  const shown = await ctb(['policy', 'try', '-f', file, fileOf('allow.json', json)])
  assert.match(shown.out, /^POLICY {6}ISOLATES {2}EDGES {2}DENIED {2}UNKNOWN {2}FILE .* WORKLOADS\n/)
  assert.match(shown.out, /^shop\/deny {3}ingress {3}\d .*deny\.yaml .*StatefulSet\/db$/m)
})

test('the namespace and the window choose the edges; nothing to judge is no error, but said', async () => {
  const file = fileOf('deny.yaml', DENY)
  const some = await ctb(['policy', 'try', '-f', file, '-n', 'monitoring'])
  assert.match(some.out, /^1 edge evaluated: 0 allowed, 1 denied, 0 unknown$/m)
  const none = await ctb(['policy', 'try', '-f', file, '--until', '60d'])
  assert.deepEqual([none.code, none.err], [0, 'no edge was judged: nothing that was seen concerns these policies\n'])
})

test('unknown alone is 0, with its reasons and a line on stderr', async () => {
  const file = fileOf(
    'layer-7.yaml',
    `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: l7, namespace: shop}
spec:
  endpointSelector: {matchLabels: {app: db}}
  ingress:
  - fromEndpoints: [{matchLabels: {app: api}}]
    toPorts: [{ports: [{port: "5432"}], rules: {l7proto: sql}}]
`,
  )
  const { code, out, err } = await ctb(['policy', 'try', '-f', file])
  assert.deepEqual([code, err], [0, '1 edge could not be judged\n'])
  assert.match(out, /^\? 1 edge unknown: rules of layer 7$/m)
})

test('a refusal names the file, the document in it, and the line in it', async () => {
  const good = fileOf('good.yaml', `# two\n---\n${DENY}---\n${DENY}`)
  const bad = DENY.replace('podSelector: {}', 'podSelector: {matchLabels: {app: [web]}}')
  const wrong = await ctb(['policy', 'try', '-f', good, fileOf('wrong.yaml', `${DENY}---\n${bad}`)])
  assert.deepEqual([wrong.code, wrong.out], [2, ''])
  assert.match(wrong.err, /wrong\.yaml: document 2: spec\.podSelector\.matchLabels\.app: /)
  const broken = await ctb(['policy', 'try', '-f', good, '-f', '-'], { input: `${DENY}---\nkind: [\n` })
  assert.deepEqual([broken.code, broken.out], [2, ''])
  assert.match(broken.err, /^stdin: document 2: line [67]: invalid YAML: /)
})

test('exit codes: 2 for what is not understood, 3 for what is not there, 4 for the token', async () => {
  const good = fileOf('good.yaml', DENY)
  const runs: readonly [words: string[], code: number, says: RegExp, env?: NodeJS.ProcessEnv][] = [
    [['policy', 'try'], 2, /--file/],
    [['policy', 'tri'], 2, /try/],
    [['policy', 'try', '-f', '-', '-f', '-'], 2, /expected - once/],
    [['policy', 'try', '-f', '/dev/null'], 2, /expected at least one policy/],
    [['policy', 'try', '-f', good, '--since', 'yesterday'], 2, /since/],
    [['policy', 'try', '-f', pathOf('nowhere.yaml')], 2, /nowhere\.yaml: there is no such file/],
    [['policy', 'try', '-f', pathOf('.')], 2, /this is a folder/],
    [['policy', 'try', '-f', fileOf('utf-16.yaml', Buffer.from(`\ufeff${DENY}`, 'utf16le'))], 2, /expected UTF-8/],
    [['policy', 'try', '-f', fileOf('large.yaml', `#${' '.repeat(1024 * 1024)}`)], 2, /at most 1048576/],
    [['policy', 'generate'], 2, /NAMESPACE\/KIND\/NAME/],
    [['policy', 'generate', 'shop/api'], 2, /NAMESPACE\/KIND\/NAME/],
    [['policy', 'generate', 'shop/../api'], 2, /NAMESPACE\/KIND\/NAME/],
    [['policy', 'generate', 'shop/Deployment/api', '--format', 'calico'], 2, /kubernetes/],
    [['policy', 'generate', 'shop/Deployment/api', '--min-days', 'x'], 2, /min_days/],
    [['policy', 'generate', 'shop/Deployment/api', '--out', pathOf('no/folder')], 2, /no such file/],
    [['policy', 'generate', 'shop/Deployment/nobody'], 3, /^No data found$/m],
    [['policy', 'generate', 'shop/Deployment/api'], 4, /bearer token/, { CTB_TOKEN: 'wrong-token-of-a-user' }],
    [['policy', 'generate', 'shop/Deployment/api'], 4, /set CTB_TOKEN or --token-file/, { CTB_TOKEN: '' }],
  ]
  for (const [words, code, says, env] of runs) {
    const done = await ctb(words, env === undefined ? {} : { env })
    assert.deepEqual([done.code, done.out], [code, ''], `${words.join(' ')}: ${done.err}`)
    assert.match(done.err, says)
    assert.doesNotMatch(done.err, /wrong-token|^ {4}at /m)
  }
})

test('each parameter of the API has a flag, with the same values', async () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
  const routes: readonly [words: string[], operation: { parameters: Parameter[] }][] = [
    [['policy', 'generate'], paths['/namespaces/{namespace}/networkpolicies'].get],
    [['policy', 'try'], paths['/networkpolicy/try'].post],
  ]
  for (const [words, { parameters }] of routes) {
    const { out } = await ctb([...words, '--help'])
    for (const { name, in: place, schema } of parameters.filter((one) => one.in === 'query')) {
      const flag = `--${name.replace('_', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
      const line = out.split('\n').find((one) => one.includes(`[${flag}]`))
      assert.ok(line, `${place} ${name}`)
      const values = /\[([^\]]+)\]$/.exec(line)?.[1]?.split('|')
      if (schema.enum) assert.deepEqual(values?.sort(), [...schema.enum].sort())
    }
  }
})

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: { readonly enum?: readonly string[] }
}
