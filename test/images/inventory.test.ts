/** The image inventory that POST /pod/spec writes (docs/contract.md#images). */
import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { startApp } from '../support/app.ts'
import { age, container, newDigest, newNamespace, replica, rowLocks, versions } from '../support/images.ts'
import { startReplica, whileLocked } from '../support/routes.ts'
import { until } from '../support/until.ts'

const app = await startApp({ DB_STATEMENT_TIMEOUT_MS: '20000' })
const { sql } = app
const other = startReplica(app)
after(() => other.end())

type Row = Record<string, unknown>

async function post(body: unknown): Promise<Row> {
  const answer = await app.post('/pod/spec', body)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
/** The rows of Deployment `web` in a namespace, by container and digest. */
const rows = async (namespace: string): Promise<Row[]> => {
  const found = await sql<{ row: Row }[]>`
    select row_to_json(w) as row from workload_container w
    where pod_namespace = ${namespace} order by container_name, first_seen, image_digest`
  return found.map(({ row }) => row)
}
const only = async (namespace: string): Promise<Row> => {
  const found = await rows(namespace)
  assert.equal(found.length, 1, JSON.stringify(found))
  return found[0]!
}
const image = async (digest: string): Promise<Row | undefined> =>
  (await sql<{ row: Row }[]>`select row_to_json(m) as row from image m where digest = ${digest}`)[0]?.row
/** The row of a pod with one container. */
async function kept(fields: Row, more: Row = {}): Promise<Row> {
  const namespace = newNamespace()
  await post(replica(namespace, [container('app', newDigest(), fields)], more))
  return only(namespace)
}
async function malformed(field: string): Promise<number> {
  const { values } = await app.deps.metrics.imageMalformed.get()
  return values.find(({ labels }) => labels.field === field)?.value ?? 0
}
const range = (n: number) => Array.from({ length: n }, (_, i) => i)

// ---- Fields of a container

test('a row has the workload, the container, the image, the pod and the time of the database', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const body = replica(namespace, [container('app', digest, { state_reason: 'x' })], {
    time_stamp: '2001-01-01T00:00:00',
  })
  await post(body)
  const { first_seen, last_seen, ...row } = await only(namespace)
  assert.deepEqual(row, {
    cluster_id: 'primary',
    pod_namespace: namespace,
    workload_kind: 'Deployment',
    workload_name: 'web',
    container_name: 'app',
    image_digest: digest,
    container_kind: 'regular',
    image_ref: 'registry.test/team/app:v1',
    security_context: {},
    pod_security: {},
    last_pod_name: body.pod_name,
    state: 'running',
    state_reason: 'x',
    ref_seen_at: null,
  })
  assert.equal(first_seen, last_seen)
  const [{ is_now }] =
    (await sql`select abs(extract(epoch from now() at time zone 'utc' - ${first_seen as string}::text::timestamp)) < 30 as is_now`) as unknown as [
      Row,
    ]
  assert.equal(is_now, true)
  const stored = await image(digest)
  assert.deepEqual(stored, {
    digest,
    repository: 'registry.test/team/app',
    tags: ['v1'],
    digest_kind: 'repo',
    first_seen,
    last_seen,
  })
})

test('a post without containers causes no further statement', async () => {
  let asked = 0
  const { ingest } = app.db
  const counting = (statement: never) => {
    asked++
    return ingest(statement)
  }
  const counted = Object.create(app.db, { ingest: { value: counting } })
  const { recordInventory } = await import('../../lib/images/index.ts')
  for (const containers of [undefined, null, 'none', 7, {}, [], [null], [{ name: 'x' }]])
    await recordInventory({ ...app.deps, db: counted }, { pod_name: 'p', pod_namespace: 'n', containers })
  assert.equal(asked, 0)
  await recordInventory(
    { ...app.deps, db: counted },
    { pod_name: 'p', pod_namespace: newNamespace(), containers: [container('a', newDigest())] },
  )
  assert.equal(asked, 1)
})

for (const [what, fields] of Object.entries<Row>({
  'no name': { name: undefined },
  'a blank name': { name: ' ' },
  'a name that is no text': { name: 7 },
  'a name of 254 characters': { name: 'n'.repeat(254) },
  'a name of 253 characters and 254 bytes': { name: `${'n'.repeat(252)}é` },
  'a name no database can hold': { name: 'a\0b' },
  'half a surrogate pair in the name': { name: 'a\ud800' },
  'no kind': { kind: undefined },
  'an unknown kind': { kind: 'sidecar' },
  'a kind that is no text': { kind: ['init'] },
  'no image': { image: undefined },
  'a blank image': { image: '\t ' },
  'an image that is no text': { image: { name: 'x' } },
})) {
  test(`only the bad entry is skipped: ${what}`, async () => {
    const [namespace, good, bad] = [newNamespace(), newDigest(), newDigest()]
    await post(replica(namespace, [container('bad', bad, fields), container('good', good)]))
    assert.equal((await only(namespace)).container_name, 'good')
    assert.equal(await image(bad), undefined)
  })
}

