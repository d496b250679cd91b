/** Completion: the candidates, in front of a broker that knows a cluster, and the scripts in their shells. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import test from 'node:test'
import { TOKENS } from '../support/app.ts'
import { podPost } from '../support/records.ts'
import { startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'
import { startCluster } from './cluster.ts'
import { inProcess } from './in-process.ts'
import { isRunning, standIn } from './kubectl.ts'
import { fileOf, PROGRAM, pathOf, run, TOKEN } from './support.ts'

const cluster = await startCluster()
const ctb = inProcess(cluster.url)
const HOSTILE = 'shop-$(touch pwned)'
await cluster.post('/pod/spec', podPost({ pod_namespace: HOSTILE, pod_name: 'p', pod_ip: '10.9.9.9' }), {
  token: TOKENS.BROKER_TOKEN_INGEST,
})

/** The candidates of a line without what they are, and what the shell may do. */
async function proposed(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { code, out, err } = await ctb(['__complete', '--', ...words], { env })
  assert.deepEqual([code, err], [0, ''])
  const lines = out.trimEnd().split('\n')
  const directive = lines.pop()!
  return [...lines.map((line) => line.split('\t')[0]), directive]
}

test('commands and flags have a brief, values have none', async () => {
  const { out } = await ctb(['__complete', '--', 'imag'])
  assert.equal(out, 'images\tList images that run or ran, with the containers that run them\n:4\n')
  const values = await ctb(['__complete', '--', 'images', '--color', 'a'])
  assert.equal(values.out, 'auto\nalways\n:4\n')
})

test('commands, flags and their values', async () => {
  const cases: readonly [words: string[], candidates: string[]][] = [
    [
      ['policy', ''],
      ['generate', 'try', ':4'],
    ],
    [['policy', 'nothing', ''], [':4']],
    [['nothing', ''], [':4']],
    [
      ['images', '--no-h'],
      ['--no-headers', ':4'],
    ],
    [['images', '--broker-token'], [':4']],
    [
      ['images', '-o', 'nd'],
      ['ndjson', ':4'],
    ],
    [
      ['images', '--output=nd'],
      ['--output=ndjson', ':4'],
    ],
    [
      ['images', '-o', 'jsonp'],
      ['jsonpath=', ':6'],
    ],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish', ':4'],
    ],
    [['completion', 'bash', 'z'], [':4']],
    [['images', '--out', ''], [':0']],
    [['policy', 'try', '-f', 'x'], [':0']],
    [['policy', 'try', 'x'], [':0']],
    [
      ['policy', 'try', '--col'],
      ['--color', ':4'],
    ],
  ]
  for (const [words, candidates] of cases) assert.deepEqual(await proposed(words), candidates, words.join(' '))
})

test('values that the broker knows', async () => {
  const cases: readonly [words: string[], candidates: string[]][] = [
    [
      ['images', '-n', 'sh'],
      ['shop', ':4'],
    ],
    [
      ['images', '--namespace=sh'],
      ['--namespace=shop', ':4'],
    ],
    [
      ['policy', 'generate', 'shop/Deployment/a'],
      ['shop/Deployment/api', ':4'],
    ],
    [
      ['policy', 'generate', '--min-days', '3', 'shop/Deployment/a'],
      ['shop/Deployment/api', ':4'],
    ],
    [['policy', 'generate', 'shop/Deployment/api', 'shop/'], [':4']],
    [['images', '-n', 'nowhere'], [':4']],
    [
      ['flows', '--seen-by', 'f'],
      ['from', ':4'],
    ],
    [
      ['flows', '--from-workload', 'shop/Deployment/a'],
      ['shop/Deployment/api', ':4'],
    ],
    [
      ['edges', '--to-namespace=sh'],
      ['--to-namespace=shop', ':4'],
    ],
    // Of other commands this is the name alone.
    [['seccomp', 'denials', '--workload', 'sh'], [':4']],
  ]
  for (const [words, candidates] of cases) assert.deepEqual(await proposed(words), candidates, words.join(' '))
})

test('names that a shell would run are left out', async () => {
  const { json } = await cluster.get('/flows/hints?field=namespace&prefix=shop', { token: TOKEN })
  assert.deepEqual(json, { values: ['shop', HOSTILE] })
  assert.deepEqual(await proposed(['images', '-n', 'shop']), ['shop', ':4'])
})

