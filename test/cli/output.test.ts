/** What `ctb` writes, on a terminal and elsewhere. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { cleanJson, cleanText } from '../../wrangler-free-deploy/cli/output/clean.ts'
import { columnsOf, wrapped } from '../../wrangler-free-deploy/cli/output/lines.ts'
import { joined } from '../../wrangler-free-deploy/cli/policy/documents.ts'
import { type Trial, trialText } from '../../wrangler-free-deploy/cli/policy/trial-text.ts'
import { type StubAnswer, startStub } from '../support/stub.ts'
import { ctbOf, fileOf, PROGRAM, run } from './support.ts'
import { DENY } from './texts.ts'

const answers: StubAnswer[] = []
const stub = await startStub(() => answers.shift() ?? { json: TRIAL })
const ctb = ctbOf(stub.url)
const file = fileOf('deny.yaml', `${DENY}---\n${DENY}`)

const RED = '\u001b[31m'
const PLAIN = '\u001b[0m'

const NOWHERE = { namespace: null, name: null, workload: null, ip: null }
const workload = (namespace: string, name: string) => ({
  ...NOWHERE,
  kind: 'workload' as const,
  namespace,
  workload: name,
})

const TRIAL: Trial = {
  about: 'Only the given policies.',
  asOf: '2026-01-31T09:00:00',
  observedSince: '2025-11-01T00:00:00.123',
  labelsAsOf: '2026-01-31T08:59:30.5',
  ...{ evaluated: 1234, allowed: 1226, denied: 5, unknown: 3, moreDenied: 2 },
  policies: [
    {
      ...{ document: 1, kind: 'NetworkPolicy', namespace: 'shop', name: 'api', directions: ['ingress', 'egress'] },
      workloads: ['Deployment/a', 'Deployment/b', 'Deployment/c', 'Deployment/d', 'Deployment/e'],
      ...{ evaluated: 1230, allowed: 1222, denied: 5, unknown: 3 },
    },
    {
      ...{ document: 2, kind: 'NetworkPolicy', namespace: 'shop', name: 'nobody', directions: ['ingress'] },
      ...{ workloads: [], evaluated: 0, allowed: 0, denied: 0, unknown: 0 },
    },
  ],
  deniedEdges: [
    {
      from: workload('shop', 'Deployment/web'),
      to: workload('shop', 'StatefulSet/db'),
      ...{ port: '5432', protocol: 'TCP', flows: 12 },
      ...{ firstSeenAt: '2025-12-01T00:00:00', lastNewAt: '2026-01-30T12:00:00.123456', example: null },
      deniedBy: [
        {
          ...{ direction: 'egress', document: 1, policy: 'shop/api', path: 'spec.egress[0]' },
          why: 'a pod of shop with app=db is not among pods with app=cache in its own namespace',
        },
        { direction: 'ingress', document: 1, policy: 'shop/api', path: null, why: 'no rule allows any ingress' },
      ],
    },
    {
      from: { ...NOWHERE, kind: 'external', ip: '2001:db8::1' },
      to: { ...NOWHERE, kind: 'service', namespace: 'shop', name: 'api' },
      ...{ port: '80', protocol: 'TCP', flows: 1 },
      ...{ firstSeenAt: '2025-12-01T00:00:00', lastNewAt: '2025-12-01T00:00:00', deniedBy: [], example: null },
    },
    {
      from: { ...NOWHERE, kind: 'pod', namespace: 'shop', name: 'once' },
      to: { ...NOWHERE, kind: 'node', ip: '192.168.0.2' },
      ...{ port: '10250', protocol: 'TCP', flows: 1 },
      ...{ firstSeenAt: '2025-12-01T00:00:00', lastNewAt: '2025-12-01T00:00:00', deniedBy: [], example: null },
    },
  ],
  unknownReasons: [{ reason: 'rules of layer 7', edges: 3 }],
}
const ONE = joined([{ name: 'a.yaml', text: `${DENY}---\n${DENY}` }])

test('a trial as it is read', () => {
  assert.equal(
    trialText(TRIAL, ONE, { width: null, isColoured: false }),
    `POLICY       ISOLATES        EDGES  DENIED  UNKNOWN  WORKLOADS
shop/api     ingress,egress  1230   5       3        Deployment/a, Deployment/b, Deployment/c, 2 more
shop/nobody  ingress         0      0       0        none that is known

- shop/Deployment/web -> shop/StatefulSet/db 5432/TCP  12 flows, last new 2026-01-30T12:00:00Z
    egress: policy shop/api spec.egress[0]: a pod of shop with app=db is not among pods with app=cache in its own namespace
    ingress: policy shop/api: no rule allows any ingress
- external 2001:db8::1 -> shop/Service/api 80/TCP  1 flow, last new 2025-12-01T00:00:00Z
- shop/Pod/once -> node 192.168.0.2 10250/TCP  1 flow, last new 2025-12-01T00:00:00Z
- 2 more, which the broker does not list

? 3 edges unknown: rules of layer 7

1234 edges evaluated: 1226 allowed, 5 denied, 3 unknown
edges observed since 2025-11-01T00:00:00Z, labels as of 2026-01-31T08:59:30Z
`,
  )
})

test('in a narrow terminal rows are cut, and sentences are wrapped', () => {
  const lines = trialText(TRIAL, ONE, { width: 60, isColoured: false }).split('\n')
  assert.deepEqual(lines.slice(1, 9), [
    'shop/api     ingress,egress  1230   5       3        Deploy…',
    'shop/nobody  ingress         0      0       0        none t…',
    '',
    '- shop/Deployment/web -> shop/StatefulSet/db 5432/TCP  12',
    '    flows, last new 2026-01-30T12:00:00Z',
    '    egress: policy shop/api spec.egress[0]: a pod of shop',
    '      with app=db is not among pods with app=cache in its',
    '      own namespace',
  ])
  assert.deepEqual(
    lines.filter((line) => [...line].length > 60),
    [],
  )
})

test('colours mark what is denied and what is unknown, and change no text', () => {
  const coloured = trialText(TRIAL, ONE, { width: null, isColoured: true })
  const lines = coloured.split('\n')
  const red = lines.filter((line) => line.startsWith(RED) && line.endsWith(PLAIN))
  assert.deepEqual(
    red.map((line) => line.slice(RED.length).split(' ')[0]),
    ['-', '-', '-', '-'],
  )
  assert.ok(lines.includes(`\u001b[33m? 3 edges unknown: rules of layer 7${PLAIN}`))
  const bare = stripVTControlCharacters(coloured)
  assert.equal(bare, trialText(TRIAL, ONE, { width: null, isColoured: false }))
})

/** A screen is cleared, a link hides its target, text runs backwards, a line is forged. */
const EVIL = 'a\u001b[2J\u001b]8;;http://x\u0007\u202e\u2066b\u200d\u009bm\r\n- forged'