test('a name of 253 characters, and kinds in any case', async () => {
  assert.equal((await kept({ name: 'n'.repeat(253) })).container_name, 'n'.repeat(253))
  for (const kind of ['init', 'Regular', 'EPHEMERAL'])
    assert.equal((await kept({ kind })).container_kind, kind.toLowerCase())
})

test('names of the longest length that do not compress', async () => {
  const text = (n: number) =>
    range(n)
      .map(() => String.fromCharCode(0x4e00 + Math.floor(Math.random() * 20_000)))
      .join('')
  const namespace = text(253)
  const body = replica(namespace, [container(text(84), newDigest())], {
    workload_kind: text(128),
    workload_name: text(253),
    pod_name: text(253),
  })
  await post(body)
  assert.equal((await only(namespace)).workload_name, body.workload_name)
})

test('the first usable entry of a name counts', async () => {
  const namespace = newNamespace()
  const [one, two] = [newDigest(), newDigest()]
  await post(replica(namespace, [container('app', two, { kind: 'x' }), container('app', one), container('app', two)]))
  assert.equal((await only(namespace)).image_digest, one)
})

test('64 containers are stored; further ones are dropped with a warning', async () => {
  const entries = range(70).map((i) => container(`c${String(i).padStart(2, '0')}`, newDigest()))
  for (const [sent, warnings] of [
    [64, 0],
    [70, 1],
  ] as const) {
    const namespace = newNamespace()
    app.logged.length = 0
    await post(replica(namespace, entries.slice(0, sent)))
    const names = (await rows(namespace)).map((row) => row.container_name)
    assert.deepEqual([names.length, names[0], names.at(-1)], [64, 'c00', 'c63'])
    assert.equal(app.logged.filter(({ level }) => level === 40).length, warnings)
  }
})

test('a reference of 1024 bytes is stored as sent; a longer or mangled one becomes malformed_reference, and is counted', async () => {
  for (const ref of ['a'.repeat(1024), 'é'.repeat(512), ' spaced ', 'UPPER'])
    assert.equal((await kept({ image: ref })).image_ref, ref)
  const before = await malformed('image_ref')
  const bad = [
    'a'.repeat(1025),
    `${'é'.repeat(512)}a`,
    'a\nb',
    'a\0b',
    'a\x7f',
    'a\x85',
    'a\u2028',
    '\u2029a',
    'a\ud800',
  ]
  for (const ref of bad) assert.equal((await kept({ image: ref })).image_ref, 'malformed_reference')
  assert.equal(await malformed('image_ref'), before + bad.length)
})

test('a digest needs its form and a known kind, else it is ignored', async () => {
  const good = newDigest()
  for (const [digest, digest_kind] of [
    ...[
      '',
      'sha256:',
      good.toUpperCase(),
      `${good}0`,
      good.slice(7),
      `sha512:${good.slice(7)}`,
      ` ${good}`,
      `${good}\n`,
      7,
      null,
      [good],
    ].map((one) => [one, 'repo']),
    ...['manifest', 'REPO', '', null, 7, undefined].map((kind) => [good, kind]),
  ] as [unknown, unknown][]) {
    const namespace = newNamespace()
    await post(replica(namespace, [container('app', undefined, { digest, digest_kind })]))
    assert.deepEqual(await rows(namespace), [], JSON.stringify([digest, digest_kind]))
  }
  assert.equal(await image(good), undefined)
})

test('a digest without a known kind is ignored beside a valid one, and makes no image', async () => {
  for (const digest_kind of ['manifest', 'REPO', '', null, 7, undefined]) {
    const [namespace, good, odd] = [newNamespace(), newDigest(), newDigest()]
    await post(replica(namespace, [container('odd', odd, { digest_kind }), container('app', good)]))
    assert.deepEqual(
      (await rows(namespace)).map((row) => row.image_digest),
      [good],
      JSON.stringify(digest_kind),
    )
    assert.equal(await image(odd), undefined)
  }
})

test('a malformed repository or tag is dropped and counted; null and blank are absent', async () => {
  const cases: [string, unknown, boolean][] = [
    ...[undefined, null, '', ' '].map((value): [string, unknown, boolean] => ['repository', value, false]),
    ...['r'.repeat(513), 'a\nb', 'a\0', 7, {}, 'a\udc00'].map((value): [string, unknown, boolean] => [
      'repository',
      value,
      true,
    ]),
    ...[undefined, null, '', ' '].map((value): [string, unknown, boolean] => ['tag', value, false]),
    ...['t'.repeat(129), 'a\u2028', ['v1'], true].map((value): [string, unknown, boolean] => ['tag', value, true]),
  ]
  for (const [field, value, isCounted] of cases) {
    const [digest, before] = [newDigest(), await malformed(field)]
    await post(replica(newNamespace(), [container('app', digest, { [field]: value })]))
    const stored = await image(digest)
    assert.deepEqual(field === 'tag' ? stored!.tags : stored!.repository, field === 'tag' ? [] : null)
    assert.equal(await malformed(field), before + (isCounted ? 1 : 0), `${field} ${JSON.stringify(value)}`)
  }
  const digest = newDigest()
  await post(replica(newNamespace(), [container('app', digest, { repository: 'r'.repeat(512), tag: 't'.repeat(128) })]))
  assert.deepEqual(
    [(await image(digest))!.repository, (await image(digest))!.tags],
    ['r'.repeat(512), ['t'.repeat(128)]],
  )
})

