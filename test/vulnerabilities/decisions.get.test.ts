import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { decide, decision, newCve, put, READ, workload } from '../support/decisions.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0', BROKER_READ_MEMORY_BUDGET_MB: '4' })

const read = (id: string, query = '') => app.get(`/vulnerabilities/${id}/decisions${query}`, { token: READ })

test('GET /vulnerabilities/{id}/decisions 200: an empty list for a vulnerability that nobody decided on', async () => {
  const answer = await read('cve-2032-1')
  assert.deepEqual([answer.status, answer.text], [200, '{"id":"cve-2032-1","items":[],"nextAfter":null}'])
})

test('GET /vulnerabilities/{id}/decisions 200: every key, the newest first, with those that were replaced', async () => {
  const id = newCve()
  await decide(app, id, { scope: workload('shop') })
  await decide(app, id, { scope: workload('shop'), decision: 'will_not_fix', by: 'team-b', why: 'too costly' })
  const { items } = (await read(id)).json
  const times = ['decidedAt', 'endedAt']
  assert.deepEqual(Object.keys(items[0]), [
    ...['id', 'vulnerability', 'decision', 'justification', 'scope', 'package', 'until', 'by', 'why', 'decidedAt'],
    ...['origin', 'holds', 'endedAt', 'endedHow', 'endedBy', 'endedWhy'],
  ])
  const shown = items.map((one: Record<string, unknown>) => {
    for (const key of [...times, 'id']) delete one[key]
    return one
  })
  const same = {
    vulnerability: id,
    justification: null,
    scope: workload('shop'),
    package: null,
    until: null,
    origin: null,
  }
  assert.deepEqual(shown, [
    {
      ...{ ...same, decision: 'will_not_fix', by: 'team-b', why: 'too costly' },
      ...{ holds: true, endedHow: null, endedBy: null, endedWhy: null },
    },
    {
      ...{ ...same, decision: 'accepted', by: 'team-a', why: 'the port is closed' },
      ...{ holds: false, endedHow: 'replaced', endedBy: 'team-b', endedWhy: 'too costly' },
    },
  ])
})

test('GET /vulnerabilities/{id}/decisions 200: pages miss and repeat none, while others are decided', async () => {
  const id = newCve()
  for (let n = 0; n < 7; n++) await decide(app, id, { scope: workload(`ns-${n}`) })
  const seen: number[] = []
  let after = ''
  for (;;) {
    const { items, nextAfter } = (await read(id, `?limit=3${after}`)).json
    seen.push(...items.map((one: { id: number }) => one.id))
    if (nextAfter === null) break
    assert.equal(nextAfter, items.at(-1).id)
    after = `&after=${nextAfter}`
    await put(app, id, decision({ scope: workload(`later-${nextAfter}`) }))
  }
  assert.equal(seen.length, 7)
  assert.deepEqual(
    seen,
    [...seen].sort((a, b) => b - a),
  )
})

test('GET /vulnerabilities/{id}/decisions 200: those under all ids of the vulnerability', async () => {
  const id = newCve()
  await app.sql`insert into cve_alias (vuln_id, alias) values (${id}, 'PYSEC-77')`
  await decide(app, 'pysec-77', { scope: workload('a') })
  await decide(app, id, { scope: workload('b') })
  for (const asked of [id, id.toLowerCase(), 'PYSEC-77'])
    assert.deepEqual(
      (await read(asked)).json.items.map((one: { vulnerability: string }) => one.vulnerability),
      [id, 'pysec-77'],
    )
})

for (const query of ['limit=x', 'after=x', 'after=-1', 'since=1', 'after=%00'])
  test(`GET /vulnerabilities/{id}/decisions 400: ${query}`, async () => {
    const { status, text } = await read('CVE-1', `?${query}`)
    assert.equal(status, 400)
    assert.ok(text.includes(query.split('=')[0]!), text)
  })

test('GET /vulnerabilities/{id}/decisions 400: an id that is none', async () => {
  for (const id of ['%00', '%25', 'x'.repeat(129)]) assert.equal((await read(id)).status, 400)
})

test('GET /vulnerabilities/{id}/decisions 401: without a token', async () => {
  assertUnauthorized(await app.get('/vulnerabilities/CVE-1/decisions'))
})

test('GET /vulnerabilities/{id}/decisions 503: 16 KiB are charged for each row of the limit and one more', async () => {
  const { budget } = app.deps
  const release = await budget.acquire(budget.totalKib - 32 + 1)
  assertShed(await read('CVE-1', '?limit=1'), 32, budget.totalKib)
  release()
})

test('GET /vulnerabilities/{id}/decisions 503: a cancelled statement', async () => {
  await whileRefused(app.sql, 'vuln_decision', async () => assertDatabaseBusy(await read('CVE-1', '?limit=0')))
})
