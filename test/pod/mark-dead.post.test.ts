import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { podPost, podsWithWrongAddresses, wholePodPost } from '../support/records.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  refusedBodies,
  startReplica,
  whileRefused,
} from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)
const replicas = [startReplica(app), startReplica(app)]
after(() => Promise.all(replicas.map((replica) => replica.end())))

const markDead = (body: unknown) => app.post('/pod/mark_dead', body)
const stored = async (name: string) => (await app.get(`/pod/name/${encodeURIComponent(name)}`)).json
const alive = async (fields: Record<string, unknown> = {}) => {
  const body = podPost(fields)
  assert.equal((await app.post('/pod/spec', body)).status, 200)
  return body as typeof body & { pod_ip: string }
}
const warnings = () => app.logged.filter((line) => line.level === 40).length
const range = (n: number) => Array.from({ length: n }, (_, i) => i)

/** Marks a pod; asserts the number of rows in the answer and the value of is_dead after it. */
async function marks(
  body: { pod_name: string; pod_ip?: unknown },
  expected: { rows: 0 | 1; isDead: boolean },
): Promise<void> {
  const answer = await markDead(body)
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.text, String(expected.rows))
  assert.equal((await stored(body.pod_name)).is_dead, expected.isDead)
}

test('POST /pod/mark_dead 200: a pod is marked by name and address, and the answer is the number of rows', async () => {
  const { pod_name, pod_ip } = await alive()
  app.logged.length = 0
  await marks({ pod_name, pod_ip }, { rows: 1, isDead: true })
  assert.equal(warnings(), 0)
})

test('POST /pod/mark_dead 200: the row is kept, with nothing but is_dead changed', async () => {
  const body = wholePodPost({ pod_ips: ['fd00::1'], time_stamp: '2024-05-01T10:00:00.123456' })
  await app.post('/pod/spec', body)
  const before = await stored(body.pod_name)
  assert.equal((await markDead({ pod_name: body.pod_name })).text, '1')
  assert.deepEqual(await stored(body.pod_name), { ...before, is_dead: true })
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

for (const pod_ip of [undefined, null, '', '  ', '\t']) {
  test(`POST /pod/mark_dead 200: a pod is marked by name only, with a warning, when the address is ${JSON.stringify(pod_ip)}`, async () => {
    const { pod_name } = await alive()
    app.logged.length = 0
    await marks({ pod_name, pod_ip }, { rows: 1, isDead: true })
    assert.equal(warnings(), 1)
  })
}

test('POST /pod/mark_dead 200: the address must be the primary one, not another of the pod', async () => {
  const { pod_name } = await alive({ pod_ip: '10.1.0.1', pod_ips: ['10.1.0.2', 'fd00::2'] })
  for (const pod_ip of ['10.1.0.2', 'fd00::2', '10.1.0.9', '10.1.0.1 ', 'None'])
    await marks({ pod_name, pod_ip }, { rows: 0, isDead: false })
  await marks({ pod_name, pod_ip: '10.1.0.1' }, { rows: 1, isDead: true })
})

test('POST /pod/mark_dead 200: the address is canonicalised', async () => {
  const six = await alive({ pod_ip: 'fd00::a' })
  await marks({ pod_name: six.pod_name, pod_ip: 'FD00:0:0::000A' }, { rows: 1, isDead: true })
  const four = await alive({ pod_ip: '10.1.0.3' })
  await marks({ pod_name: four.pod_name, pod_ip: '::ffff:0a01:0003' }, { rows: 1, isDead: true })
})

test('POST /pod/mark_dead 200: the answer is 0 for an unknown name, even with the address of another pod', async () => {
  const { pod_ip } = await alive()
  assert.equal((await markDead({ pod_name: 'nobody' })).text, '0')
  assert.equal((await markDead({ pod_name: 'nobody', pod_ip })).text, '0')
})

for (const pod_name of ['', ' ', '\t\n']) {
  test(`POST /pod/mark_dead 200: the answer is 0, with a warning, for the name ${JSON.stringify(pod_name)}`, async () => {
    const { pod_ip } = await alive()
    await app.sql`insert into pod (pod_name, pod_ip, time_stamp, node_name, is_dead, pod_ips)
                  values (${pod_name}, '10.1.0.4', now(), 'n', false, '{}') on conflict do nothing`
    app.logged.length = 0
    for (const body of [{ pod_name }, { pod_name, pod_ip }, { pod_name, pod_ip: '10.1.0.4' }]) {
      const answer = await markDead(body)
      assert.deepEqual([answer.status, answer.text], [200, '0'])
    }
    assert.equal(warnings(), 3)
    assert.deepEqual(
      [...(await app.sql`delete from pod where pod_name = ${pod_name} returning is_dead`)],
      [{ is_dead: false }],
    )
  })
}

test('POST /pod/mark_dead 200: a dead pod stays dead until it is posted as alive', async () => {
  const body = await alive()
  await marks(body, { rows: 1, isDead: true })
  await marks(body, { rows: 1, isDead: true })
  await app.post('/pod/spec', body)
  assert.equal((await stored(body.pod_name)).is_dead, false)
})

test('POST /pod/mark_dead 200: a name is not a pattern, and unknown keys are ignored', async () => {
  const body = await alive({ pod_name: 'web-1' })
  for (const pod_name of ['web-_', '%', 'WEB-1', 'web-1 ', "web-1' or '1'='1"])
    assert.equal((await markDead({ pod_name })).text, '0')
  await marks({ ...body, node_name: 7 } as { pod_name: string }, { rows: 1, isDead: true })
})

for (const { what, body, headers } of acceptedSpellings({ pod_name: 'spelled' })) {
  test(`POST /pod/mark_dead 200: takes ${what}`, async () => {
    await alive({ pod_name: 'spelled' })
    const answer = await app.request('POST', '/pod/mark_dead', { body, headers })
    assert.deepEqual([answer.status, answer.text], [200, '1'])
  })
}

const survivor = await alive({ pod_name: 'survivor', pod_ip: '10.1.0.5' })
for (const { what, status, says, ...request } of refusedBodies(
  { pod_name: 'survivor', pod_ip: '10.1.0.5' },
  'pod_ip',
)) {
  test(`POST /pod/mark_dead ${status}: ${what}, and no pod is marked`, async () => {
    const answer = await app.request('POST', '/pod/mark_dead', request)
    assert.equal(answer.status, status, answer.text)
    assert.match(answer.text, says)
    assert.equal((await stored(survivor.pod_name)).is_dead, false)
  })
}

const BAD_FIELDS: Record<string, unknown[]> = {
  pod_name: [undefined, null, 7, ['survivor'], 'n'.repeat(254)],
  pod_ip: [7, [], {}, true, '1'.repeat(129)],
}
for (const [field, values] of Object.entries(BAD_FIELDS)) {
  test(`POST /pod/mark_dead 400: a bad ${field} is named, and no pod is marked`, async () => {
    for (const value of values) {
      const answer = await markDead({ pod_name: 'survivor', [field]: value })
      assert.equal(answer.status, 400, JSON.stringify(value))
      assert.ok(answer.text.startsWith(`Json deserialize error: ${field}: `), answer.text)
    }
    assert.equal((await stored(survivor.pod_name)).is_dead, false)
  })
}

test('POST /pod/mark_dead 200: a name and an address of the greatest length are accepted', async () => {
  const body = await alive({ pod_name: '元'.repeat(253), pod_ip: '元'.repeat(128) })
  await marks({ pod_name: body.pod_name, pod_ip: body.pod_ip }, { rows: 1, isDead: true })
})

test('POST /pod/mark_dead 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.post('/pod/mark_dead', { pod_name: 'x' }))
  assertUnauthorized(await guarded.post('/pod/mark_dead', { pod_name: 'x' }, { token: 'unknown' }))
})

test('POST /pod/mark_dead 403: a token without the scope ingest', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    assertForbidden(await guarded.post('/pod/mark_dead', { pod_name: 'x' }, { token }), 'ingest')
})