test('/metrics has the malformed parts, by the name that WIRE_NAMES chooses', async () => {
  const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)
  for (const [one, prefix] of [
    [app, 'svc'],
    [products, 'kguardian'],
  ] as const) {
    const containers = [container('app', newDigest(), { image: 'a\nb', repository: 7, tag: 7 })]
    assert.equal((await one.post('/pod/spec', replica(newNamespace(), containers))).status, 200)
    const { text } = await one.get('/metrics')
    for (const field of ['image_ref', 'repository', 'tag'])
      assert.match(text, new RegExp(`^${prefix}_image_inventory_malformed_total\\{field="${field}"\\} [1-9]`, 'm'))
  }
})

const CONTEXT = {
  privileged: true,
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  runAsUser: 0,
  runAsGroup: 2 ** 31,
  readOnlyRootFilesystem: false,
  capabilitiesAdd: ['A'],
  capabilitiesDrop: [],
  seccompProfileType: 'RuntimeDefault',
}
const POD_CONTEXT = { runAsNonRoot: true, runAsUser: 1, runAsGroup: 2, fsGroup: 3, seccompProfileType: 'Unconfined' }
const POD = {
  serviceAccountName: 'sa',
  automountServiceAccountToken: true,
  hostPID: false,
  hostIPC: true,
  hostNetwork: false,
  hostUsers: true,
  securityContext: POD_CONTEXT,
}

test('a security context keeps its known keys with values of the right type', async () => {
  assert.deepEqual(
    (await kept({ security_context: { ...CONTEXT, procMount: 'Default', run_as_user: 1 } })).security_context,
    CONTEXT,
  )
  const odd = [null, 'true', 1.5, {}, [], 2 ** 60, 'x'.repeat(65), 'a\0']
  for (const [key, value] of Object.entries(CONTEXT)) {
    for (const bad of odd) {
      if (Array.isArray(value) && Array.isArray(bad)) continue
      if (key === 'seccompProfileType' && bad === 'true') continue
      const { [key]: _, ...rest } = CONTEXT as Row
      assert.deepEqual(
        (await kept({ security_context: { ...CONTEXT, [key]: bad } })).security_context,
        rest,
        `${key} ${JSON.stringify(bad)}`,
      )
    }
  }
})

test('capabilities are sorted, without repeats, at most 64 of at most 64 characters', async () => {
  const names = range(70).map((i) => `C${String(i).padStart(2, '0')}`)
  const capabilitiesAdd = [...names].reverse().concat(names, 'x'.repeat(65), '', 'a\0')
  const { security_context } = await kept({
    security_context: { capabilitiesAdd: [...capabilitiesAdd, 7, null], capabilitiesDrop: ['B', 'A', 'B'] },
  })
  assert.deepEqual(security_context, { capabilitiesAdd: names.slice(0, 64), capabilitiesDrop: ['A', 'B'] })
})

test('pod_security keeps its known keys; malformed values are left out, a malformed whole becomes empty', async () => {
  assert.deepEqual(
    (await kept({}, { pod_security: { ...POD, extra: 1, securityContext: { ...POD_CONTEXT, extra: 1 } } }))
      .pod_security,
    POD,
  )
  for (const bad of [null, 'x', 7, [POD], true]) {
    assert.deepEqual((await kept({}, { pod_security: bad })).pod_security, {})
    assert.deepEqual((await kept({ security_context: bad })).security_context, {})
    const { securityContext: _, ...rest } = POD
    assert.deepEqual((await kept({}, { pod_security: { ...POD, securityContext: bad } })).pod_security, rest)
  }
  assert.deepEqual(
    (await kept({}, { pod_security: { ...POD, hostPID: 'yes', serviceAccountName: 'a\0' } })).pod_security,
    {
      ...Object.fromEntries(Object.entries(POD).filter(([key]) => key !== 'hostPID' && key !== 'serviceAccountName')),
    },
  )
})

