/** Commands about workloads, nodes and the broker itself, in front of a broker that knows a cluster. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { profileSnapshots, snapshotsBy } from '../../jobs/profile-snapshots.ts'
import { FAIL_ON, judged } from '../../wrangler-free-deploy/cli/dossier/judged.ts'
import { heartbeat } from '../runtime/heartbeats.ts'
import { TOKENS } from '../support/app.ts'
import { container, digestOf, replica } from '../support/images.ts'
import { startCluster } from './cluster.ts'
import { golden } from './golden.ts'
import { inProcess } from './in-process.ts'
import { pathOf, TOKEN } from './support.ts'

const cluster = await startCluster()
const ctb = inProcess(cluster.url)
const WEB = 'shop/Deployment/web'
const jobContext = {
  ...{ config: cluster.deps.config, db: cluster.db, log: cluster.deps.log, signal: new AbortController().signal },
}
/** The answer of the broker itself. */
const apiOf = async (path: string) => (await cluster.get(path, { headers: { authorization: `Bearer ${TOKEN}` } })).text

golden('workloads', ctb, ['workloads'], [['workloads', '-n', 'shop', '--status', 'risk', '--limit', '1']])
golden('workload', ctb, ['workload', 'shop/Deployment/web'])
golden('seccomp-profiles', ctb, ['seccomp', 'profiles'], [['seccomp', 'profiles', '-n', 'nowhere', '-o', 'json']])
golden('seccomp-denials', ctb, ['seccomp', 'denials', '-n', 'shop'])
golden('runtime', ctb, ['runtime', 'shop/Deployment/web'], [['runtime', '-n', 'shop', 'Deployment/api']])
golden('unshipped', ctb, ['unshipped'])
golden('contention', ctb, ['contention', '-n', 'shop'])
golden('findings', ctb, ['findings'])
golden('usage', ctb, ['usage', '-n', 'shop'])
golden('sizing', ctb, ['sizing', 'shop/Deployment/web', '--days', '2'])
golden('nodes', ctb, ['nodes'])
golden('status', ctb, ['status'])
golden(
  'get',
  ctb,
  ['get', '/node/status'],
  [
    ['get', '/node/status'],
    ['get', '/nowhere'],
  ],
  ['json', 'yaml', 'table'],
)
golden(
  'seccomp-export',
  ctb,
  [],
  [
    ['seccomp', 'export', WEB],
    ['seccomp', 'export', WEB, '--format', 'json', '--default-action', 'SCMP_ACT_ERRNO'],
    ['seccomp', 'export', 'shop/Deployment/api', '--default-action', 'SCMP_ACT_ERRNO'],
  ],
  [],
)

test('a workload is named whole, or within a namespace', async () => {
  for (const command of ['workload', 'runtime', 'sizing']) {
    const whole = await ctb([command, WEB])
    assert.equal(whole.code, 0, whole.err)
    const named = await ctb([command, '-n', 'shop', 'Deployment/web'])
    assert.deepEqual(named, whole)
  }
})