test('the address of the line is asked, and any failure is silent', async () => {
  const words = ['images', '--server', cluster.url, '-n', 'sh']
  assert.deepEqual(await proposed(words, { CTB_SERVER: 'http://127.0.0.1:1' }), ['shop', ':4'])
  const missing = ['images', '--token-file', 'nowhere', '-n', 'sh']
  assert.deepEqual(await proposed(missing), [':4'])
  for (const env of [{ CTB_SERVER: 'http://127.0.0.1:1' }, { CTB_SERVER: 'nonsense' }, { CTB_TOKEN: 'wrong' }])
    assert.deepEqual(await proposed(['images', '-n', 'sh'], env), [':4'])
})

test('a broker that does not answer is not waited for', async () => {
  const silent = await startStub(() => 'hang')
  const busy = await startStub(() => ({ status: 503, text: 'busy', headers: { 'retry-after': '60' } }))
  const at = (CTB_SERVER: string) => proposed(['images', '-n', 'sh'], { CTB_SERVER })
  assert.deepEqual(await Promise.all([at(silent.url), at(busy.url)]), [[':4'], [':4']])
  assert.equal(busy.heard.length, 1)
})

test('through kubectl as well, which ends', async () => {
  const { env, started } = standIn(cluster.url)
  assert.deepEqual(await proposed(['images', '--context', 'x', '-n', 'sh'], env), ['shop', ':4'])
  const pids = started().map(({ pid }) => pid)
  assert.equal(pids.length, 2)
  await until('kubectl has ended', () => pids.every((pid) => !isRunning(pid)), 10_000)
})

mkdirSync(pathOf('bin'))
fileOf(
  'bin/ctb',
  `#!/bin/sh\nexec ${[process.execPath, ...PROGRAM].map((word) => `'${word}'`).join(' ')} "$@"\n`,
  0o755,
)
const env = {
  PATH: `${pathOf('bin')}:${process.env.PATH}`,
  CTB_SERVER: cluster.url,
  CTB_TOKEN: TOKEN,
  HOME: pathOf('.'),
}
const lacks = (shell: string) => (spawnSync(shell, ['--version']).status === 0 ? false : `needs ${shell}`)

test('bash', { skip: lacks('bash') }, async () => {
  // Bash makes words of their own of = and :.
  const lines: readonly [words: string, replies: string][] = [
    ['ctb pol', 'policy'],
    ['ctb images --output = nd', 'ndjson'],
    ['ctb images --output =', 'table wide json ndjson yaml csv name jsonpath='],
    ['ctb images --server http : //127.0.0.1 : 1 -o js', 'json jsonpath='],
    ['ctb images -n sh', 'shop'],
    ["ctb policy ''", 'generate try'],
    ['ctb policy try -f x', ''],
  ]
  const script = [
    'set -eu; source <(ctb completion bash)',
    'compopt() { echo "compopt $*"; }',
    ...lines.flatMap(([words]) => [
      `COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))`,
      `_ctb_complete ctb; echo "\${COMPREPLY[*]-}"`,
    ]),
    'complete -p ctb',
  ]
  const { out, err } = await run('bash', ['--norc', '-c', script.join('\n')], { env })
  const replies = lines.flatMap(([words, reply]) => (words.includes('-f') ? ['compopt -o default', reply] : [reply]))
  assert.deepEqual([out, err], [[...replies, 'complete -F _ctb_complete ctb', ''].join('\n'), ''])
})

test('zsh', { skip: lacks('zsh') }, async () => {
  const script = `
    autoload -U compinit; compinit -u -D; source <(ctb completion zsh)
    _describe() { print -l -- "\${(@P)2}" }
    _files() { print files }
    for line in 'ctb imag' 'ctb images -n sh' 'ctb policy try -f x'; do
      words=(\${=line}); CURRENT=$#words; _ctb
    done
    print $_comps[ctb]`
  const { out, err } = await run('zsh', ['-f', '-c', script], { env })
  const images = 'images:List images that run or ran, with the containers that run them'
  assert.deepEqual([out, err], [`${images}\nshop\nfiles\n_ctb\n`, ''])
})

test('fish', { skip: lacks('fish') }, async () => {
  fileOf('some-file', '')
  const script = `
    ctb completion fish | source
    complete -C 'ctb imag'
    complete -C 'ctb images -n sh'
    complete -C 'ctb policy try -f ${pathOf('some')}'`
  const { out, err } = await run('fish', ['--no-config', '-c', script], { env: { ...env, TERM: 'dumb' } })
  const images = 'images\tList images that run or ran, with the containers that run them'
  assert.deepEqual([out, err], [`${images}\nshop\n${pathOf('some-file')}\n`, ''])
})