test('a state is one of three or null; a reason needs a state and is cut after 64 characters', async () => {
  for (const state of ['running', 'waiting', 'terminated']) assert.equal((await kept({ state })).state, state)
  for (const state of ['Running', 'paused', '', null, 7, undefined]) {
    const row = await kept({ state, state_reason: 'Completed' })
    assert.deepEqual([row.state, row.state_reason], [null, null], String(state))
  }
  const reason = async (state_reason: unknown) => (await kept({ state: 'waiting', state_reason })).state_reason
  assert.equal(await reason('x'.repeat(64)), 'x'.repeat(64))
  assert.equal(await reason('x'.repeat(65)), 'x'.repeat(64))
  assert.equal(await reason(`${'x'.repeat(63)}😀`), 'x'.repeat(63))
  for (const none of ['', ' ', null, 7, 'a\0', undefined]) assert.equal(await reason(none), null)
})

// ---- The pod is always written

test('no value of containers or pod_security prevents the pod from being written', async () => {
  const deep = (n: number) => `${'['.repeat(n)}${']'.repeat(n)}`
  const texts = [
    ...[
      'null',
      '"x"',
      '7',
      '1e999',
      '{}',
      '[]',
      '[null,7,"x",[],{}]',
      '{"0":{"name":"app"}}',
      '"\\u0000"',
      '["\\ud800"]',
      '{"\\u0000":1}',
    ],
    ...[
      deep(30_000),
      `[{"name":${deep(30_000)}}]`,
      `[{"name":"a","kind":"init","image":"x","security_context":${deep(30_000)}}]`,
    ],
    ...[
      '[{"__proto__":{"name":"a"}}]',
      `[${'0,'.repeat(90_000)}0]`,
      '{"__proto__":[]}',
      '[{"name":"a","kind":"__proto__","image":"constructor"}]',
    ],
  ]
  for (const key of ['containers', 'pod_security']) {
    for (const text of texts) {
      const body = replica('tolerant', key === 'containers' ? 0 : [container('app', newDigest())], {
        [key]: '@',
        pod_identity: 'written',
      })
      const answer = await app.post('/pod/spec', JSON.stringify(body).replace('"@"', text))
      assert.equal(answer.status, 200, `${key} ${text.slice(0, 40)}: ${answer.text}`)
      assert.equal((await app.get(`/pod/name/${body.pod_name}`)).json.pod_identity, 'written')
    }
  }
})

