import assert from 'node:assert/strict'
import test from 'node:test'
import { parseNaive } from '../../lib/time/timestamp.ts'
import { startApp, TOKENS } from '../support/app.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  GOOD_TIMES,
  refusedBodies,
  whileRefused,
} from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)

const facts = (fields: Record<string, unknown> = {}) => ({
  node_name: 'node-a',
  provider: 'aws',
  distro: 'eks',
  cni: 'cilium',
  ip_family: 'ipv4',
  node_os: 'bottlerocket',
  time_stamp: '2024-05-01T10:00:00',
  policy_enforcement: 'enforced',
  ...fields,
})
const stored = async (node: string) => {
  const [row] = await app.sql`select n.*, n.time_stamp::text as time_stamp from node_facts n where node_name = ${node}`
  return row && { ...row }
}
const count = async () => (await app.sql`select from node_facts`).length

test('POST /node/facts 200: the answer is null, and the facts are stored', async () => {
  const answer = await app.post('/node/facts', facts())
  assert.deepEqual([answer.status, answer.text], [200, 'null'])
  assert.deepEqual(await stored('node-a'), { ...facts(), time_stamp: '2024-05-01 10:00:00' })
})

test('POST /node/facts 200: a later post replaces the row; an optional field that it leaves out becomes null', async () => {
  await app.post('/node/facts', facts({ node_name: 'again' }))
  await app.post(
    '/node/facts',
    facts({ node_name: 'again', cni: 'calico', policy_enforcement: undefined, time_stamp: '2024-05-01T09:00:00' }),
  )
  const expected = {
    ...facts({ node_name: 'again', cni: 'calico' }),
    policy_enforcement: null,
    time_stamp: '2024-05-01 09:00:00',
  }
  assert.deepEqual(await stored('again'), expected)
})

test('POST /node/facts 200: without a time the facts get the time of the database', async () => {
  for (const time_stamp of [undefined, null]) {
    await app.post('/node/facts', facts({ node_name: 'now', time_stamp }))
    const [row] = await app.sql`
      select now() at time zone 'utc' - time_stamp between interval '0' and interval '1 min' as is_now from node_facts where node_name = 'now'`
    assert.equal(row!.is_now, true)
  }
})

test('POST /node/facts 200: unknown values are stored, and unknown keys are ignored', async () => {
  const unknown = { provider: 'garage', distro: 'own', cni: 'homegrown', ip_family: 'ipv9', node_os: 'plan9' }
  const sent = facts({ node_name: 'odd', ...unknown })
  assert.equal((await app.post('/node/facts', { ...sent, kernel: '6.1' })).status, 200)
  assert.deepEqual(await stored('odd'), { ...sent, time_stamp: '2024-05-01 10:00:00' })
})

for (const [sent, shown] of Object.entries(GOOD_TIMES))
  test(`POST /node/facts 200: the time ${sent} is accepted`, async () => {
    await app.post('/node/facts', facts({ node_name: 'time', time_stamp: sent }))
    const [row] = await app.sql`select to_json(time_stamp) as time from node_facts where node_name = 'time'`
    assert.equal(parseNaive(row!.time), shown)
  })

for (const { what, body, headers } of acceptedSpellings(facts({ node_name: 'spelled' })))
  test(`POST /node/facts 200: ${what}`, async () => {
    assert.equal((await app.post('/node/facts', body, { headers: headers as Record<string, string> })).status, 200)
  })

test('POST /node/facts 200: values of 253 bytes are accepted', async () => {
  const name = `${'é'.repeat(126)}x`
  assert.equal((await app.post('/node/facts', facts({ node_name: name, distro: 'd'.repeat(253) }))).status, 200)
  assert.equal((await stored(name))!.distro, 'd'.repeat(253))
})

test('POST /node/facts 200: 64 concurrent posts for two nodes all succeed, and each row is of one post of its node', async () => {
  const sent = Array.from({ length: 64 }, (_, i) =>
    facts({ node_name: i % 2 ? 'race-a' : 'race-b', provider: `c${i}`, cni: `c${i}`, node_os: `c${i}` }),
  )
  const posts = sent.map((body) => app.post('/node/facts', body))
  for (const { status } of await Promise.all(posts)) assert.equal(status, 200)
  for (const node_name of ['race-a', 'race-b']) {
    const row = await stored(node_name)
    const post = sent.find(({ cni }) => cni === row!.cni)
    assert.deepEqual(row, { ...post, time_stamp: '2024-05-01 10:00:00' })
  }
})

test('POST /node/facts 400: a malformed body or content type is refused, and nothing is written', async () => {
  await app.post('/node/facts', facts({ node_name: 'refused', cni: 'kept' }))
  const before = [await count(), await stored('refused')]
  for (const { what, status, says, body, headers } of refusedBodies(facts({ node_name: 'refused' }), 'cni')) {
    const answer = await app.post('/node/facts', body, headers ? { headers } : {})
    assert.equal(answer.status, status, what)
    assert.match(answer.text, says, what)
  }
  assert.deepEqual([await count(), await stored('refused')], before)
})

const bad: [fields: Record<string, unknown>, says: RegExp][] = [
  ...['node_name', 'provider', 'distro', 'cni', 'ip_family', 'node_os'].flatMap(
    (field): [Record<string, unknown>, RegExp][] => [
      [{ [field]: undefined }, new RegExp(`^Json deserialize error: ${field}: `)],
      [{ [field]: null }, new RegExp(`^Json deserialize error: ${field}: `)],
      [{ [field]: 7 }, new RegExp(`^Json deserialize error: ${field}: `)],
      [{ [field]: 'x'.repeat(254) }, new RegExp(`^field too long: ${field}`)],
      [{ [field]: 'é'.repeat(127) }, new RegExp(`^field too long: ${field}`)],
    ],
  ),
  ...['', ' ', '\t\n'].map((node_name): [Record<string, unknown>, RegExp] => [
    { node_name },
    /^node_name must not be empty$/,
  ]),
  ...['', 'Enforced', 'mixed', 7].map((policy_enforcement): [Record<string, unknown>, RegExp] => [
    { policy_enforcement },
    /policy_enforcement: /,
  ]),
  ...BAD_TIMES.map((time_stamp): [Record<string, unknown>, RegExp] => [{ time_stamp }, /time_stamp: /]),
]
for (const [fields, says] of bad)
  test(`POST /node/facts 400: ${JSON.stringify(fields).slice(0, 60)}`, async () => {
    const answer = await app.post('/node/facts', facts({ node_name: 'bad', ...fields }))
    assert.equal(answer.status, 400)
    assert.match(answer.text, says)
    assert.equal(await stored('bad'), undefined)
  })

test('POST /node/facts 401: without a token', async () =>
  assertUnauthorized(await guarded.post('/node/facts', facts())))

test('POST /node/facts 403: with a token that only reads', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    assertForbidden(await guarded.post('/node/facts', facts(), { token }), 'ingest')
})

test('POST /node/facts 200: with the token of agents or the shared token', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assert.equal((await guarded.post('/node/facts', facts(), { token })).status, 200)
})

test('POST /node/facts 503: a statement that is cancelled', async () => {
  await whileRefused(guarded.sql, 'node_facts', async () =>
    assertDatabaseBusy(await guarded.post('/node/facts', facts(), { token: TOKENS.BROKER_TOKEN_INGEST })),
  )
})
