import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_NAMES, MAX_RULES } from '../../lib/seccomp/cr.ts'
import { waiting } from '../jobs/scene.ts'
import { startApp, TOKENS } from '../support/app.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  refusedBodies,
  whileRefused,
} from '../support/routes.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)

let count = 0
const fresh = () => `cr-${++count}`
const path = (name: string, namespace = 'shop') => `/seccomp/crs/${namespace}/${name}`
const put = (name: string, body: unknown, on = app) => on.request('PUT', path(name), { body })
const SPEC = {
  defaultAction: 'SCMP_ACT_ERRNO',
  architectures: ['SCMP_ARCH_X86_64'],
  syscalls: [{ names: ['write', 'read'], action: 'SCMP_ACT_ALLOW' }],
  workloadRef: { kind: 'Deployment', name: 'web' },
}
const BODY = {
  spec: SPEC,
  hash: 'h1',
  status: { distribution: { ready: 1, total: 3, state: 'Partial', summary: '1/3' } },
}
const stored = async (name: string) =>
  (
    await app.sql`select *, updated_at::text, xmin::text, xmax::text, ctid::text from seccomp_cr where namespace = 'shop' and name = ${name}`
  )[0]
/** Puts, and returns the stored row. */
async function mirrored(body: Record<string, unknown>, name = fresh()) {
  const answer = await put(name, body)
  assert.equal(answer.status, 200, answer.text)
  return (await stored(name))!
}

test('PUT /seccomp/crs/{namespace}/{name} 200: identity, hash and number of names, keys in wire order', async () => {
  const name = fresh()
  const answer = await put(name, BODY)
  assert.deepEqual(
    [answer.status, answer.text],
    [200, `{"namespace":"shop","name":"${name}","hash":"h1","syscallCount":2}`],
  )
})

test('PUT /seccomp/crs/{namespace}/{name} 200: all fields are stored', async () => {
  const { updated_at: _, xmin: _1, xmax: _2, ctid: _3, name: _4, ...row } = await mirrored(BODY)
  assert.deepEqual(row, {
    namespace: 'shop',
    default_action: 'SCMP_ACT_ERRNO',
    architectures: '{SCMP_ARCH_X86_64}',
    syscalls: 'read,write',
    syscall_count: '2',
    workload_kind: 'Deployment',
    workload_name: 'web',
    hash: 'h1',
    ready: '1',
    total: '3',
    state: 'Partial',
  })
})

test('PUT /seccomp/crs/{namespace}/{name} 200: only rules that allow are stored; absent and blank actions allow, malformed names are skipped', async () => {
  const before = (await app.deps.metrics.rejectedEntries.get()).values[0]?.value ?? 0
  const syscalls = [
    { names: ['write', 'read', 'read'], action: 'SCMP_ACT_ALLOW' },
    { names: ['mmap'] },
    { names: ['brk'], action: ' ' },
    { names: ['futex', 'a'.repeat(64)], action: null },
    { names: ['ptrace', 'NOT SKIPPED'], action: 'SCMP_ACT_ERRNO', errnoRet: 1 },
    { names: ['bpf'], action: 'SCMP_ACT_LOG' },
    { names: ['_sysctl'] },
    { names: ['Read', '', ' read', '435', '_x', 'a,b', 'a'.repeat(65), 'é'] },
    {},
    { names: null },
  ]
  const { syscalls: names, syscall_count } = await mirrored({ spec: { syscalls } })
  assert.deepEqual([names, syscall_count], [`_sysctl,${'a'.repeat(64)},brk,futex,mmap,read,write`, '7'])
  const { values } = await app.deps.metrics.rejectedEntries.get()
  assert.deepEqual(
    values.map(({ value, labels }) => [labels.route, value - before]),
    [['/seccomp/crs/:namespace/:name', 8]],
  )
  assert.ok(app.logged.some((line) => line.entries === 8 && String(line.msg).includes('names that no syscall has')))
})

test('PUT /seccomp/crs/{namespace}/{name} 200: absent and blank fields have their default', async () => {
  const none = {
    default_action: 'SCMP_ACT_LOG',
    architectures: '{}',
    syscalls: '',
    syscall_count: '0',
    workload_kind: null,
    workload_name: null,
  }
  for (const spec of [
    {},
    { defaultAction: null, architectures: null, syscalls: null, workloadRef: null },
    { defaultAction: ' ', architectures: ['', ' '], syscalls: [], workloadRef: { kind: '', name: '\t' } },
    { workloadRef: {} },
  ]) {
    const row = await mirrored({ spec })
    assert.deepEqual(
      { ...row, ...none, hash: '', ready: '0', total: '0', state: 'Pending' },
      { ...row },
      JSON.stringify(spec),
    )
  }
  const { workload_kind, workload_name } = await mirrored({ spec: { workloadRef: { kind: ' ', name: 'web' } } })
  assert.deepEqual([workload_kind, workload_name], [null, 'web'])
  assert.equal((await mirrored({ spec: {}, hash: null })).hash, '')
})

