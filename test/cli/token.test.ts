/** The token is written nowhere, whatever is asked and whatever goes wrong. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { documentedCommands } from '../../scripts/cli-docs.ts'
import { startStub } from '../support/stub.ts'
import { startCluster } from './cluster.ts'
import { inProcess } from './in-process.ts'
import { standIn } from './kubectl.ts'
import { fileOf, pathOf, TOKEN } from './support.ts'
import { wordsOf } from './words.ts'

const cluster = await startCluster()
/** They repeat the head of the request, as some proxies do. */
const [echo, plainEcho] = await Promise.all(
  ['text/html', 'text/plain'].map((type) =>
    startStub(({ headers }) => ({ status: 502, text: JSON.stringify(headers), headers: { 'content-type': type } })),
  ),
)
const ctb = inProcess(cluster.url)
const out = pathOf('out')
const examples = documentedCommands().flatMap((command) => command.examples.map(({ words }) => wordsOf(words)))
const names = documentedCommands().map(({ name }) => name.split(' '))
const images = ['images', '-n', 'shop']

/** Calls, with what is different for them. */
const CALLS: readonly (readonly [words: readonly string[], env?: NodeJS.ProcessEnv])[] = [
  ...names.map((words) => [[...words, '--help']] as const),
  ...names.map((words) => [[...words, '--nonsense']] as const),
  ...examples.map((words) => [[...words, '--print-request']] as const),
  ...['table', 'wide', 'json', 'ndjson', 'yaml', 'csv', 'name', 'jsonpath={', 'other'].map(
    (format) => [[...images, '-o', format]] as const,
  ),
  [[...images, '--out', out]],
  [[...images, '--out', pathOf('no/folder')]],
  [[...images, '--token-file', fileOf('token', `${TOKEN}\u0001`)]],
  [[...images, '--token-file', fileOf('good', TOKEN), '--print-request']],
  [images, { CTB_TOKEN: `${TOKEN}\u0001` }],
  [images, { CTB_TOKEN: `${TOKEN}-which-is-wrong` }],
  [images, { CTB_TOKEN: '', KGUARDIAN_BROKER_TOKEN: TOKEN }],
  [images, { CTB_SERVER: echo!.url }],
  [images, { CTB_SERVER: plainEcho!.url }],
  [images, { CTB_SERVER: 'http://127.0.0.1:1' }],
  [images, { CTB_SERVER: `http://u:${TOKEN}@127.0.0.1` }],
  [['policy', 'try', '-f', 'nowhere']],
  [['policy', 'generate', 'shop/Deployment/nobody']],
  [['nonsense']],
  [['__complete', '--', 'images', '-n', '']],
  [['__complete', '--', 'images', '--token', TOKEN, '']],
]

test('in this process', async () => {
  assert.ok(CALLS.length > 30)
  for (const [words, env = {}] of CALLS) {
    const run = await ctb(words, { env })
    assert.ok(!`${run.out}${run.err}`.includes(TOKEN), `${words.join(' ')}: ${run.out}${run.err}`)
  }
  for (const words of [['--token', TOKEN], [`--token=${TOKEN}`]]) {
    const { code, err } = await ctb(['images', ...words])
    assert.equal(code, 2)
    assert.match(err, /^No flag registered for --token\b/)
    assert.ok(!err.includes(TOKEN))
  }
  assert.ok(readFileSync(out).length > 0)
  for (const name of readdirSync(pathOf('.')).filter((one) => one.startsWith('out')))
    assert.ok(!readFileSync(pathOf(name), 'utf8').includes(TOKEN), name)
})

test('through kubectl, which does not get it', async () => {
  const { env, started } = standIn(cluster.url)
  const run = await ctb([...images, '--context', 'x'], { env })
  assert.equal(run.code, 0)
  assert.ok(!`${run.out}${run.err}${JSON.stringify(started())}`.includes(TOKEN))
  const failed = await ctb([...images, '--context', 'x'], { env: standIn(cluster.url, { fault: 'no\n' }).env })
  assert.ok(!`${failed.out}${failed.err}`.includes(TOKEN))
})
