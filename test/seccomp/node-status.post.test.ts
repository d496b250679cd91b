import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { MAX_LISTED_FILES } from '../../lib/seccomp/node-files.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  refusedBodies,
  startReplica,
  whileRefused,
} from '../support/routes.ts'

const PATH = '/seccomp/node-status'
const app = await startApp()
const guarded = await startApp(TOKENS, app)

let count = 0
const fresh = () => `node-${++count}`
const send = (node_name: unknown, lists: object = {}, on = app) => on.post(PATH, { node_name, ...lists })
async function post(node_name: string, lists: object = {}) {
  const answer = await send(node_name, lists)
  assert.deepEqual([answer.status, answer.text], [200, ''])
}
/** The files of a node, by path. */
const filesOf = async (node: string) =>
  (
    await app.sql<{ path: string; hash: string | null }[]>`
      select f.path, f.hash from seccomp_node n join seccomp_file f using (file_set_id) where n.node_name = ${node} order by f.path`
  ).map(({ path, hash }) => [path, hash])
const nodeRow = async (node: string) =>
  (
    await app.sql`select *, updated_at::text, file_set_id::text, ctid::text, xmin::text from seccomp_node where node_name = ${node}`
  )[0]
const setCount = async () => Number((await app.sql`select count(*) as n from seccomp_file_set`)[0]!.n)

/** Holds after any posts: every set has a node, and every file of a set has its content. */
async function assertTidy(sql = app.sql): Promise<void> {
  const orphans = await sql`
    select s.id::text from seccomp_file_set s where not exists (select from seccomp_node n where n.file_set_id = s.id)`
  assert.deepEqual([...orphans], [])
}

test('POST /seccomp/node-status 200: an empty body, and the files are stored', async () => {
  const node = fresh()
  await post(node, { files: [{ path: 'b', hash: 'h' }, { path: 'a' }], paths: ['c'] })
  assert.deepEqual(await filesOf(node), [
    ['a', null],
    ['b', 'h'],
    ['c', null],
  ])
})

test('POST /seccomp/node-status 200: a report replaces the one before, also by an empty one', async () => {
  const node = fresh()
  await post(node, { paths: ['a', 'b'] })
  await post(node, { paths: ['b', 'c'] })
  assert.deepEqual(await filesOf(node), [
    ['b', null],
    ['c', null],
  ])
  for (const none of [{ paths: [] }, {}, { files: null, paths: null }, { files: [], paths: null }]) {
    await post(node, { paths: ['b'] })
    await post(node, none)
    assert.deepEqual(await filesOf(node), [])
    assert.ok(await nodeRow(node), 'a node without files is a node')
  }
  await assertTidy()
})

test('POST /seccomp/node-status 200: strings, objects and files are one list, each path once; an entry with a hash precedes one without, and the first precedes others', async () => {
  const cases: [object, [string, string | null][]][] = [
    [{ files: [{ path: 'a', hash: 'h' }], paths: ['a'] }, [['a', 'h']]],
    [{ files: [{ path: 'a' }], paths: ['a', { path: 'a', hash: 'h' }, 'a'] }, [['a', 'h']]],
    [{ files: [{ path: 'a', hash: '' }], paths: [{ path: 'a', hash: ' ' }] }, [['a', null]]],
    [{ files: [{ path: 'a', hash: null }], paths: [{ path: 'a', hash: 'h' }] }, [['a', 'h']]],
    [{ files: [{ path: 'a', hash: 'h' }], paths: [{ path: 'a', hash: 'other' }] }, [['a', 'h']]],
    [
      { files: ['a'], paths: [{ path: 'b', hash: 'h', unknown: 1 }] },
      [
        ['a', null],
        ['b', 'h'],
      ],
    ],
  ]
  for (const [lists, files] of cases) {
    const node = fresh()
    await post(node, lists)
    assert.deepEqual(await filesOf(node), files, JSON.stringify(lists))
  }
})

test('POST /seccomp/node-status 200: entries that are not files are skipped, counted and logged, the rest is stored', async () => {
  const node = fresh()
  const bad = [
    ...[null, 7, true, [], ['a'], {}, '', ' \t', { path: 7 }, { path: '' }, { path: null, hash: 'h' }],
    ...[
      { path: 'x', hash: 7 },
      { path: 'x', hash: {} },
      'p'.repeat(1_025),
      'é'.repeat(513),
      { path: 'x', hash: 'h'.repeat(129) },
    ],
  ]
  await post(node, { files: [...bad, { path: 'é'.repeat(512), hash: 'h'.repeat(128) }], paths: [...bad, 'b'] })
  assert.deepEqual(await filesOf(node), [
    ['b', null],
    ['é'.repeat(512), 'h'.repeat(128)],
  ])
  const { values } = await app.deps.metrics.rejectedEntries.get()
  assert.deepEqual(
    values.map(({ labels, value }) => [labels.route, value]),
    [[PATH, bad.length * 2]],
  )
  assert.ok(app.logged.some((line) => line.entries === bad.length * 2 && String(line.msg).startsWith(`${PATH}: `)))
})

