import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { logTo } from './log.ts'

/** A server for tests with a migrated template database. */
export interface TestServer {
  /** For the database from which others are created and dropped. */
  url: string
  /** The name of the template, and the prefix of every database made from it. */
  template: string
  /** Stops the server if we started it, else drops the template and all databases made from it. */
  stop(): Promise<void>
}

const log = logTo((level, message, fields) => {
  if (level === 'warn') process.stderr.write(`${message} ${JSON.stringify(fields)}\n`)
})

/** Uses `databaseUrl`, whose role must be able to create databases, else an embedded server in a temporary folder. */
export async function startTestServer(databaseUrl: string | undefined): Promise<TestServer> {
  const template = `broker_test_${randomBytes(4).toString('hex')}`
  const { url, end } = databaseUrl
    ? { url: databaseUrl, end: () => dropDatabases(databaseUrl, template) }
    : await startTemporary()
  try {
    await administer(url, `create database ${template} template template0 encoding 'UTF8'`)
    await migrate({ connection: withDatabase(url, template), log })
    // A template with connections cannot be copied.
    await administer(url, `alter database ${template} allow_connections false`)
  } catch (error) {
    await end()
    throw error
  }
  return { url, template, stop: end }
}

/** The same server with another database. */
export function withDatabase(url: string, database: string): string {
  return url.replace(/^(\w+:\/\/[^/?]*)(?:\/[^?]*)?/, `$1/${database}`)
}

/** Runs one statement outside a transaction on a connection of its own. */
export async function administer(url: string, statement: string): Promise<void> {
  const sql = openPool(url, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  try {
    await sql.unsafe(statement)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function startTemporary() {
  const dataDir = mkdtempSync(join(tmpdir(), 'broker-test-'))
  const remove = () => rmSync(dataDir, { recursive: true, force: true })
  try {
    const server = await startEmbedded({ dataDir, log })
    await forgoDurability(server.url)
    const end = async () => {
      await server.stop()
      remove()
    }
    return { url: server.url, end }
  } catch (error) {
    remove()
    throw error
  }
}

/** Turns off protection against a crash of the machine, which halves the time that a database takes. */
export async function forgoDurability(url: string): Promise<void> {
  for (const setting of ['fsync', 'full_page_writes']) await administer(url, `alter system set ${setting} = off`)
  await administer(url, 'select pg_reload_conf()')
}

async function dropDatabases(url: string, prefix: string): Promise<void> {
  const sql = openPool(url, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  try {
    const found = await sql<
      { datname: string }[]
    >`select datname from pg_database where starts_with(datname, ${prefix})`
    for (const { datname } of found) await sql.unsafe(`drop database if exists ${datname} with (force)`)
  } finally {
    await sql.end({ timeout: 1 })
  }
}