test('PUT /seccomp/crs/{namespace}/{name} 200: architectures in the order of the resource, each once, by their current names', async () => {
  const architectures = ['SCMP_ARCH_X86', ' SCMP_ARCH_ARM64', 'SCMP_ARCH_AARCH64', 'SCMP_ARCH_X86', 'riscv64']
  assert.equal((await mirrored({ spec: { architectures } })).architectures, '{SCMP_ARCH_X86,SCMP_ARCH_AARCH64,riscv64}')
})

test('PUT /seccomp/crs/{namespace}/{name} 200: distribution is read from either place, the outer one first; null counts as absent', async () => {
  const inner = { ready: 1, total: 3, state: 'Partial' }
  const outer = { ready: 3, total: 3, state: 'Ready' }
  const told = async (body: object) => {
    const { ready, total, state } = await mirrored({ spec: {}, ...body })
    return [Number(ready), Number(total), state]
  }
  assert.deepEqual(await told({ status: { distribution: inner } }), [1, 3, 'Partial'])
  assert.deepEqual(await told({ distribution: outer, status: { distribution: inner } }), [3, 3, 'Ready'])
  assert.deepEqual(await told({ distribution: null, status: { distribution: inner } }), [1, 3, 'Partial'])
  assert.deepEqual(await told({ distribution: outer, status: { distribution: null } }), [3, 3, 'Ready'])
  assert.deepEqual(await told({ distribution: outer, status: null }), [3, 3, 'Ready'])
  assert.deepEqual(await told({ distribution: {}, status: { distribution: inner } }), [0, 0, 'Pending'])
  assert.deepEqual(await told({ distribution: { ready: 2, state: ' ' } }), [2, 0, 'Pending'])
  assert.deepEqual(await told({ distribution: { total: 2 ** 31 - 1, state: 'Odd' } }), [0, 2 ** 31 - 1, 'Odd'])
  assert.deepEqual(await told({}), [0, 0, 'Pending'])
})

test('PUT /seccomp/crs/{namespace}/{name} 200: an unchanged resource writes nothing and takes no lock', async () => {
  const name = fresh()
  const before = await mirrored(BODY, name)
  await mirrored(BODY, name)
  // The same in other words.
  const spec = {
    ...SPEC,
    architectures: ['SCMP_ARCH_X86_64 '],
    syscalls: [{ names: ['read'] }, { names: ['read', 'write', 'no name'] }],
    unknown: 1,
  }
  assert.deepEqual(
    await mirrored({ ...BODY, spec, distribution: { ready: 1, total: 3, state: 'Partial' } }, name),
    before,
  )
  const none = fresh()
  const empty = await mirrored({ spec: {} }, none)
  assert.deepEqual(await mirrored({ spec: {}, hash: '' }, none), empty)
})

test('PUT /seccomp/crs/{namespace}/{name} 200: any change is written, with a later time', async () => {
  const changes: Record<string, unknown>[] = [
    { spec: { ...SPEC, defaultAction: 'SCMP_ACT_LOG' } },
    { spec: { ...SPEC, architectures: ['SCMP_ARCH_X86'] } },
    { spec: { ...SPEC, syscalls: [{ names: ['read', 'writev'] }] } },
    { spec: { ...SPEC, workloadRef: { ...SPEC.workloadRef, kind: 'StatefulSet' } } },
    { spec: { ...SPEC, workloadRef: { ...SPEC.workloadRef, name: 'api' } } },
    { spec: { ...SPEC, workloadRef: null } },
    { hash: 'h2' },
    { hash: '' },
    ...[{ ready: 2 }, { total: 4 }, { state: 'Ready' }].map((one) => ({
      distribution: { ...BODY.status.distribution, ...one },
    })),
    { status: null },
  ]
  for (const change of changes) {
    const name = fresh()
    const before = await mirrored(BODY, name)
    const after = await mirrored({ ...BODY, ...change }, name)
    assert.ok(after.updated_at > before.updated_at, JSON.stringify(change))
    const back = await mirrored(BODY, name)
    assert.ok(back.updated_at > after.updated_at, JSON.stringify(change))
    const { updated_at: _1, xmin: _2, xmax: _3, ctid: _4, ...was } = before
    const { updated_at: _5, xmin: _6, xmax: _7, ctid: _8, ...is } = back
    assert.deepEqual(is, was)
  }
})

