import { chownSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../observability/log.ts'
import { EmbeddedUnavailable } from './binaries.ts'
import { removeAbandonedDrafts } from './drafts.ts'
import type { Launcher } from './launcher.ts'
import { type Output, readOutput } from './output.ts'

/** The superuser of an embedded cluster. Only its socket folder guards it: authentication is `trust`. */
export const SUPERUSER = 'broker'

/**
 * Makes the cluster folder unless it exists. It is built aside and renamed into place whole, so that a crash leaves no
 * half cluster and, of two processes that start at once, the slower one finds the folder taken and uses it.
 */
export async function ensureCluster(cluster: string, initdb: string, launcher: Launcher, log: Log): Promise<void> {
  if (existsSync(join(cluster, 'PG_VERSION'))) return
  removeAbandonedDrafts(cluster)
  const draft = mkdtempSync(`${cluster}.new-`)
  try {
    if (launcher.account) chownSync(draft, launcher.account.uid, launcher.account.gid)
    await runInitdb(initdb, draft, launcher, log)
    renameSync(draft, cluster)
    log.debug({ folder: cluster }, 'embedded PostgreSQL: new cluster')
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(join(cluster, 'PG_VERSION'))) throw error
  }
}

async function runInitdb(initdb: string, folder: string, launcher: Launcher, log: Log): Promise<void> {
  const args = ['-D', folder, '-U', SUPERUSER, '--encoding=UTF8', '--locale=C', '--auth=trust', '--no-instructions']
  const child = launcher.spawn(initdb, args)
  const output: Output = readOutput(child, (line) => log.debug({}, line))
  const failure = await output.ended
  if (failure)
    throw new EmbeddedUnavailable(
      `the embedded PostgreSQL cannot create its cluster in ${folder} (${failure}): ${output.tail()}`,
    )
}
