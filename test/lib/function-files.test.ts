import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readSchema } from '../../sql/migrate/files.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { logTo } from '../support/log.ts'

/** An empty database, and releases that consist only of function files. */
async function scene(t: TestContext) {
  const { adminSql: sql, url, drop } = await createTestDatabase()
  const folders: string[] = []
  t.after(async () => {
    await drop()
    for (const folder of folders) rmSync(folder, { recursive: true })
  })
  await sql.unsafe('drop schema public cascade; create schema public')

  /** A folder of functions; keys are paths below `functions/`. */
  const release = (files: Record<string, string>) => {
    const folder = mkdtempSync(join(tmpdir(), 'broker-functions-'))
    folders.push(folder)
    for (const [path, text] of Object.entries(files)) {
      const file = join(folder, 'functions', path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    return folder
  }
  const apply = (folder: string) => migrate({ connection: url, folder, log: logTo(() => {}) })
  return { sql, release, apply }
}

const sqlFunction = (name: string, body: string) =>
  `-- A comment.\ncreate or replace function ${name}() returns integer\nlanguage sql\nas $$\n  ${body}\n$$;\n`

test('function files may call functions of later files, in folders of any depth', async (t) => {
  const { sql, release, apply } = await scene(t)
  await apply(
    release({
      'a.sql': sqlFunction('one', 'select two() + 1'),
      'b/deep/two.sql': sqlFunction('two', 'select three() + 1'),
      'b/three.sql': 'create or replace function three() returns integer language plpgsql as $$ begin return 1; end $$',
    }),
  )
  assert.deepEqual([...(await sql`select one() as value`)], [{ value: 3 }])
})

for (const [title, broken, message] of [
  [
    'an unknown function',
    sqlFunction('broken', 'select no_such_function()'),
    /^functions\/b\/broken\.sql:5: .*no_such/,
  ],
  ['a syntax error', sqlFunction('broken', 'select 1 frm two'), /^functions\/b\/broken\.sql:5: syntax error/],
  [
    'a syntax error of PL/pgSQL',
    '-- A comment.\ncreate or replace function broken() returns void language plpgsql as $$\nbegin\n  iff;\nend $$',
    /^functions\/b\/broken\.sql:4: syntax error/,
  ],
  [
    'an unknown type in its head',
    'create or replace function broken(a no_such) returns void language sql as $$$$',
    // PostgreSQL 15 reports no position.
    /^functions(\/b\/broken\.sql:1)?: .*no_such/,
  ],
] as const) {
  test(`a function with ${title} is refused with file and line, and nothing is applied`, async (t) => {
    const { sql, release, apply } = await scene(t)
    const one = { 'a/one.sql': sqlFunction('one', 'select 1') }
    await apply(release(one))
    const before = await sql`select hash from schema_functions`
    const files = {
      'a/one.sql': sqlFunction('one', 'select 11'),
      'b/broken.sql': broken,
      'c.sql': sqlFunction('c', 'select 3'),
    }
    await assert.rejects(apply(release(files)), { name: 'MigrationFailed', message })
    assert.deepEqual([...(await sql`select one() as value, to_regproc('c') as c`)], [{ value: 1, c: null }])
    assert.deepEqual([...(await sql`select hash from schema_functions`)], [...before])
  })
}

test('functions of the previous release stay for its replicas, also when one of them starts and applies them again', async (t) => {
  const { sql, release, apply } = await scene(t)
  const before = release({
    'entry.sql': sqlFunction('entry', 'select old_step() + 1'),
    'old_step.sql': sqlFunction('old_step', 'select 1'),
  })
  const after = release({
    'x/entry.sql': sqlFunction('entry', 'select new_step() + 1'),
    'x/new_step.sql': sqlFunction('new_step', 'select 1'),
  })
  for (const folder of [before, after, before, after]) {
    await apply(folder)
    assert.deepEqual([...(await sql`select entry() as entry, old_step() as step`)], [{ entry: 2, step: 1 }])
  }
})

test('the hash changes when a file moves to another folder', async (t) => {
  const { release } = await scene(t)
  const hash = (path: string) => readSchema(release({ [path]: 'select 1' })).functions.hash
  assert.equal(hash('a/one.sql'), hash('a/one.sql'))
  assert.notEqual(hash('a/one.sql'), hash('b/one.sql'))
})
