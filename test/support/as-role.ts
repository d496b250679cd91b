/** The broker as its own role without superuser rights, so that tests can revoke rights. */
import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import type postgres from 'postgres'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { PATIENCE_MS, type startApp } from './app.ts'
import { administer, withDatabase } from './server.ts'

type App = Awaited<ReturnType<typeof startApp>>

/** `sql` and `url` belong to the owner of the database. Everything ends with the test file. */
export async function startAsRole(
  owner: Pick<App, 'deps' | 'sql' | 'url'>,
  options: { poolMax?: number; statementTimeoutMs?: number } = {},
) {
  const { sql } = owner
  const { config, log } = owner.deps
  const role = `broker_test_role_${randomBytes(4).toString('hex')}`
  const password = randomBytes(8).toString('hex')
  await sql.unsafe(`create role ${role} login password '${password}'`)
  await sql.unsafe(`grant select, insert, update, delete on all tables in schema public to ${role}`)
  await sql.unsafe(`grant usage, select on all sequences in schema public to ${role}`)
  const connection = owner.url.replace(/\/\/[^@]*@/, `//${role}:${password}@`)
  const db = openDatabase({
    connection,
    poolMax: options.poolMax ?? 8,
    statementTimeoutMs: options.statementTimeoutMs ?? 30_000,
    waitMs: PATIENCE_MS,
    prepare: true,
    applicationName: role,
    log,
  })
  const app = createApp(buildDeps({ config, db, log }), routes)
  const headers = { 'content-type': 'application/json' }
  after(async () => {
    await db.end(100)
    // Its rights are dropped with the database. Where the role remains, it goes with the server.
    await administer(withDatabase(owner.url, 'postgres'), `drop role if exists ${role}`).catch(() => {})
  })
  return {
    role,
    password,
    db,
    app,
    connection,
    get: (path: string) => Promise.resolve(app.request(path)),
    post: (path: string, body: unknown) =>
      Promise.resolve(app.request(path, { method: 'POST', headers, body: JSON.stringify(body) })),
    /** Ends all sessions of the role, or those whose last statement matches a LIKE pattern. */
    terminate: (like = '%', by: postgres.Sql = sql) =>
      by`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${role} and query like ${like}`,
  }
}
