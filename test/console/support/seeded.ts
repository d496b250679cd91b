/**
 * Seeded databases for tests. The first test file of a run that needs a seed creates it in a database of the run's
 * server. All files get copies of it, which take a second.
 */
import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import { openPool } from '../../../lib/db/open-pool.ts'
import { administer, withDatabase } from '../../support/server.ts'
import { freshen } from './fresh.ts'
import { SEEDS, type Seed } from './seed.ts'

const options = { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} }

const leftOpen = new Set<() => Promise<void>>()
after(async () => {
  for (const drop of leftOpen) await drop()
})

/** The server that scripts/test.mjs started. */
function runServer(): { url: string; template: string } {
  const { BROKER_TEST_URL: url, BROKER_TEST_TEMPLATE: template } = process.env
  if (!url || !template) throw new Error('run these tests with `npm run test:console` or `npm test <file>`')
  return { url, template }
}

/**
 * The URL of a private database with this seed. Nodes and containers that were live in the seed are live now. It is
 * dropped at the end of the test file; stop brokers before.
 */
export async function seededDatabase(seed: Seed): Promise<string> {
  const { url, template } = runServer()
  const source = `${template}_${seed}`
  const copy = `${source}_${randomBytes(4).toString('hex')}`
  const sql = openPool(url, options)
  try {
    // Test files run at the same time: a lock is held while one of them seeds or copies.
    await sql`select pg_advisory_lock(hashtext(${source}))`
    const [known] = await sql<{ is_ready: boolean }[]>`
      select coalesce((select not datallowconn from pg_database where datname = ${source}), false) as is_ready`
    if (!known!.is_ready) {
      await sql.unsafe(`drop database if exists ${source} with (force)`)
      await sql.unsafe(`create database ${source} template ${template}`)
      await SEEDS[seed](withDatabase(url, source))
      // A template with connections cannot be copied.
      await sql.unsafe(`alter database ${source} allow_connections false`)
    }
    await sql.unsafe(`create database ${copy} template ${source} strategy file_copy`)
  } finally {
    await sql.end({ timeout: 1 })
  }
  leftOpen.add(() => administer(url, `drop database if exists ${copy} with (force)`))
  const made = openPool(withDatabase(url, copy), options)
  await freshen(made)
  await made.end({ timeout: 1 })
  return withDatabase(url, copy)
}