test('no text of a cluster moves the cursor, hides text or begins a line', () => {
  const side = workload(EVIL, EVIL)
  const hostile: Trial = {
    ...TRIAL,
    policies: [{ ...TRIAL.policies[0]!, namespace: EVIL, name: EVIL, workloads: [EVIL] }],
    deniedEdges: [
      {
        ...{ ...TRIAL.deniedEdges[0]!, from: side, to: side, port: EVIL, protocol: EVIL },
        deniedBy: [{ direction: 'egress', document: 1, policy: EVIL, path: EVIL, why: EVIL }],
      },
    ],
    unknownReasons: [{ reason: EVIL, edges: 1 }],
  }
  for (const width of [null, 60]) {
    const text = trialText(
      hostile,
      joined([
        { name: EVIL, text: '' },
        { name: 'b', text: DENY },
      ]),
      { width, isColoured: false },
    )
    assert.doesNotMatch(text, /[^\P{C}\n]/u)
    assert.doesNotMatch(text, /^- forged/m)
  }
})

test('JSON keeps its values when it is cleaned', () => {
  const value = { [EVIL]: [`${EVIL}\u{e0001}`, 'é \u{1f600}'] }
  const clean = cleanJson(JSON.stringify(value, null, '\t'))
  assert.doesNotMatch(clean, /[^\P{C}\n]/u)
  assert.deepEqual(JSON.parse(clean), value)
  assert.equal(cleanText('a\u001b[2J\nb\u202e\r\n'), 'a [2J\nb  \n')
})