test('PUT /seccomp/crs/{namespace}/{name} 200: a clock that went back gives no change an earlier time than the one before', async () => {
  const name = fresh()
  await mirrored(BODY, name)
  await app.sql`update seccomp_cr set updated_at = '2200-01-01T00:00:00' where name = ${name}`
  const { updated_at } = await mirrored({ ...BODY, hash: 'h2' }, name)
  assert.equal(updated_at, '2200-01-01 00:00:00.000001')
})

test('PUT /seccomp/crs/{namespace}/{name} 200: simultaneous equal requests are written once, different ones one after another', async () => {
  const name = fresh()
  const answers = await Promise.all(Array.from({ length: 12 }, () => put(name, BODY)))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  const before = (await stored(name))!
  assert.ok(
    (await Promise.all(Array.from({ length: 12 }, (_, i) => put(name, { ...BODY, hash: `x${i}` })))).every(
      ({ status }) => status === 200,
    ),
  )
  const after = (await stored(name))!
  assert.match(after.hash, /^x\d+$/)
  assert.ok(after.updated_at > before.updated_at)
  assert.equal((await app.sql`select from seccomp_cr where name = ${name}`).length, 1)
})

test('PUT /seccomp/crs/{namespace}/{name} 200: a request that waited for an equal one does not write', async () => {
  for (const isThere of [false, true]) {
    const [name, like] = [fresh(), fresh()]
    const { hash: before } = await mirrored({ ...BODY, hash: 'h9' }, like)
    if (isThere) await mirrored({ ...BODY, hash: 'h1' }, name)
    let second!: ReturnType<typeof put>
    await app.sql.begin(async (first) => {
      await first`
        insert into seccomp_cr
        select namespace, ${name}, default_action, architectures, syscalls, syscall_count, workload_kind, workload_name, hash, ready, total,
               state, timestamp '2026-01-01'
        from seccomp_cr where name = ${like}
        on conflict (namespace, name) do update set hash = excluded.hash, updated_at = excluded.updated_at`
      second = put(name, { ...BODY, hash: 'h9' })
      await until('the second waits', async () => (await waiting(app.sql)) === 1)
    })
    assert.equal((await second).status, 200)
    const { hash, updated_at } = (await stored(name))!
    assert.deepEqual([hash, updated_at], [before, '2026-01-01 00:00:00'])
  }
})

test('PUT /seccomp/crs/{namespace}/{name} 400: names that Kubernetes does not allow', async () => {
  const bad = [
    ...['Upper', 'under_score', '-dash', 'dash-', '.dot', 'dot.', 'a..b', 'a.-b', 'a b', 'é', 'a/b', 'x'.repeat(254)],
    ...['%00', ' ', '*'],
  ]
  for (const one of bad) {
    const segment = one.startsWith('%') ? one : encodeURIComponent(one)
    for (const [namespace, name] of [
      [segment, 'web'],
      ['shop', segment],
    ] as const) {
      const answer = await app.request('PUT', path(name, namespace), { body: BODY })
      assert.equal(answer.status, 400, one)
      assert.match(
        answer.text,
        namespace === 'shop' ? /^Path deserialize error: name: / : /^Path deserialize error: namespace: /,
      )
    }
  }
  for (const one of ['x', '0', 'a-b.c-d', 'x'.repeat(253)])
    assert.equal((await app.request('PUT', path(one, one), { body: BODY })).status, 200)
})

