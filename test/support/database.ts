import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import type { SocketOptions } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { administer, startTestServer, type TestServer, withDatabase } from './server.ts'

export { schemaSnapshot } from './schema-snapshot.ts'

/** A migrated database without rows, which nothing else uses. */
export interface TestDatabase {
  /** For `openPool`, `migrate` and the DATABASE_URL of our programs. */
  url: string
  /** For the driver: an options object for a unix socket, else the URL. */
  connection: string | SocketOptions
  /** Connected as the owner of the database, to arrange and inspect rows. */
  adminSql: postgres.Sql
  /**
   * Ends `adminSql` and drops the database with all its connections. Other databases are dropped at the end of the run.
   */
  drop(): Promise<void>
}

const IN_USE = '55006'
const CREATE_LIMIT_MS = 120_000

let server: Promise<Pick<TestServer, 'url' | 'template'>> | undefined
let ownServer: TestServer | undefined
const leftOpen = new Set<() => Promise<void>>()

// Registered here, since a hook inside a test would stop the server at the end of that test.
// Open connections would keep the process alive after its last test.
after(async () => {
  for (const drop of leftOpen) await drop()
  await ownServer?.stop()
})

/** Clones the template of the run. A file that runs without scripts/test.mjs starts its own server. */
export async function createTestDatabase(): Promise<TestDatabase> {
  server ??= findServer()
  const { url: serverUrl, template } = await server
  const name = `${template}_${randomBytes(4).toString('hex')}`
  await cloneTemplate(serverUrl, name, template)

  const url = withDatabase(serverUrl, name)
  const adminSql = openPool(url, { max: 4, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  let dropped: Promise<void> | undefined
  const drop = async () => {
    leftOpen.delete(dropOnce)
    await adminSql.end({ timeout: 1 })
    await administer(serverUrl, `drop database if exists ${name} with (force)`)
  }
  const dropOnce = () => (dropped ??= drop())
  leftOpen.add(dropOnce)
  return { url, connection: driverConnection(url), adminSql, drop: dropOnce }
}

async function findServer(): Promise<Pick<TestServer, 'url' | 'template'>> {
  const { BROKER_TEST_URL: url, BROKER_TEST_TEMPLATE: template } = process.env
  if (url && template) return { url, template }
  ownServer = await startTestServer(process.env.DATABASE_URL)
  return ownServer
}

async function cloneTemplate(url: string, name: string, template: string): Promise<void> {
  const limit = Date.now() + CREATE_LIMIT_MS
  for (;;) {
    try {
      return await administer(url, `create database ${name} template ${template} strategy file_copy`)
    } catch (error) {
      if ((error as { code?: string }).code !== IN_USE || Date.now() > limit) throw error
      await delay(50)
    }
  }
}

function driverConnection(url: string): string | SocketOptions {
  const { hostname, port, username, pathname } = new URL(url)
  const host = decodeURIComponent(hostname)
  if (!host.startsWith('/')) return url
  return { host, port: Number(port), user: decodeURIComponent(username), database: pathname.slice(1) }
}