test('a seccomp profile arrives as its bytes, on stdout or in a file', async () => {
  const path = `/seccomp/profiles/${WEB}/export`
  const yaml = await ctb(['seccomp', 'export', WEB])
  assert.deepEqual(yaml, { code: 0, out: await apiOf(`${path}?format=yaml`), err: '' })
  assert.match(yaml.out, /^kind: SeccompProfile$/m)
  const words = ['-n', 'shop', 'Deployment/web', '--format', 'json', '--default-action', 'SCMP_ACT_ERRNO']
  const file = pathOf('profile.json')
  assert.deepEqual(await ctb(['seccomp', 'export', ...words, '--out', file]), { code: 0, out: '', err: '' })
  const query = 'defaultAction=SCMP_ACT_ERRNO&format=json'
  assert.equal(readFileSync(file, 'utf8'), await apiOf(`${path}?${query}`))
  const printed = await ctb(['seccomp', 'export', ...words, '--print-request'])
  assert.match(printed.out, /^curl .*export\?defaultAction=SCMP_ACT_ERRNO&format=json'\n$/)
})

test('an export that would enforce a partial capture is 5, until that is acknowledged', async () => {
  const words = ['seccomp', 'export', 'shop/Deployment/api', '--default-action', 'SCMP_ACT_ERRNO']
  const refused = await ctb(words)
  assert.deepEqual([refused.code, refused.out], [5, ''])
  assert.match(refused.err, /capture/)
  const taken = await ctb([...words, '--acknowledge-partial'])
  assert.deepEqual([taken.code, taken.err], [0, ''])
})

test('--fail-on is 1 where it is so, and 5 where nobody knows; all is shown', async () => {
  const cases: readonly [workload: string, question: string, code: number, says: RegExp][] = [
    [WEB, 'risk', 1, /^--fail-on risk: the posture is risk$/m],
    ['shop/StatefulSet/db', 'risk', 5, /^--fail-on risk: not known: network, syscalls, images$/m],
    [WEB, 'drift', 1, /^--fail-on drift: unshippedExecutable$/m],
    ['shop/StatefulSet/db', 'drift', 5, /^--fail-on drift: not known: .*no_inventory/m],
    [WEB, 'p0', 1, /^--fail-on p0: 1 of tier P0$/m],
    ['shop/Deployment/api', 'p0', 1, /^--fail-on p0: 1 of tier P0$/m],
    [
      'shop/StatefulSet/db',
      'p0',
      5,
      /^--fail-on p0: not known: 1 of 1 running digests have no report of vulnerabilities$/m,
    ],
  ]
  for (const [workload, question, code, says] of cases) {
    const done = await ctb(['workload', workload, '--fail-on', question])
    assert.equal(done.code, code, `${workload} ${question}: ${done.err}`)
    assert.equal(done.out, (await ctb(['workload', workload])).out)
    assert.match(done.err, says)
  }
})

test('--fail-on is 0 only where all that it asks about is known', async () => {
  const profile = JSON.parse((await ctb(['workload', WEB, '-o', 'json'])).out)
  profile.posture = { ...profile.posture, status: 'ok', unknownDimensions: [] }
  profile.drift = { ...profile.drift, items: [], notEvaluated: [] }
  profile.dimensions.images.vulnerabilities.tiers.P0 = 0
  assert.deepEqual(
    FAIL_ON.map((question) => judged(profile, question).answer),
    [false, false, false],
  )
  profile.dimensions.images.vulnerabilities.scannedDigests = 0
  assert.equal(judged(profile, 'p0').answer, null)
})

test('--fail-on p0 says what is known of the images that were scanned', async () => {
  const profile = JSON.parse((await ctb(['workload', WEB, '-o', 'json'])).out)
  profile.dimensions.images.vulnerabilities = null
  profile.dimensions.images.reasons = [{ code: 'vulnerabilities_not_configured', message: '1 of 2 have no report' }]
  const { title } = profile.findings.find(({ id }: { id: string }) => id === 'images.vulnerabilities.critical')
  assert.deepEqual(judged(profile, 'p0'), { answer: null, why: `1 of 2 have no report; ${title}` })
})

test('denials as many as asked for may not be all', async () => {
  const all = JSON.parse((await ctb(['seccomp', 'denials', '-o', 'json'])).out) as unknown[]
  const some = await ctb(['seccomp', 'denials', '--limit', String(all.length)])
  assert.match(some.err, /^there may be more: see --limit$/m)
  assert.equal((await ctb(['seccomp', 'denials', '--limit', String(all.length + 1)])).err, '')
})

test('workloads whose profile was not computed for hours are told', async () => {
  const moved = (hours: number) => cluster.sql`
    update workload_profile set computed_at = computed_at - make_interval(hours => ${hours}::int)
    where pod_namespace = 'shop' and workload_name = 'api'`
  await moved(4)
  const { err } = await ctb(['workloads', '-n', 'shop', '-o', 'name'])
  await moved(-4)
  assert.match(err, /^1 workload as computed more than 3 hours ago, the oldest \S+Z: what changed since is not shown$/m)
  assert.equal((await ctb(['workloads', '-n', 'shop', '-o', 'name'])).err, '')
})

test('names of a namespace alone: JSON too has no other profiles', async () => {
  const all = JSON.parse((await ctb(['seccomp', 'profiles', '-o', 'json'])).out) as { namespace: string }[]
  assert.ok(all.length > 0)
  const some = await ctb(['seccomp', 'profiles', '-n', 'shop', '-o', 'json'])
  assert.deepEqual(
    JSON.parse(some.out),
    all.filter(({ namespace }) => namespace === 'shop'),
  )
})

test('JSON of one route is its bytes, also where the rows say more', async () => {
  for (const [words, path] of [
    [['contention', '-n', 'shop', '--minutes', '10'], '/compute/contention?namespace=shop&minutes=10'],
    [['runtime', WEB], `/workloads/${WEB}/runtime?limit=5000`],
    [['unshipped'], '/runtime/unshipped?limit=500'],
  ] as const)
    assert.equal((await ctb([...words, '-o', 'json'])).out, await apiOf(path))
})

test('contention on a node has victims of all namespaces; without a place it is refused', async () => {
  const node = await ctb(['contention', '--node', 'node-1'])
  assert.match(node.out, /^shop +web-1\/web +shop\/api-1\/api +1400 +6s/m)
  const nowhere = await ctb(['contention'])
  assert.deepEqual(nowhere, { code: 2, out: '', err: 'expected --namespace, --node or --pod-uid\n' })
})

test('contention says where sums may be too low, and where fewer minutes were searched', async () => {
  const cut = await ctb(['contention', '-n', 'shop', '--per-victim', '2'])
  assert.match(cut.err, /^of 1 victim only the 2 longest waits may be listed and added up/m)
  assert.equal((await ctb(['contention', '-n', 'shop', '--per-victim', '5'])).err, '')
  const short = await ctb(['contention', '-n', 'shop', '--minutes', '120'])
  assert.match(short.err, /^the broker looks back 60 minutes at most without --node$/m)
  assert.equal((await ctb(['contention', '--node', 'node-1', '--minutes', '120'])).err, '')
  const pod = await ctb(['contention', '--pod-uid', 'uid-web-1', '--minutes', '720'])
  assert.deepEqual([pod.code, pod.err], [0, 'the broker looks back 360 minutes at most for a pod\n'])
})

test('an empty list is 0 and says why it may be empty', async () => {
  const cases: readonly [words: string[], says: RegExp][] = [
    [['usage', '-n', 'nowhere'], /no container has reported lately/],
    [['findings', '-n', 'nowhere'], /no container has reported within five minutes/],
    [['runtime', 'shop/StatefulSet/db'], /no agent watches this workload/],
    [['sizing', 'shop/StatefulSet/db'], /^no container: no_samples$/m],
    [['sizing', 'shop/Deployment/nobody'], /^no container: unknown_workload$/m],
    [['seccomp', 'denials', '-n', 'nowhere'], /nothing was found/],
  ]
  for (const [words, says] of cases) {
    const done = await ctb(words)
    assert.deepEqual([done.code, done.out], [0, ''], words.join(' '))
    assert.match(done.err, says)
  }
})

test('a command of several routes prints all its requests', async () => {
  const { out } = await ctb(['nodes', '--print-request'])
  assert.deepEqual(
    out.split('\n').map((line) => /http:\/\/[^/]+(\S+)'$/.exec(line)?.[1]),
    ['/node/status', '/compute/nodes', undefined],
  )
})

test('a sentence is broken between words on a terminal, and loses none', async () => {
  for (const words of [['workload', WEB], ['status'], ['findings']])
    for (const columns of [60, 80, 120]) {
      const wide = await ctb([...words, '--utc'])
      const { out } = await ctb([...words, '--utc', '--color', 'never'], { columns })
      const wordsOf = (text: string) => text.split(/\s+/).slice(0, -1)
      const lines = out.split('\n')
      assert.ok(lines.every((line) => [...line].length <= columns))
      if (lines.every((line) => !line.endsWith('…'))) assert.deepEqual(wordsOf(out), wordsOf(wide.out))
      else assert.notEqual(columns, 120)
    }
})

test('exit codes: 2 for what is not understood, 3 for what is not there, 4 for the token', async () => {
  const cases: readonly [words: string[], code: number, says: RegExp, env?: NodeJS.ProcessEnv][] = [
    [['workload'], 2, /NAMESPACE\/KIND\/NAME/],
    [['workload', 'web'], 2, /^expected NAMESPACE\/KIND\/NAME/],
    [['workload', 'shop/../web'], 2, /^expected NAMESPACE\/KIND\/NAME/],
    [['workload', '-n', 'shop', WEB], 2, /^expected NAMESPACE\/KIND\/NAME/],
    [['workload', WEB, '--fail-on', 'kev'], 2, /risk/],
    [['workloads', '--status', 'bad'], 2, /unknown/],
    [['usage'], 2, /namespace/],
    [['usage', '-A'], 2, /./],
    [['sizing', WEB, '--days', 'x'], 2, /days/],
    [['seccomp', 'export', WEB, '--format', 'toml'], 2, /yaml/],
    [['get', 'images'], 2, /^PATH: expected a path/],
    [['workload', 'shop/Deployment/nobody'], 3, /^nothing is known of Deployment shop\/nobody$/m],
    [['seccomp', 'export', 'shop/Deployment/nobody'], 3, /./],
    [['get', '/nowhere'], 3, /./],
    [['status'], 4, /bearer token/, { CTB_TOKEN: 'wrong-token-of-a-user' }],
    [['nodes'], 6, /cannot be reached/, { CTB_SERVER: 'http://127.0.0.1:1' }],
    [['status'], 6, /cannot be reached/, { CTB_SERVER: 'http://127.0.0.1:1' }],
  ]
  for (const [words, code, says, env] of cases) {
    const done = await ctb(words, env === undefined ? {} : { env })
    assert.deepEqual([done.code, done.out], [code, ''], `${words.join(' ')}: ${done.err}`)
    assert.match(done.err, says)
    assert.doesNotMatch(done.err, /wrong-token|^ {4}at /m)
  }
})

/** A screen is cleared, a link hides its target, text runs backwards, a line is forged. */
const EVIL = 'a\u001b[2J\u001b]8;;x\u0007\u202e\u2066b\u200d\u009bm\r\n- forged'

async function seedEvil(): Promise<void> {
  const post = async (path: string, body: unknown) => {
    const answer = await cluster.post(path, body, { token: TOKENS.BROKER_TOKEN_INGEST })
    assert.equal(answer.status, 200, answer.text)
    return answer.json
  }
  const naive = new Date().toISOString().slice(0, -1)
  const digest = digestOf('evil')
  const pod = { pod_name: EVIL, workload_name: EVIL, workload_kind: EVIL, node_name: EVIL, time_stamp: naive }
  await post('/pod/spec', replica(EVIL, [container(EVIL, digest)], pod))
  await post('/pod/syscalls', [
    { pod_name: EVIL, pod_namespace: EVIL, syscalls: ['read'], arch: 'x86_64', time_stamp: naive },
  ])
  const denial = { podUid: EVIL, podName: EVIL, podNamespace: EVIL, syscall: EVIL, action: EVIL, count: 1 }
  await post('/seccomp/denials', { node: EVIL, capturing: true, intervalSeconds: 60, denials: [denial] })
  const of = {
    ...{ pod_namespace: EVIL, pod_name: EVIL, workload_kind: EVIL, workload_name: EVIL, container_name: EVIL },
    image_digest: digest,
  }
  const executable = {
    ...{ ...of, kind: 'exec', path: `/${EVIL}`, path_complete: true, source: 'ebpf', origin: 'memfd' },
    ...{ first_seen: naive, last_seen: naive },
  }
  await post('/runtime/executables', [executable])
  const one = { container_uid: EVIL, pod_uid: EVIL, pod_name: EVIL, namespace: EVIL, container: EVIL }
  const ts = new Date().toISOString()
  await post('/pod/compute/batch', {
    ...{ node: EVIL, ts, interval_ms: 5_000 },
    containers: [{ ...one, cpu: {}, memory: { current: 1 } }],
  })
  const blame = [{ kind: 'pod', ref: EVIL, container_uid: EVIL, count: 1, wait_ns: 1_000 }]
  const minute = { ...one, cpu: { usage_millis: { avg: 1, max: 2 } }, memory: {}, blame }
  await post('/pod/compute/history/batch', { node: EVIL, ts, containers: [minute] })
  await profileSnapshots.run(jobContext)
}

test('on a terminal no name of the cluster moves the cursor, hides text or begins a line', async () => {
  await seedEvil()
  const evil = ['-n', EVIL, `${EVIL}/${EVIL}`]
  const calls: readonly string[][] = [
    ['workloads', '-n', EVIL],
    ['workload', ...evil],
    ['seccomp', 'profiles', '-n', EVIL],
    ['seccomp', 'denials', '-n', EVIL],
    ['runtime', ...evil],
    ['unshipped', '-n', EVIL],
    ['contention', '-n', EVIL],
    ['usage', '-n', EVIL],
    ['sizing', ...evil],
    ['nodes'],
    ['status'],
  ]
  for (const words of calls)
    for (const format of ['table', 'wide', 'json', 'ndjson', 'yaml', 'csv', 'name', 'jsonpath={.}']) {
      const { code, out, err } = await ctb([...words, '-o', format, '--color', 'never'], { columns: 80 })
      assert.equal(code, 0, err)
      assert.ok(out.includes('a'), `${words.join(' ')} ${format}`)
      assert.doesNotMatch(out + err, /[^\P{C}\n]/u, `${words.join(' ')} ${format}`)
      assert.doesNotMatch(out + err, /^- forged/m, `${words.join(' ')} ${format}`)
      if (format === 'table' || format === 'wide')
        for (const line of out.split('\n')) assert.ok([...line].length <= 80, line)
    }
  for (const path of ['/node/status', '/metrics', `/runtime/unshipped?namespace=${encodeURIComponent(EVIL)}`]) {
    const { code, out } = await ctb(['get', path], { columns: 80 })
    assert.equal(code, 0)
    assert.doesNotMatch(out, /[^\P{C}\n]/u)
  }
})

test('a profile that could not be computed is said, and the last good one is shown', async () => {
  const failing = snapshotsBy(() => Promise.reject(new Error('the disk is full')))
  await failing.run(jobContext)
  const { code, out, err } = await ctb(['workloads', '-o', 'wide', '--color', 'never'], { columns: 120 })
  assert.equal(code, 0)
  assert.match(out, /^shop +Deployment +web +risk +\d/m)
  assert.match(err, /^kube-system\/Deployment\/coredns: the newest profile could not be computed: /m)
  assert.match(err, /^\d more workloads could not be computed: see LAST ERROR$/m)
  assert.doesNotMatch(out + err, /[^\P{C}\n]|^- forged/mu)
})

test('colours mark what is wrong', async () => {
  /** The texts that are not plain, with their colours. */
  const marked = async (...words: string[]) => {
    const { out } = await ctb([...words, '--color', 'always'])
    const parts = out.split('\u001b[').map((part) => part.split('m'))
    return parts.slice(1).flatMap(([code, text]) => (code === '0' ? [] : [`${text} ${code}`]))
  }
  assert.deepEqual(await marked('nodes'), ['true 31'])
  assert.deepEqual(await marked('runtime', WEB), ['writableLayer 31', 'writableLayer 31'])
  assert.deepEqual(await marked('findings', '-n', 'shop'), ['high 31'])
  assert.deepEqual(await marked('usage', '-n', 'shop'), ['200.0Mi 31', '180.0Mi 31'])
  assert.deepEqual(await marked('seccomp', 'profiles', '-n', 'shop'), ['false 33', '3 31'])
})

test('policies say on stderr which connections they leave out, also where they go to a file', async () => {
  const left = [
    'left out: ingress from "lab/Deployment/a [2J ]8;;http:": no labels of its pods are known',
    'left out: ingress from lab/Pod/ghost-1: no labels of its pods are known',
  ]
  const words = ['policy', 'generate', 'shop/Deployment/api']
  for (const more of [[], ['-o', 'json'], ['--out', pathOf('api.yaml')]]) {
    const { code, err } = await ctb([...words, ...more])
    assert.deepEqual([code, err], [0, `${left.join('\n')}\n`])
  }
  const dropped = await ctb(['policy', 'generate', 'shop/Deployment/web'])
  assert.match(
    dropped.err,
    /^left out: dropped, so not allowed: shop\/Deployment\/web to shop\/StatefulSet\/db on 5432/m,
  )
  const printed = await ctb([...words, '--print-request'])
  assert.match(printed.out, /^curl -sS .*\/workloads\/shop\/Deployment\/api\/networkpolicy\?output=yaml'\n$/)
  const tried = await ctb(['policy', 'try', '-f', pathOf('api.yaml'), '--print-request'])
  assert.match(tried.out, /^curl -sS -X POST .* --data-binary @- '.*\/networkpolicy\/try'\n$/)
  assert.deepEqual([printed.err, tried.code, tried.err], ['', 0, ''])
})

test('runtime names containers that run and that nobody watches', async () => {
  const [namespace, name] = ['half', 'half-1']
  const pod = replica(namespace, [container('web', digestOf('web')), container('side', digestOf('side'))], {
    ...{ pod_name: name, time_stamp: new Date().toISOString().slice(0, -1) },
  })
  const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` }
  assert.equal((await cluster.post('/pod/spec', pod, { headers })).status, 200)
  const fields = { pod_namespace: namespace, pod_name: name, container_name: 'web', image_digest: digestOf('web') }
  assert.equal((await cluster.post('/runtime/coverage', [heartbeat(fields)], { headers })).status, 200)
  const whole = await ctb(['runtime', 'half/Deployment/web'])
  assert.deepEqual([whole.code, whole.err], [0, 'side: not covered: no_runtime_data\nnothing was found\n'])
  const one = await ctb(['runtime', 'half/Deployment/web', '--container', 'web'])
  assert.deepEqual([one.code, one.err], [0, 'nothing was found\n'])
})
