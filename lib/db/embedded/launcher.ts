import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { EmbeddedUnavailable } from './binaries.ts'

/** Numeric user and group of the server process. */
export interface Account {
  uid: number
  gid: number
}

/** Starts server programs under an account that PostgreSQL accepts; `account` is undefined when that is our own. */
export interface Launcher {
  account: Account | undefined
  spawn(program: string, args: string[]): ChildProcess
}

// Nothing else of our environment concerns the server, and DATABASE_URL or tokens have no place in it.
const PASSED_ENVIRONMENT = ['PATH', 'HOME', 'TMPDIR', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH']

/**
 * PostgreSQL refuses to run as root. Root therefore starts it as the owner of an existing cluster, else as `nobody`.
 * The data or the programs often sit below a folder of mode 0700 that such an account cannot enter, so it keeps
 * CAP_DAC_OVERRIDE where setpriv can hand that on.
 * @param cluster the cluster's folder; need not exist
 */
export function createLauncher(cluster: string): Launcher {
  const environment: NodeJS.ProcessEnv = { LC_ALL: 'C' } // start-up messages are matched by their text
  for (const name of PASSED_ENVIRONMENT) if (process.env[name] !== undefined) environment[name] = process.env[name]
  const options = { env: environment, stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'] }

  if (process.getuid?.() !== 0) return { account: undefined, spawn: (program, args) => spawn(program, args, options) }

  const account = ownerOf(cluster) ?? nobody()
  const drop = [
    `--reuid=${account.uid}`,
    `--regid=${account.gid}`,
    '--clear-groups',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
  ]
  const hasSetpriv = spawnSync('setpriv', [...drop, 'true'], { stdio: 'ignore', env: environment }).status === 0
  return {
    account,
    // setpriv replaces itself with the program, so the child's pid is the postmaster's.
    spawn: (program, args) =>
      hasSetpriv ? spawn('setpriv', [...drop, program, ...args], options) : spawn(program, args, { ...options, ...account }),
  }
}

function ownerOf(folder: string): Account | undefined {
  const stat = statSync(folder, { throwIfNoEntry: false })
  return stat && stat.uid !== 0 ? { uid: stat.uid, gid: stat.gid } : undefined
}

function nobody(): Account {
  const [, , uid, gid] = /^nobody:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':') ?? []
  if (!uid || !gid) throw new EmbeddedUnavailable('the embedded PostgreSQL cannot run as root and there is no user "nobody" to run it as')
  return { uid: Number(uid), gid: Number(gid) }
}