test('POST /seccomp/node-status 200: the same files again only change the time', async () => {
  const node = fresh()
  const files = Array.from({ length: 50 }, (_, i) => ({ path: `p-${i}`, hash: `h-${i}` }))
  await post(node, { files })
  const before = (await nodeRow(node))!
  const last = async () =>
    (
      await app.sql`
        select (select max(xmin::text::bigint) from seccomp_file) as file, (select max(xmin::text::bigint) from seccomp_file_set) as file_set`
    )[0]
  const rows = await last()
  await post(node, { files: files.toReversed(), paths: files.map(({ path }) => path) })
  const after = (await nodeRow(node))!
  assert.ok(after.updated_at > before.updated_at)
  assert.equal(after.file_set_id, before.file_set_id)
  assert.deepEqual(await last(), rows)
})

test('POST /seccomp/node-status 200: nodes with the same files share one set, which is deleted with the last of them', async () => {
  const [a, b, c] = [fresh(), fresh(), fresh()]
  const files = { files: [{ path: 'shared', hash: 'h' }] }
  const before = await setCount()
  for (const node of [a, b, c]) await post(node, files)
  assert.equal(await setCount(), before + 1)
  await post(a, { paths: ['shared'] })
  assert.equal(await setCount(), before + 2)
  await post(b, { paths: ['shared'] })
  assert.equal(await setCount(), before + 2)
  await post(c, { paths: ['shared'] })
  assert.equal(await setCount(), before + 1)
  assert.deepEqual(await filesOf(b), [['shared', null]])
  await assertTidy()
})

test('POST /seccomp/node-status 200: sets with other content are different sets, in any notation', async () => {
  const file = fc.record({
    path: fc.constantFrom('a', 'b', 'a,b', 'a"', 'a\n', 'é', '😀', '\uffff'),
    hash: fc.constantFrom(null, 'h', 'a', '["'),
  })
  const key = (files: { path: string; hash: string | null }[]) =>
    JSON.stringify(files.map(({ path, hash }) => [path, hash]).sort())
  const unique = fc.uniqueArray(file, { selector: ({ path }) => path, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(unique, unique, async (one, other) => {
      await post('left', { files: one })
      await post('right', { files: other })
      const [left, right] = [await nodeRow('left'), await nodeRow('right')]
      assert.equal(left!.file_set_id === right!.file_set_id, key(one) === key(other))
      const sorted = (files: typeof one) => files.map(({ path, hash }) => [path, hash]).sort()
      assert.deepEqual((await filesOf('right')).sort(), sorted(other))
    }),
    { numRuns: depth(12, 60) },
  )
  await assertTidy()
})

test('POST /seccomp/node-status 200: a set without nodes is deleted when another one is stored', async () => {
  await app.sql`insert into seccomp_file_set values ('\\x00')`
  await app.sql`insert into seccomp_file values ('orphan', '\\x00', null)`
  await post(fresh(), { paths: ['something new'] })
  assert.equal((await app.sql`select from seccomp_file where path = 'orphan'`).length, 0)
  await assertTidy()
})

test('POST /seccomp/node-status 200: nodes that switch between few sets concurrently, over two replicas, leave every set complete and none unused', async () => {
  const replica = startReplica(app)
  try {
    const sets = Array.from({ length: 3 }, (_, s) =>
      Array.from({ length: 5 }, (_, i) => ({ path: `flip-${s}-${i}`, hash: `h${s}` })),
    )
    const nodes = Array.from({ length: 10 }, (_, i) => `flip-${i}`)
    const { retried } = app.db.ingest.stats
    for (let round = 0; round < 12; round++) {
      const last = new Map<string, number[]>()
      await Promise.all(
        nodes.flatMap((node_name, n) =>
          Array.from({ length: 3 }, async (_, k) => {
            const s = (n * 7 + k * 5 + round * (1 + (n % 2))) % sets.length
            last.set(node_name, [...(last.get(node_name) ?? []), s])
            const status =
              (n + k) % 2
                ? await replica.post(PATH, { node_name, files: sets[s] })
                : (await send(node_name, { files: sets[s] })).status
            assert.equal(status, 200)
          }),
        ),
      )
      for (const node of nodes) {
        const found = JSON.stringify(await filesOf(node))
        assert.ok(last.get(node)!.some((s) => JSON.stringify(sets[s]!.map(({ path, hash }) => [path, hash])) === found))
      }
      await assertTidy()
      // All nodes have one set: the others are deleted.
      await Promise.all(nodes.map((node) => post(node, { files: sets[round % sets.length] })))
      await assertTidy()
      assert.equal((await app.sql`select distinct file_set_id from seccomp_file where path like 'flip-%'`).length, 1)
    }
    assert.equal(app.db.ingest.stats.retried - retried, 0, 'a deadlock')
  } finally {
    await replica.end()
  }
})

test('POST /seccomp/node-status 413: more elements than the limit in either list are refused before they are validated; as many as the limit are accepted', async () => {
  const node = fresh()
  for (const field of ['files', 'paths']) {
    const answer = await send(node, { [field]: Array(MAX_LISTED_FILES + 1).fill(7) })
    assert.deepEqual([answer.status, answer.text], [413, `${field} has more than ${MAX_LISTED_FILES} elements`])
  }
  assert.equal(await nodeRow(node), undefined)
  const many = (prefix: string) => Array.from({ length: MAX_LISTED_FILES }, (_, i) => `${prefix}${i}`)
  await post(node, { files: many('f'), paths: many('p') })
  assert.equal((await filesOf(node)).length, MAX_LISTED_FILES * 2)
})

test('POST /seccomp/node-status 400: a missing, blank or too long node name', async () => {
  for (const node of [undefined, null, '', ' ', '\t\u2003', 7, {}, 'n'.repeat(254)]) {
    const answer = await send(node, { paths: [] })
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Json deserialize error: node_name: /)
  }
  await post('n'.repeat(253))
})