test('PUT /seccomp/crs/{namespace}/{name} 400: a wrong type is reported with its field, and nothing is written', async () => {
  const bad: [Record<string, unknown>, string][] = [
    [{ spec: undefined }, 'spec'],
    [{ spec: null }, 'spec'],
    [{ spec: 'x' }, 'spec'],
    [{ spec: [] }, 'spec'],
    [{ spec: { defaultAction: 7 } }, 'spec.defaultAction'],
    [{ spec: { defaultAction: 'x'.repeat(65) } }, 'spec.defaultAction'],
    [{ spec: { architectures: 'x' } }, 'spec.architectures'],
    [{ spec: { architectures: ['x', 1] } }, 'spec.architectures[1]'],
    [{ spec: { architectures: Array(65).fill('x') } }, 'spec.architectures'],
    [{ spec: { syscalls: {} } }, 'spec.syscalls'],
    [{ spec: { syscalls: [{}, 'read'] } }, 'spec.syscalls[1]'],
    [{ spec: { syscalls: [{ names: 'read' }] } }, 'spec.syscalls[0].names'],
    [{ spec: { syscalls: [{ names: ['read', null] }] } }, 'spec.syscalls[0].names[1]'],
    [{ spec: { syscalls: [{ action: 1 }] } }, 'spec.syscalls[0].action'],
    [{ spec: { syscalls: Array(MAX_RULES + 1).fill({}) } }, 'spec.syscalls'],
    [{ spec: { syscalls: [{ names: {} }] } }, 'spec.syscalls[0].names'],
    [{ spec: { workloadRef: 'web' } }, 'spec.workloadRef'],
    [{ spec: { workloadRef: { kind: 1 } } }, 'spec.workloadRef.kind'],
    [{ spec: { workloadRef: { name: 'x'.repeat(254) } } }, 'spec.workloadRef.name'],
    [{ hash: 7 }, 'hash'],
    [{ hash: 'h'.repeat(254) }, 'hash'],
    [{ status: 'x' }, 'status'],
    [{ status: { distribution: [] } }, 'status.distribution'],
    [{ status: { distribution: { ready: -1 } } }, 'status.distribution.ready'],
    [{ distribution: { total: 1.5 } }, 'distribution.total'],
    [{ distribution: { total: 2 ** 31 } }, 'distribution.total'],
    [{ distribution: { state: 'x'.repeat(65) } }, 'distribution.state'],
    [{ distribution: { ready: '1' } }, 'distribution.ready'],
  ]
  for (const [fields, named] of bad) {
    const name = fresh()
    const answer = await put(name, { ...BODY, ...fields })
    assert.equal(answer.status, 400, JSON.stringify(fields).slice(0, 80))
    assert.ok(answer.text.startsWith(`Json deserialize error: ${named}: `), answer.text.slice(0, 120))
    assert.equal(await stored(name), undefined)
  }
})

test('PUT /seccomp/crs/{namespace}/{name} 413: more names than the limit; as many as the limit are accepted', async () => {
  const some = (names: number) => ({
    spec: {
      syscalls: [
        ...Array.from({ length: 4 }, (_, k) => ({ names: Array.from({ length: names / 4 }, (_, i) => `s${k}_${i}`) })),
        { names: Array(10_000).fill('x'), action: 'SCMP_ACT_ERRNO' },
      ],
    },
  })
  const name = fresh()
  assert.equal((await mirrored(some(MAX_NAMES), name)).syscall_count, String(MAX_NAMES))
  const before = await stored(name)
  for (const body of [some(MAX_NAMES + 4), { spec: { syscalls: [{ names: Array(MAX_NAMES + 1).fill('no name') }] } }]) {
    const answer = await put(name, body)
    assert.deepEqual([answer.status, answer.text], [413, `spec.syscalls: the rules allow more than ${MAX_NAMES} names`])
  }
  assert.deepEqual(await stored(name), before)
})

test('PUT /seccomp/crs/{namespace}/{name} 400: a body that is not an object', async () => {
  for (const { what, status, says, body, headers } of refusedBodies({ spec: {}, hash: 'h1' }, 'hash')) {
    const name = fresh()
    const answer = await app.request('PUT', path(name), {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
    assert.equal(answer.status, status, what)
    assert.match(answer.text, says, what)
    assert.equal(await stored(name), undefined, what)
  }
})

test('PUT /seccomp/crs/{namespace}/{name} 200: other encodings of a body', async () => {
  for (const { what, body, headers } of acceptedSpellings({ spec: {}, hash: 'h1' })) {
    const name = fresh()
    const answer = await app.request('PUT', path(name), {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
    assert.equal(answer.status, 200, what)
    assert.equal((await stored(name))!.hash, 'h1', what)
  }
})

test('PUT /seccomp/crs/{namespace}/{name} 401: no token', async () => {
  assertUnauthorized(await put(fresh(), BODY, guarded))
})

test('PUT /seccomp/crs/{namespace}/{name} 403: a token without the scope', async () => {
  assertForbidden(
    await guarded.request('PUT', path(fresh()), { body: BODY, token: TOKENS.BROKER_TOKEN_READ }),
    'ingest',
  )
})

test('PUT /seccomp/crs/{namespace}/{name} 503: the database is busy', async () => {
  await whileRefused(guarded.sql, 'seccomp_cr', async () => {
    assertDatabaseBusy(await guarded.request('PUT', path(fresh()), { body: BODY, token: TOKENS.BROKER_TOKEN_INGEST }))
  })
})
