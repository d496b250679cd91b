import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import type { Account } from './account.ts'
import { EmbeddedUnavailable } from './binaries.ts'

/** Starts programs under an account that PostgreSQL accepts; `account` is undefined when that is our own. */
export interface Launcher {
  account: Account | undefined
  /** @param stdin a descriptor of ours that becomes the child's standard input; none unless given */
  spawn(program: string, args: string[], options?: LaunchOptions): ChildProcess
  /** Whether a shell under that account finds the script true; `args` are its $1, $2, ... */
  finds(script: string, ...args: string[]): boolean
}

export interface LaunchOptions {
  /** A descriptor of ours. */
  stdin?: number
  /** In a session of its own, where no signal to our terminal or our process group reaches it; its output is dropped. */
  apart?: boolean
}

// Nothing else of our environment concerns the server, and DATABASE_URL or tokens have no place in it.
const PASSED_ENVIRONMENT = ['PATH', 'HOME', 'TMPDIR', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH']

/** The other account gets no more than its own rights: neither groups nor capabilities of ours are handed on. */
export function createLauncher(account: Account | undefined): Launcher {
  // Start-up messages are matched by their text.
  const environment: NodeJS.ProcessEnv = { LC_ALL: 'C' }
  for (const name of PASSED_ENVIRONMENT) if (process.env[name] !== undefined) environment[name] = process.env[name]
  // Our own working directory may be closed to the account.
  const options = { env: environment, cwd: '/', ...(account && { uid: account.uid, gid: account.gid }) }
  return {
    account,
    spawn: (program, args, { stdin, apart = false } = {}) =>
      spawn(program, args, { ...options, detached: apart, stdio: [stdin ?? 'ignore', ...(apart ? IGNORED : PIPED)] }),
    finds(script, ...args) {
      const { status, error } = spawnSync('/bin/sh', ['-c', script, 'sh', ...args], { ...options, stdio: 'ignore' })
      if (error)
        throw new EmbeddedUnavailable(
          `the embedded PostgreSQL cannot run as ${account?.name ?? 'this user'} (${error.message})`,
        )
      return status === 0
    },
  }
}

const IGNORED = ['ignore', 'ignore'] as const
const PIPED = ['pipe', 'pipe'] as const
