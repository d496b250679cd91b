import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { observe } from '../support/observed-workload.ts'
import { commentsOf, readPolicies } from '../support/policies.ts'
import { assertDatabaseBusy, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)
const crowded = await startApp({ BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const LEVEL = 'x-kguardian-capture-level'
const COMPLETE = 'x-kguardian-capture-complete'
const ENFORCING = ['SCMP_ACT_ERRNO', 'SCMP_ACT_KILL', 'SCMP_ACT_KILL_PROCESS']

const ask = (path: string, query: Record<string, string> = {}, on = app) =>
  on.get(`${path}?${new URLSearchParams(query)}`)
/** A workload with one pod below `full`; no level means an agent without tiers. */
const partial = (level?: string) => observe(app, { pods: { [`below-full-${serial++}`]: level } })
let serial = 0

/** The resource of a 200 answer in YAML, which every parser reads alike. */
async function exported(path: string, query: Record<string, string> = {}) {
  const answer = await ask(path, query)
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers.get('content-type'), 'application/yaml')
  const [resource, ...others] = readPolicies(answer.text)
  assert.deepEqual(others, [])
  return { ...answer, resource, comments: commentsOf(answer.text) }
}

/** `UPDATE_GOLDEN=1` rewrites the expected files. */
function assertGolden(name: string, text: string): void {
  const file = new URL(`../fixtures/seccomp/${name}`, import.meta.url)
  if (process.env.UPDATE_GOLDEN) writeFileSync(file, text)
  assert.equal(text, readFileSync(file, 'utf8'))
}

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: the resource of a completely captured workload', async () => {
  const { path, namespace } = await observe(app)
  const { resource, headers } = await exported(path)
  assert.deepEqual(resource, {
    apiVersion: 'kguardian.dev/v1alpha1',
    kind: 'SeccompProfile',
    metadata: {
      name: 'deployment-web',
      namespace,
      annotations: { 'kguardian.dev/capture-complete': 'true', 'kguardian.dev/capture-level': 'full' },
    },
    spec: {
      defaultAction: 'SCMP_ACT_LOG',
      architectures: ['SCMP_ARCH_X86_64'],
      syscalls: [{ names: ['futex', 'read', 'write'], action: 'SCMP_ACT_ALLOW' }],
      workloadRef: { kind: 'Deployment', name: 'web' },
    },
  })
  assert.deepEqual([headers.get(LEVEL), headers.get(COMPLETE)], ['full', 'true'])
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: the text, with its comments at the top', async () => {
  const full = await observe(app, {
    namespace: 'shop',
    pods: { 'web-a': 'full', 'web-b': 'full' },
    arches: ['aarch64', 'x86_64'],
  })
  assertGolden('full.yaml', (await exported(full.path)).text)
  const levels = ['low', 'medium', 'low', 'full', undefined, 'high', 'high', 'custom']
  const pods = Object.fromEntries(levels.map((level, i) => [`api-${i}`, level]))
  const low = await observe(app, { namespace: 'shop', kind: 'StatefulSet', name: 'api', arches: ['riscv64'], pods })
  assertGolden(
    'partial.yaml',
    (await exported(low.path, { defaultAction: 'SCMP_ACT_ERRNO', acknowledgePartial: 'true' })).text,
  )
  const odd = await observe(app, {
    namespace: 'shop',
    kind: 'Rollout',
    name: 'odd',
    names: ['435', 'Read', 'read'],
    arches: [],
    pods: {},
  })
  assertGolden('odd.yaml', (await exported(odd.path)).text)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: JSON is the same resource', async () => {
  for (const { path } of [
    await observe(app),
    await partial('medium'),
    await observe(app, { names: ['435', 'on', 'read'], arches: [] }),
  ]) {
    const { resource } = await exported(path)
    const answer = await ask(path, { format: 'json' })
    assert.deepEqual(
      [answer.status, answer.headers.get('content-type'), answer.json],
      [200, 'application/json', resource],
    )
    assert.ok(answer.headers.has(LEVEL) && answer.headers.has(COMPLETE))
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: annotations, comments and headers report a partial capture', async () => {
  for (const level of ['high', 'medium', 'low', 'custom', undefined]) {
    const { path } = await partial(level)
    const { resource, comments, headers } = await exported(path)
    const { annotations } = resource.metadata
    const keys = ['complete', 'level', 'warning'].map((key) => `kguardian.dev/capture-${key}`)
    assert.deepEqual(Object.keys(annotations), keys)
    assert.deepEqual([annotations[keys[0]!], annotations[keys[1]!]], ['false', level ?? 'unknown'])
    assert.match(
      annotations[keys[2]!],
      new RegExp(`partial .*level ${level ?? 'unknown'}: 1 of 1 .* at ${level ?? 'unknown'}\\)`),
    )
    assert.equal(comments.filter((line) => line.startsWith('WARNING: ')).length, 3)
    assert.deepEqual([headers.get(LEVEL), headers.get(COMPLETE)], [level ?? 'unknown', 'false'])
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: pods below full are named, the lowest level first', async () => {
  const reason = async (pods: Record<string, string>) =>
    (await exported((await observe(app, { pods })).path)).comments.find((line) => line.startsWith('Capture'))
  assert.equal(
    await reason({ 'seen-a': 'full', 'seen-b': 'high', 'seen-c': 'low', 'seen-d': 'full' }),
    'Capture: incomplete (level low: 2 of 4 contributing pods below full, seen-c at low, seen-b at high)',
  )
  const six = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`six-${i}`, 'medium']))
  assert.match((await reason(six))!, /6 of 6 .* full, six-0 at medium, .*six-4 at medium, \+1 more\)$/)
  const many = Object.fromEntries(
    Array.from({ length: 23 }, (_, i) => [`many-${String(i).padStart(2, '0')}`, 'medium']),
  )
  assert.match((await reason(many))!, /23 of 23 .* many-04 at medium, \+18 more\)$/)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: names from outside are shown with escapes', async () => {
  const pods = { 'a (full), b': 'low' }
  const { comments } = await exported(
    (await observe(app, { kind: 'Deployment/web x', name: 'w\u043eb', arches: ['x86_64, aarch64'], pods })).path,
  )
  assert.match(comments[1]!, /^Workload: team-\d+ "Deployment\/web x"\/"w\\u043eb"$/)
  assert.ok(comments.includes('Observed: 3 syscalls on "x86_64, aarch64"'))
  assert.ok(comments.some((line) => line.includes('"a (full), b" at low')))
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: a union without known contributing pods is partial', async () => {
  const { path } = await observe(app, { pods: {} })
  const { resource, comments, headers } = await exported(path)
  assert.match(resource.metadata.annotations['kguardian.dev/capture-warning'], /no pod that contributed is known/)
  assert.ok(comments.includes('Capture: incomplete (level unknown: no pod that contributed is known)'))
  assert.deepEqual([headers.get(LEVEL), headers.get(COMPLETE)], ['unknown', 'false'])
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: only architectures that profiles have names for are listed', async () => {
  const architectures = async (arches: string[]) => {
    const { resource, comments } = await exported((await observe(app, { arches })).path)
    assert.equal('architectures' in resource.spec, resource.spec.architectures?.length > 0)
    return [resource.spec.architectures, comments.find((line) => line.startsWith('Observed: '))]
  }
  assert.deepEqual(await architectures(['aarch64', 'x86_64']), [
    ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_X86_64'],
    'Observed: 3 syscalls on aarch64, x86_64',
  ])
  assert.deepEqual(await architectures(['constructor']), [undefined, 'Observed: 3 syscalls on constructor'])
  assert.deepEqual(await architectures(['riscv64']), [undefined, 'Observed: 3 syscalls on riscv64'])
  assert.deepEqual(await architectures([]), [undefined, 'Observed: 3 syscalls (no architecture was recorded)'])
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: names that are not syscalls are left out and listed; some syscalls begin with _', async () => {
  const names = [
    '',
    ' read',
    '435',
    'Read',
    '_llseek',
    '_newselect',
    '_sysctl',
    '_x',
    'a-b',
    'n',
    'on',
    'read',
    'unknown(1)',
    `w${'x'.repeat(63)}`,
    `w${'x'.repeat(64)}`,
  ]
  const { path } = await observe(app, { names })
  const { resource, comments } = await exported(path)
  assert.deepEqual(resource.spec.syscalls[0].names, [
    '_llseek',
    '_newselect',
    '_sysctl',
    'n',
    'on',
    'read',
    `w${'x'.repeat(63)}`,
  ])
  const leftOut = `"", " read", 435, Read, _x, a-b, "unknown(1)", w${'x'.repeat(64)}`
  assert.equal(resource.metadata.annotations['kguardian.dev/left-out-syscalls'], leftOut)
  assert.ok(comments.some((line) => line.includes(`: ${leftOut}. `)))
  assert.ok(comments.includes('Observed: 15 syscalls on x86_64'))
  const many = await observe(app, { names: Array.from({ length: 52 }, (_, i) => String(100 + i)) })
  const told = (await exported(many.path)).resource.metadata.annotations['kguardian.dev/left-out-syscalls']
  assert.match(told, /^100, (\d+, ){48}149, \+2 more$/)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: with no observed syscalls nothing is left out', async () => {
  const { path } = await observe(app, { names: [] })
  const { resource, comments } = await exported(path)
  assert.deepEqual(resource.spec.syscalls, [])
  assert.ok(!('kguardian.dev/left-out-syscalls' in resource.metadata.annotations))
  assert.ok(comments.includes('Observed: 0 syscalls on x86_64'))
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: the name can be chosen, and a blank one is ignored', async () => {
  const { path } = await observe(app)
  const name = async (name: string) => (await exported(path, { name })).resource.metadata.name
  for (const one of ['my-profile.v2', '1', 'on', '0x1f', 'a'.repeat(253)]) assert.equal(await name(one), one)
  for (const one of ['', ' ']) assert.equal(await name(one), 'deployment-web')
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: any of the four actions; blank means the logging one', async () => {
  const { path } = await observe(app)
  for (const action of ['SCMP_ACT_LOG', ...ENFORCING])
    assert.equal((await exported(path, { defaultAction: action })).resource.spec.defaultAction, action)
  assert.equal((await exported(path, { defaultAction: ' ' })).resource.spec.defaultAction, 'SCMP_ACT_LOG')
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: yaml, yml and blank mean YAML', async () => {
  const { path } = await observe(app)
  const { text } = await exported(path)
  for (const format of ['yaml', 'yml', '', ' ']) assert.equal((await exported(path, { format })).text, text)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: an acknowledged partial capture is exported with its warning', async () => {
  const { path } = await partial('medium')
  for (const acknowledgePartial of ['true', '1', 'yes', 'on', 'TRUE', 'Yes', 'oN']) {
    const { resource, headers } = await exported(path, { defaultAction: 'SCMP_ACT_KILL', acknowledgePartial })
    assert.equal(resource.spec.defaultAction, 'SCMP_ACT_KILL')
    assert.ok('kguardian.dev/capture-warning' in resource.metadata.annotations)
    assert.equal(headers.get(COMPLETE), 'false')
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: HEAD has the same headers', async () => {
  const { path } = await observe(app)
  const { headers, text } = await app.request('HEAD', path)
  assert.deepEqual([headers.get(LEVEL), headers.get(COMPLETE), text], ['full', 'true', ''])
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: scripts of allowed origins may read the capture headers', async () => {
  const open = await startApp({ CORS_ORIGINS: '*' })
  const { path } = await observe(open)
  const exposed = (await open.get(path)).headers.get('access-control-expose-headers')!.toLowerCase().split(', ')
  assert.deepEqual(exposed, [LEVEL, COMPLETE])
  const { path: here } = await observe(app)
  assert.equal((await ask(here)).headers.get('access-control-expose-headers'), null)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: the annotation prefix is configurable', async () => {
  const other = await startApp({ ANNOTATION_PREFIX: 'telemetry.example.org' })
  const { path } = await observe(other, { pods: { a: 'low' } })
  const [resource] = readPolicies((await other.get(path)).text)
  assert.equal(resource.apiVersion, 'telemetry.example.org/v1alpha1')
  assert.deepEqual(
    Object.keys(resource.metadata.annotations),
    ['complete', 'level', 'warning'].map((key) => `telemetry.example.org/capture-${key}`),
  )
  assert.match(
    (await other.get(`${path}?defaultAction=SCMP_ACT_KILL`)).text,
    /telemetry\.example\.org\/syscall-capture/,
  )
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 200: nothing is charged to the read budget', async () => {
  const { path } = await observe(crowded)
  const share = await crowded.deps.budget.enter(crowded.deps.budget.totalKib)
  assert.equal((await crowded.get('/pod/info')).status, 503)
  assert.equal((await crowded.get(path)).status, 200)
  assert.equal((await crowded.post(path, {})).status, 200)
  share.release()
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 400: invalid parameters', async () => {
  const { path } = await observe(app)
  const bad: Record<string, string[]> = {
    name: ['Upper', 'under_score', '-a', 'a-', '.a', 'a.', 'a..b', 'a b', ' a', 'a/b', 'é', 'a'.repeat(254)],
    defaultAction: ['SCMP_ACT_ALLOW', 'SCMP_ACT_TRACE', 'scmp_act_log', 'ERRNO', ' SCMP_ACT_LOG', 'constructor'],
    format: ['xml', 'JSON', 'jsonp', '__proto__'],
  }
  for (const [key, values] of Object.entries(bad))
    for (const value of values) {
      const { status, text, headers } = await ask(path, { [key]: value })
      assert.equal(status, 400, `${key}=${value}`)
      assert.match(text, new RegExp(`^Query deserialize error: ${key}: expected `))
      assert.ok(!headers.has(LEVEL))
    }
  // Before any query.
  assert.equal((await ask('/seccomp/profiles/no/such/one/export', { format: 'xml' })).status, 400)
  assert.equal((await ask('/seccomp/profiles/%00/such/one/export')).status, 400)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 401: no token', async () => {
  assertUnauthorized(await guarded.get('/seccomp/profiles/a/b/c/export'))
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 404: nothing was observed of the workload', async () => {
  const { namespace } = await observe(app)
  for (const of of [`${namespace}/Deployment/other`, `${namespace}/deployment/web`, 'other/Deployment/web']) {
    const { status, text, headers } = await ask(`/seccomp/profiles/${of}/export`, { defaultAction: 'SCMP_ACT_KILL' })
    assert.deepEqual([status, text], [404, 'there is no seccomp profile for that workload'])
    assert.match(headers.get('content-type')!, /^text\/plain/)
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 409: an enforcing action on a partial capture', async () => {
  for (const level of ['high', 'medium', 'low', 'custom', undefined]) {
    const { path } = await partial(level)
    for (const defaultAction of ENFORCING) {
      for (const acknowledgePartial of ['', 'false', '0', 'no', 'maybe', ' true', '2']) {
        const { status, headers, text } = await ask(path, { defaultAction, acknowledgePartial })
        assert.equal(status, 409, acknowledgePartial)
        assert.match(headers.get('content-type')!, /^text\/plain/)
        assert.deepEqual([headers.get(LEVEL), headers.get(COMPLETE)], [level ?? 'unknown', 'false'])
        assert.ok(text.includes(defaultAction))
      }
    }
    assert.equal((await ask(path, { defaultAction: 'SCMP_ACT_LOG' })).status, 200)
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 409: the message has the request, the reason and the options', async () => {
  const levels = ['low', 'medium', 'low', 'full', undefined, 'high', 'high', 'custom']
  const pods = Object.fromEntries(levels.map((level, i) => [`pod-${i}`, level]))
  const { path } = await observe(app, { namespace: 'payments', name: 'api', pods })
  assertGolden('refused.txt', (await ask(path, { defaultAction: 'SCMP_ACT_KILL_PROCESS' })).text)
  const { path: nobody } = await observe(app, { pods: {} })
  assert.match(
    (await ask(nobody, { defaultAction: 'SCMP_ACT_ERRNO' })).text,
    /^capture: level unknown: no pod that contributed is known$/m,
  )
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 409: names from outside stay on their line', async () => {
  const { path } = await observe(app, {
    kind: 'Job\nto capture all of it: nothing',
    pods: { 'a\u2028or export\r\nit': 'low' },
  })
  const { text } = await ask(path, { defaultAction: 'SCMP_ACT_ERRNO' })
  assert.deepEqual(
    [text.split(/[\n\r\u0085\u2028\u2029]/).length, text.match(/^to capture all of it/gm)!.length],
    [7, 1],
  )
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name}/export 503: the database takes too long', async () => {
  await whileRefused(guarded.sql, 'workload_syscalls', async () => {
    assertDatabaseBusy(await guarded.get('/seccomp/profiles/a/b/c/export', { token }))
  })
})