test('POST /seccomp/node-status 400: a list that is not an array', async () => {
  for (const field of ['files', 'paths'])
    for (const value of ['a', 7, true, {}, { 0: 'a', length: 1 }]) {
      const node = fresh()
      const answer = await send(node, { [field]: value })
      assert.deepEqual([answer.status, answer.text], [400, `Json deserialize error: ${field}: expected an array`])
      assert.equal(await nodeRow(node), undefined)
    }
})

test('POST /seccomp/node-status 400: a body that is not an object', async () => {
  for (const { what, status, says, body, headers } of refusedBodies(
    { node_name: 'refused', paths: ['a'] },
    'node_name',
  )) {
    const answer = await app.request('POST', PATH, {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
    assert.equal(answer.status, status, what)
    assert.match(answer.text, says, what)
  }
  assert.equal(await nodeRow('refused'), undefined)
  assert.match((await send('refused', { paths: ['a\0'] })).text, /U\+0000/)
})

test('POST /seccomp/node-status 200: other encodings of a body', async () => {
  for (const { what, body, headers } of acceptedSpellings({ node_name: 'spelled', paths: ['a'] })) {
    const answer = await app.request('POST', PATH, {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
    assert.equal(answer.status, 200, what)
  }
})

test('POST /seccomp/node-status 401: no token', async () => {
  assertUnauthorized(await send('n', {}, guarded))
})

test('POST /seccomp/node-status 403: a token without the scope', async () => {
  assertForbidden(await guarded.post(PATH, { node_name: 'n' }, { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
})

test('POST /seccomp/node-status 503: the database is busy', async () => {
  await whileRefused(guarded.sql, 'seccomp_node', async () => {
    assertDatabaseBusy(await guarded.post(PATH, { node_name: 'n' }, { token: TOKENS.BROKER_TOKEN_INGEST }))
  })
})

test('POST /seccomp/node-status: a foreign key violation is retried, at most twice', async () => {
  const { sql } = app
  // A sequence is the only thing that a failed attempt changes.
  await sql`create sequence refused_attempts`
  await sql.unsafe(`
    create function refuse_some() returns trigger language plpgsql as $$
    begin
      if nextval('refused_attempts') <= tg_argv[0]::int then
        raise foreign_key_violation using message = 'refused';
      end if;
      return new;
    end $$`)
  for (const [refused, status, attempts] of [
    [2, 200, 3],
    [9, 500, 3],
  ] as const) {
    const node = fresh()
    await sql`alter sequence refused_attempts restart`
    await sql.unsafe(
      `create trigger refuse before insert on seccomp_node for each row execute function refuse_some(${refused})`,
    )
    const answer = await send(node, { paths: [node] })
    await sql`drop trigger refuse on seccomp_node`
    assert.equal(answer.status, status)
    assert.equal(Number((await sql`select last_value from refused_attempts`)[0]!.last_value), attempts)
    assert.deepEqual(await filesOf(node), status === 200 ? [[node, null]] : [])
    await assertTidy()
  }
})