test('text that PostgreSQL cannot store is refused outside the inventory as before', async () => {
  for (const place of ['pod_identity', 'unknown_key']) {
    const answer = await app.post('/pod/spec', replica('shop', [container('a\0', newDigest())], { [place]: 'a\0b' }))
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Json deserialize error: ${place}: U\\+0000`))
  }
  assert.equal(
    (await app.post('/pod/traffic', { uuid: 'u', time_stamp: '2024-05-01T10:00:00', containers: 'a\0' })).status,
    400,
  )
})

test('a failed write of the inventory is logged without its values, and the pod is written', async () => {
  const secret = 'hunter2'
  await sql`alter table workload_container add constraint refused check (image_ref <> ${sql.unsafe(`'${secret}'`)})`
  const [bad, good] = [
    replica(newNamespace(), [container('app', newDigest(), { image: secret })]),
    replica(newNamespace(), [container('app', newDigest())]),
  ]
  app.logged.length = 0
  await Promise.all([post(replica('x', [container('a', newDigest())])), post(bad), post(good)])
  await sql`alter table workload_container drop constraint refused`
  assert.equal((await app.get(`/pod/name/${bad.pod_name}`)).status, 200)
  assert.deepEqual(await rows(bad.pod_namespace as string), [])
  assert.equal(
    (await only(good.pod_namespace as string)).last_pod_name,
    good.pod_name,
    'and its neighbours in one statement are too',
  )
  const warnings = app.logged.filter(({ level }) => level === 40)
  assert.equal(warnings.length, 1)
  assert.equal(warnings[0]!.msg, 'the image inventory of a pod was not written')
  assert.ok(!JSON.stringify(app.logged).includes(secret))
})

test('a post waits two seconds for a lock of the inventory, not for the statement timeout', async () => {
  const body = replica(newNamespace(), [container('app', newDigest())])
  // A statement that used up its timeout would be a 503.
  await whileLocked(sql, 'workload_container', async () => void (await post(body)))
  assert.deepEqual(await rows(body.pod_namespace as string), [])
})

// ---- Owners

test('a pod without an owner is its own workload; an incomplete or blank owner counts as none', async () => {
  for (const owner of [
    { workload_kind: null, workload_name: null },
    { workload_kind: 'Deployment', workload_name: null },
    { workload_kind: null, workload_name: 'web' },
    { workload_kind: '', workload_name: 'web' },
    { workload_kind: 'Deployment', workload_name: ' ' },
  ]) {
    const row = await kept({}, owner)
    assert.deepEqual([row.workload_kind, row.workload_name], ['Pod', row.last_pod_name])
  }
})

test('nothing is written without a namespace or a name, or when the post is refused', async () => {
  for (const [fields, status] of [
    [{ pod_namespace: null }, 200],
    [{ pod_namespace: ' ' }, 200],
    [{ pod_name: ' ' }, 200],
    [{ node_name: 7 }, 400],
  ] as [Row, number][]) {
    const digest = newDigest()
    const before = await malformed('tag')
    const body = replica(newNamespace(), [container('app', digest, { tag: 7 })], fields)
    assert.equal((await app.post('/pod/spec', body)).status, status)
    assert.equal(await image(digest), undefined, JSON.stringify(fields))
    assert.equal(await malformed('tag'), before)
  }
})

// ---- Later posts

test('a repeat writes and locks nothing, from any pod and process', async () => {
  const body = replica(
    newNamespace(),
    [container('app', newDigest(), { security_context: CONTEXT }), container('pull')],
    {
      pod_security: POD,
    },
  )
  await post(body)
  const [before, locks] = [await versions(sql), await rowLocks(sql)]
  const twin = { ...body, pod_name: `${body.pod_name}-twin` }
  await post(body)
  await post(twin)
  assert.equal(await other.post('/pod/spec', twin), 200)
  await age(sql, 0)
  const aged = await versions(sql)
  await post(body)
  assert.deepEqual(await versions(sql), aged)
  assert.equal(before.length, aged.length)
  assert.deepEqual(await rowLocks(sql), locks)
})

const CHANGES: [string, Row, Row, unknown][] = [
  ['container_kind', { kind: 'init' }, {}, 'init'],
  ['image_ref', { image: 'other' }, {}, 'other'],
  ['security_context', { security_context: { privileged: false } }, {}, { privileged: false }],
  ['pod_security', {}, { pod_security: { hostPID: false } }, { hostPID: false }],
  ['state', { state: 'waiting' }, {}, 'waiting'],
  ['state', { state: null }, {}, null],
  ['state_reason', { state_reason: 'Completed' }, {}, 'Completed'],
]
for (const [column, fields, more, expected] of CHANGES) {
  test(`a changed ${column} rewrites the row: ${JSON.stringify(expected)}`, async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    const first = replica(namespace, [container('app', digest)], { pod_security: POD })
    await post(first)
    const was = await only(namespace)
    await post({ ...first, containers: [container('app', digest, fields)], ...more })
    const is = await only(namespace)
    assert.deepEqual(is, { ...was, [column]: expected, last_seen: is.last_seen })
    assert.ok((is.last_seen as string) > (was.last_seen as string))
  })
}

test('a replica that waits or has ended does not hide one that runs, as long as the pod of that lives', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const runs = replica(namespace, [container('app', digest)])
  const stuck = (state: string, state_reason: string, fields: Row = {}) =>
    replica(namespace, [container('app', digest, { state, state_reason })], {
      pod_name: `${namespace}-stuck`,
      ...fields,
    })
  const seen = async () => {
    const { state, stateReason, running } = (await app.get(`/images/${digest}`)).json.workloads[0]
    const { items } = (await app.get(`/attestations/running?namespace=${namespace}`)).json
    assert.equal(items.length, running ? 1 : 0)
    return [state, stateReason, running]
  }
  await post(stuck('waiting', 'ContainerCreating'))
  assert.deepEqual(await seen(), ['waiting', 'ContainerCreating', false])
  await post(stuck('waiting', 'CreateContainerConfigError'))
  assert.deepEqual(await seen(), ['waiting', 'CreateContainerConfigError', false])
  await post(runs)
  assert.deepEqual(await seen(), ['running', null, true])
  const before = await only(namespace)
  await post(stuck('waiting', 'CreateContainerConfigError'))
  await post(stuck('terminated', 'Error', { pod_security: { hostPID: true } }))
  assert.deepEqual(await only(namespace), before)
  await age(sql, 301)
  await post(stuck('terminated', 'Error'))
  assert.deepEqual(await seen(), ['running', null, true])
  await post(stuck('waiting', 'CrashLoopBackOff'))
  assert.deepEqual(await seen(), ['waiting', 'CrashLoopBackOff', true], 'it runs, too')
  await post(stuck('terminated', 'Error'))
  assert.deepEqual(await seen(), ['waiting', 'CrashLoopBackOff', true], 'the other one runs')
  await post(runs)
  assert.equal((await app.post('/pod/mark_dead', { pod_name: runs.pod_name })).status, 200)
  assert.deepEqual(await seen(), ['running', null, true])
  await post(stuck('waiting', 'ImagePullBackOff'))
  assert.deepEqual(await seen(), ['waiting', 'ImagePullBackOff', false])
})

test('the pod that a row names may end while another one runs the image', async () => {
  const [namespace, digest, another] = [newNamespace(), newDigest(), newDigest()]
  const [first, second, third] = ['first', 'second', 'third'].map((name) =>
    replica(namespace, [container('app', digest)], { pod_name: `${namespace}-${name}` }),
  )
  const ended = (body: Row) => ({ ...body, containers: [container('app', digest, { state: 'terminated' })] })
  const state = async () => (await rows(namespace)).find((row) => row.image_digest === digest)!.state
  for (const body of [first!, second!, third!]) await post(body)
  await post(ended(first!))
  assert.equal(await state(), 'running')
  assert.equal((await app.post('/pod/mark_dead', { pod_name: first!.pod_name })).status, 200)
  await post(ended(third!))
  assert.equal(await state(), 'running')
  await post({ ...second!, containers: [container('app', another)], time_stamp: '2024-05-01T10:01:00' })
  await post(ended(third!))
  assert.equal(await state(), 'terminated')
})

test('an unchanged row or image is rewritten when older than 300 seconds, not before', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  await post(replica(namespace, [container('app', digest)]))
  await age(sql, 295)
  const was = [await only(namespace), await image(digest)]
  const body = replica(namespace, [container('app', digest)])
  await post(body)
  assert.deepEqual([await only(namespace), await image(digest)], was)
  await age(sql, 10)
  const [aged, agedImage] = [await only(namespace), await image(digest)]
  await post(body)
  const [row, stored] = [await only(namespace), await image(digest)]
  assert.deepEqual(row, { ...aged, last_seen: row.last_seen, last_pod_name: body.pod_name })
  assert.deepEqual(stored, { ...agedImage, last_seen: stored!.last_seen })
  assert.equal(row.last_seen, stored!.last_seen)
  assert.ok((row.last_seen as string) > (aged.last_seen as string))
})

test('a time never moves back', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const first = replica(namespace, [container('app', digest)])
  await post(first)
  await age(sql, -3600)
  const was = [await only(namespace), await image(digest)]
  await post({ ...first, containers: [container('app', digest, { state: 'waiting', tag: 'v2' })] })
  assert.deepEqual(
    [(await only(namespace)).last_seen, (await image(digest))!.last_seen],
    was.map((row) => row!.last_seen),
  )
  assert.equal((await only(namespace)).state, 'waiting')
  await age(sql, 3600)
})

test('the repository of an image is only filled in, and its kind only improves', async () => {
  const digest = newDigest()
  const after = async (fields: Row) => {
    await post(replica(newNamespace(), [container('app', digest, { repository: null, tag: null, ...fields })]))
    const { repository, digest_kind } = (await image(digest))!
    return [repository, digest_kind]
  }
  assert.deepEqual(await after({ digest_kind: 'pinned' }), [null, 'pinned'])
  assert.deepEqual(await after({ digest_kind: 'config' }), [null, 'config'])
  assert.deepEqual(await after({ digest_kind: 'pinned', repository: 'one' }), ['one', 'config'])
  assert.deepEqual(await after({ digest_kind: 'repo', repository: 'two' }), ['one', 'repo'])
  assert.deepEqual(await after({ digest_kind: 'config' }), ['one', 'repo'])
})

test('tags grow up to 32, stored ones first, in first-seen order', async () => {
  const digest = newDigest()
  const tags = range(40).map((i) => `t${i}`)
  const see = (seen: string[]) =>
    post(
      replica(
        newNamespace(),
        seen.map((tag, i) => container(`c${i}`, digest, { tag })),
      ),
    )
  await see(['t1', 't0', 't1'])
  assert.deepEqual((await image(digest))!.tags, ['t1', 't0'])
  await see(tags.slice(0, 31))
  assert.deepEqual((await image(digest))!.tags, ['t1', 't0', ...tags.slice(2, 31)])
  await see(tags)
  assert.deepEqual((await image(digest))!.tags, ['t1', 't0', ...tags.slice(2, 32)])
  const before = await versions(sql)
  await post(replica(newNamespace(), [container('app', undefined), container('pull')]))
  await see(['t39'])
  assert.equal(
    (await versions(sql)).filter((one) => !before.includes(one)).length,
    1,
    'a tag without room writes no image',
  )
})

test('a pod with a new digest is removed from the other rows of the container', async () => {
  const namespace = newNamespace()
  const [old, now, side] = [newDigest(), newDigest(), newDigest()]
  const body = replica(namespace, [container('app', old), container('side', side)])
  const twin = replica(namespace, [container('app', old), container('side', side)])
  await post(twin)
  await age(sql, 301)
  await post(body)
  await post({ ...body, containers: [container('app', now), container('side', side)] })
  const named = (await rows(namespace)).map((row) => [row.container_name, row.image_digest, row.last_pod_name])
  assert.deepEqual(named, [
    ['app', old, null],
    ['app', now, body.pod_name],
    ['side', side, body.pod_name],
  ])
})

for (const [what, containers] of [
  ['with another image', () => [container('app', newDigest())]],
  ['with the same image', (digest: string) => [container('app', digest)]],
  ['while it pulls an image', () => [container('app', undefined, { state: 'waiting' })]],
] as [string, (digest: string) => Row[]][]) {
  test(`a pod that changes its workload is removed from the rows of the former one, ${what}`, async () => {
    for (const [former, latter] of [
      [{ workload_kind: 'StatefulSet' }, { workload_kind: 'CloneSet' }],
      [{ workload_kind: null }, { workload_kind: 'Deployment' }],
    ] as [Row, Row][]) {
      const [namespace, elsewhere, digest] = [newNamespace(), newNamespace(), newDigest()]
      const body = replica(namespace, [container('app', digest), container('side', digest)], former)
      await post({ ...body, pod_namespace: elsewhere })
      await post(body)
      await post({ ...body, ...latter, containers: containers(digest) })
      await age(sql, 3600)
      const { workloads } = (await app.get(`/images/${digest}`)).json
      const left = (workloads as Row[]).filter((one) => one.workloadKind !== latter.workload_kind)
      assert.deepEqual(
        left.filter((one) => one.namespace === namespace).map((one) => [one.containerName, one.running]),
        [
          ['side', true],
          ['app', false],
        ],
      )
      const names = (await rows(elsewhere)).map((row) => row.last_pod_name)
      assert.deepEqual(names, [body.pod_name, body.pod_name], 'a pod of that name elsewhere is another pod')
    }
  })
}

test('a container that is being pulled removes its pod from its rows, makes none, and updates the reference', async () => {
  const namespace = newNamespace()
  const [older, newer, elsewhere] = [newDigest(), newDigest(), newDigest()]
  const body = replica(namespace, [container('app', older)])
  await post(body)
  await age(sql, 10)
  await post(replica(namespace, [container('app', newer)]))
  await post(replica(namespace, [container('side', elsewhere)]))
  const pulling = (fields: Row = {}) => ({
    ...body,
    containers: [container('app', undefined, { state: 'waiting', ...fields })],
  })
  const seen = async () => Object.fromEntries((await rows(namespace)).map((row) => [row.image_digest, row.ref_seen_at]))
  await post(pulling({ image: 'another' }))
  assert.deepEqual(await seen(), { [older]: null, [newer]: null, [elsewhere]: null })
  assert.equal((await rows(namespace)).find((row) => row.image_digest === older)!.last_pod_name, null)

  const before = await rows(namespace)
  await post(pulling())
  const { [newer]: time, ...rest } = await seen()
  assert.notEqual(time, null)
  assert.deepEqual(rest, { [older]: null, [elsewhere]: null }, 'the newest row of that container with that reference')
  assert.deepEqual(
    await rows(namespace),
    before.map((row) => (row.image_digest === newer ? { ...row, ref_seen_at: time } : row)),
  )

  await age(sql, 290)
  const aged = (await seen())[newer]
  await post(pulling())
  assert.equal((await seen())[newer], aged, '290 s later')
  await age(sql, 20)
  await post(pulling())
  assert.ok(((await seen())[newer] as string) > (aged as string), '310 s later')
})

// ---- Concurrency

test('64 concurrent posts of pods of one workload, from two processes, give the right rows without an error', async () => {
  const namespace = newNamespace()
  const digests = range(8).map(newDigest)
  const names = range(4).map((i) => `c${i}`)
  app.logged.length = 0
  const [{ deadlocks }] =
    (await sql`select deadlocks::int from pg_stat_database where datname = current_database()`) as unknown as [Row]
  for (const round of range(3)) {
    const bodies = range(64).map((n) => {
      const shuffled = [...names].sort(() => Math.random() - 0.5)
      const containers = shuffled.map((name) =>
        container(name, digests[(n + round) % 8], { tag: `t${n % 40}`, state: n % 2 ? 'running' : 'waiting' }),
      )
      return replica(namespace, containers, { pod_name: `${namespace}-${n}` })
    })
    const statuses = await Promise.all(
      bodies.map(async (body, n) =>
        n % 2 ? other.post('/pod/spec', body) : (await app.post('/pod/spec', body)).status,
      ),
    )
    assert.deepEqual(new Set(statuses), new Set([200]))
  }
  const found = await rows(namespace)
  assert.deepEqual(
    found.map((row) => `${row.container_name} ${row.image_digest}`).sort(),
    names.flatMap((name) => digests.map((digest) => `${name} ${digest}`)).sort(),
  )
  // A row names a pod whose last post has its digest, or none.
  for (const row of found) {
    if (row.last_pod_name === null) continue
    const n = Number((row.last_pod_name as string).slice(namespace.length + 1))
    assert.equal(row.image_digest, digests[(n + 2) % 8], `${row.container_name} ${row.last_pod_name}`)
  }
  for (const [i, digest] of digests.entries()) {
    const { tags } = (await image(digest))!
    assert.equal(new Set(tags as string[]).size, (tags as string[]).length)
    assert.ok((tags as string[]).length >= 8, `${i}: ${tags}`)
  }
  assert.deepEqual(
    app.logged.filter(({ level }) => Number(level) >= 40),
    [],
  )
  const [row] =
    (await sql`select deadlocks::int from pg_stat_database where datname = current_database()`) as unknown as [Row]
  assert.equal(row.deadlocks, deadlocks)
})

test('of several contradicting replicas in one statement the last one counts, those that run first', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const document = ['waiting', 'waiting', 'terminated', 'running', 'running'].map((state, n) => ({
    ...{
      pod_namespace: namespace,
      workload_kind: 'Deployment',
      workload_name: 'web',
      pod_name: `web-${n}`,
      container_name: 'app',
    },
    ...{ container_kind: 'regular', image_ref: `r:${n}`, image_digest: digest, digest_kind: 'repo', tags: [] },
    ...{ security_context: { runAsUser: n }, pod_security: { hostUsers: n > 1 }, state, state_reason: `R${n}` },
  }))
  for (const [order, counts] of [
    [[0, 1, 2], 2],
    [[2, 0, 1], 1],
    [[0, 3, 2, 4, 1], 4],
    [[4, 3, 2], 3],
  ] as [number[], number][]) {
    await sql`select record_containers(${JSON.stringify(order.map((n) => document[n]))}::text::json)`
    const { container_name: _c, workload_name: _w, digest_kind: _k, tags: _t, ...last } = document[counts]!
    const { pod_name: last_pod_name, ...said } = last
    const row = await only(namespace)
    assert.deepEqual({ ...row, ...said, last_pod_name }, row)
  }
  await post(replica(namespace, null, { pod_name: 'web-3' }))
  const ended = { ...document[3], state: 'terminated' }
  await sql`select record_containers(${JSON.stringify([ended, document[1]])}::text::json)`
  const { last_pod_name, state } = await only(namespace)
  assert.deepEqual([last_pod_name, state], ['web-3', 'terminated'], 'what a pod says of itself is never lost')
})

test('many workloads with common images, posted in opposite orders by two processes', async () => {
  const digests = range(20).map(newDigest)
  const bodies = range(40).map((n) => {
    const order = n % 2 ? [...digests].reverse() : digests
    return replica(
      newNamespace(),
      order.map((digest, i) => container(`c${n % 2 ? 19 - i : i}`, digest, { tag: `t${n}` })),
    )
  })
  app.logged.length = 0
  const statuses = await Promise.all([
    ...bodies.map(async (body) => (await app.post('/pod/spec', body)).status),
    ...[...bodies].reverse().map((body) => other.post('/pod/spec', body)),
  ])
  assert.deepEqual(new Set(statuses), new Set([200]))
  assert.deepEqual(
    app.logged.filter(({ level }) => Number(level) >= 40),
    [],
  )
  for (const body of bodies) assert.equal((await rows(body.pod_namespace as string)).length, 20)
  for (const digest of digests) assert.equal(((await image(digest))!.tags as string[]).length, 32)
})

test('pods that move between two workloads, posted by two processes, deadlock nowhere', async () => {
  const namespace = newNamespace()
  const digests = range(4).map(newDigest)
  app.logged.length = 0
  for (const round of range(6)) {
    const bodies = range(32).map((n) => {
      const workload_name = (n + round) % 2 ? 'one' : 'two'
      const containers = digests.map((digest, i) => container(`c${i}`, n % 4 ? digest : digests[(i + round) % 4]))
      return replica(namespace, containers, { pod_name: `${namespace}-${n}`, workload_name })
    })
    const statuses = await Promise.all(
      bodies.map(async (body, n) =>
        (n >> 1) % 2 ? other.post('/pod/spec', body) : (await app.post('/pod/spec', body)).status,
      ),
    )
    assert.deepEqual(new Set(statuses), new Set([200]))
  }
  for (const row of await rows(namespace)) {
    if (row.last_pod_name === null) continue
    const n = Number((row.last_pod_name as string).slice(namespace.length + 1))
    assert.equal(row.workload_name, (n + 5) % 2 ? 'one' : 'two', row.last_pod_name as string)
  }
  assert.deepEqual(
    app.logged.filter(({ level }) => Number(level) >= 40),
    [],
  )
})

test('a post waits for a workload that another session is changing, but not for others', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const body = replica(namespace, [container('app', digest)])
  await post(body)
  const changed = { ...body, containers: [container('app', digest, { state: 'waiting' })] }
  const item = {
    ...container('app', digest),
    pod_namespace: namespace,
    workload_kind: 'Deployment',
    workload_name: 'web',
  }
  let pending: Promise<Row> | undefined
  await sql.begin(async (session) => {
    await session`select pg_advisory_xact_lock(workload) from posted_containers(${JSON.stringify([item])}::text::json)`
    await post(body)
    pending = post(changed)
    await until(
      'it waits',
      async () => (await sql`select from pg_locks where locktype = 'advisory' and not granted`).length > 0,
    )
    assert.equal((await only(namespace)).state, 'running')
  })
  await pending
  assert.equal((await only(namespace)).state, 'waiting')
})