test('POST /pod/mark_dead 200: the token of agents and the shared token of older installations are accepted', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assert.equal((await guarded.post('/pod/mark_dead', { pod_name: 'x' }, { token })).text, '0')
})

test('POST /pod/mark_dead 503: the table is locked for longer than a statement may take, and the pod stays alive', async () => {
  const token = TOKENS.BROKER_TOKEN_INGEST
  const body = podPost()
  await guarded.post('/pod/spec', body, { token })
  await whileRefused(guarded.sql, 'pod', async () =>
    assertDatabaseBusy(await guarded.post('/pod/mark_dead', body, { token })),
  )
  assert.equal((await guarded.get(`/pod/name/${body.pod_name}`, { token })).json.is_dead, false)
})

test('POST /pod/mark_dead 200: a mark with the old address does not mark a pod that is posted with a new address at the same time', async () => {
  const pods = await Promise.all(range(24).map((i) => alive({ pod_ip: `10.2.0.${i}` })))
  const answers = await Promise.all(
    pods.flatMap(({ pod_name, pod_ip }, i) => [
      replicas[0]!.post('/pod/spec', podPost({ pod_name, pod_ip: `10.2.1.${i}`, node_name: 'node-2' })),
      replicas[1]!.post('/pod/mark_dead', { pod_name, pod_ip }),
    ]),
  )
  assert.deepEqual(new Set(answers), new Set([200]))
  for (const { pod_name } of pods) {
    const row = await stored(pod_name)
    assert.deepEqual([row.node_name, row.is_dead], ['node-2', false])
  }
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

test('POST /pod/mark_dead 200: concurrent marks and posts of one pod all succeed; afterwards the last call counts', async () => {
  const { pod_name } = await alive()
  const bodies = range(12).map((i) => podPost({ pod_name, pod_ip: `10.3.0.${i}` }))
  const calls = bodies.flatMap((body, i) => [
    replicas[i % 2]!.post('/pod/spec', body),
    replicas[(i + 1) % 2]!.post('/pod/mark_dead', { pod_name }),
  ])
  assert.deepEqual(new Set(await Promise.all(calls)), new Set([200]))
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
  await marks({ pod_name }, { rows: 1, isDead: true })
  await app.post('/pod/spec', bodies[0])
  assert.equal((await stored(pod_name)).is_dead, false)
})
