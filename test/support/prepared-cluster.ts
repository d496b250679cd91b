/**
 * A PostgreSQL cluster with a migrated database `postgres`. It is made once for a run and then copied, because making
 * it takes seconds.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from './log.ts'
import { forgoDurability } from './server.ts'

let prepared: Promise<string> | undefined
let own: string | undefined

after(() => own && rmSync(own, { recursive: true, force: true }))

/** Copies the cluster to `postgres` in a folder without one, owned by the user of embedded servers. */
export async function copyCluster(dataDir: string, name = 'postgres'): Promise<void> {
  prepared ??= findOrPrepare()
  const from = join(await prepared, 'postgres')
  const to = join(dataDir, name)
  // Two brokers on one folder may start at the same time.
  if (existsSync(to)) return
  const { status, stderr } = spawnSync('cp', ['-Rp', from, to], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}

function ownFolder(): string {
  own = mkdtempSync(join(tmpdir(), 'broker-test-'))
  chmodSync(own, 0o711)
  return own
}

/** scripts/test.mjs names a folder that all files of a run share, and removes it at the end. */
async function findOrPrepare(): Promise<string> {
  const shared = process.env.BROKER_TEST_FOLDER ?? ownFolder()
  const folder = join(shared, 'cluster')
  if (existsSync(folder)) return folder
  const draft = mkdtempSync(join(shared, 'draft-'))
  const server = await startEmbedded({ dataDir: draft, log: noLog })
  try {
    await forgoDurability(server.url)
    await migrate({ connection: server.url, log: noLog })
  } finally {
    await server.stop()
  }
  try {
    renameSync(draft, folder)
  } catch {
    // Another file of the run was faster.
    rmSync(draft, { recursive: true, force: true })
  }
  return folder
}
