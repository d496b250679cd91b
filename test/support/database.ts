import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import type { SocketOptions } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { administer, startTestServer, type TestServer, withDatabase } from './server.ts'

export { schemaSnapshot } from './schema-snapshot.ts'

/** An empty, migrated database that no other test sees. */
export interface TestDatabase {
  /** For `openPool`, `migrate` and DATABASE_URL of our own programs. */
  url: string
  /** What the driver itself takes: an options object for a unix socket, else the URL. */
  connection: string | SocketOptions
  /** As the role that owns the database; for arranging and inspecting. */
  adminSql: postgres.Sql
  /** Ends `adminSql` and removes the database, open connections included. What is not dropped goes with the run. */
  drop(): Promise<void>
}

const IN_USE = '55006'
const CREATE_LIMIT_MS = 120_000

let server: Promise<Pick<TestServer, 'url' | 'template'>> | undefined
let ownServer: TestServer | undefined
const leftOpen = new Set<() => Promise<void>>()

// Here and not where it starts: a hook registered inside a test would stop the server with that test.
// An open connection would keep the process of the file alive after its last test.
after(async () => {
  for (const drop of leftOpen) await drop()
  await ownServer?.stop()
})

/** Clones the run's template. A file that is run without scripts/test.mjs gets a server of its own. */
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
      return await administer(url, `create database ${name} template ${template}`)
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