test('columns and sentences without a width stay whole', () => {
  assert.deepEqual(
    columnsOf(
      [
        ['A', 'BB'],
        ['ccc', 'd'],
      ],
      null,
    ),
    ['A    BB', 'ccc  d'],
  )
  assert.deepEqual(
    columnsOf(
      [
        ['A', 'BB'],
        ['ccc', 'd'],
      ],
      4,
    ),
    ['A  …', 'ccc…'],
  )
  assert.deepEqual(wrapped('one two', 40, '  '), ['one two'])
  assert.deepEqual(wrapped(`  ${'x'.repeat(50)} y`, 40, '    '), [`  ${'x'.repeat(50)}`, '    y'])
})

test('elsewhere than on a terminal answers are their bytes', async () => {
  for (const [output, contentType] of [
    ['yaml', 'application/yaml'],
    ['json', 'application/json'],
  ]) {
    answers.push({ text: EVIL, headers: { 'content-type': contentType! } })
    const { out } = await ctb(['policy', 'generate', 'shop/Deployment/api', '-o', output!])
    assert.equal(out, EVIL)
  }
  answers.push({ status: 409, text: `refused: ${EVIL}`, headers: { 'content-type': 'text/plain' } })
  const { code, err } = await ctb(['policy', 'generate', 'shop/Deployment/api'])
  assert.equal(code, 5)
  assert.doesNotMatch(err, /[^\P{C}\n]/u)
})

test('colours elsewhere than on a terminal are those that were asked for', async () => {
  const words = ['policy', 'try', '-f', file]
  assert.ok(!(await ctb(words)).out.includes('\u001b'))
  assert.ok(!(await ctb([...words, '--color', 'never'])).out.includes('\u001b'))
  const always = await ctb([...words, '--color', 'always'], { env: { NO_COLOR: '1' } })
  assert.ok(always.out.includes(`\n${RED}- `))
})

const noScript = spawnSync('script', ['--version']).status === 0 ? false : 'needs `script` of util-linux'

/** What a terminal of 60 columns receives. */
async function screenOf(words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const command = ['stty cols 60;', 'exec', process.execPath, ...PROGRAM, ...words].join(' ')
  const { out } = await run('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'], {
    env: { CTB_SERVER: stub.url, TERM: 'xterm', SHELL: '/bin/sh', ...env },
  })
  return out.replaceAll('\r\n', '\n')
}

test('a terminal has colours, unless NO_COLOR is set, and its width', { skip: noScript }, async () => {
  const words = ['policy', 'try', '-f', file]
  const shown = (isColoured: boolean) => trialText(TRIAL, ONE, { width: 60, isColoured })
  assert.equal(await screenOf(words), `${shown(true)}3 edges could not be judged\n`)
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
    assert.equal(await screenOf(words, env), `${shown(false)}3 edges could not be judged\n`)
})

test('on a terminal answers cannot act on it', { skip: noScript }, async () => {
  answers.push({ text: `# ${EVIL}`, headers: { 'content-type': 'application/yaml' } })
  assert.equal(await screenOf(['policy', 'generate', 'shop/Deployment/api']), `# ${cleanText(EVIL)}\n`)
  answers.push({ json: { [EVIL]: EVIL } })
  const json = await screenOf(['policy', 'generate', 'shop/Deployment/api', '-o', 'json'])
  assert.doesNotMatch(json, /[^\P{C}\n]/u)
  assert.deepEqual(JSON.parse(json), { [EVIL]: EVIL })
})
