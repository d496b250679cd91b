/**
 * Which processes use the server of a folder. Each holds the writing end of one FIFO, and a guardian the reading end: whatever way
 * a process dies, the kernel lets go for it, no number is ever taken for another's, and a process that was merely stopped holds on.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, constants, lstatSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { EmbeddedUnavailable } from './binaries.ts'
import { GUARDIAN } from './guardian.ts'
import type { Launcher } from './launcher.ts'

export interface Membership {
  /** Starts a guardian where there is none any more. */
  keepGuarded(): void
  /** Lets go. Returns whether others hold on. */
  leave(): boolean
}

// Descriptors that node opens are closed in its children: no server and no guardian is ever a holder.
const READ_NOW = constants.O_RDONLY | constants.O_NONBLOCK
const WRITE_NOW = constants.O_WRONLY | constants.O_NONBLOCK

/** How much is read at once of the lines that those who joined have written. */
const LINES_BYTES = 1_024

/**
 * Joins those that use the server of a folder. Must be called before it is looked at, so that who leaves and who joins cannot miss
 * each other.
 * @param home holds the FIFO
 */
export function joinBrokers(home: string, cluster: string, launcher: Launcher): Membership {
  const fifo = ensureFifo(join(home, 'postgres-brokers'))
  const isGuarded = () => codeOf(() => closeSync(openSync(fifo, WRITE_NOW))) !== 'ENXIO'
  const guard = () => spawnGuardian(fifo, cluster, launcher)
  let held: number | undefined
  if (codeOf(() => (held = openSync(fifo, WRITE_NOW))) === 'ENXIO') held = guard()
  held ??= openSync(fifo, WRITE_NOW)
  const holding = held
  announce(holding)

  return {
    keepGuarded() {
      try {
        if (!isGuarded()) closeSync(guard())
      } catch {} // No descriptors or processes are left: the next look tries again.
    },
    leave() {
      closeSync(holding)
      return isHeld(fifo)
    },
  }
}

function ensureFifo(path: string): string {
  const isThere = () => lstatSync(path, { throwIfNoEntry: false })?.isFIFO()
  if (isThere()) return path
  const { error, stderr } = spawnSync('mkfifo', ['-m', '600', path], { encoding: 'utf8' })
  if (!isThere())
    throw new EmbeddedUnavailable(`the embedded PostgreSQL needs a FIFO ${path} (${error?.message ?? stderr.trim()})`)
  return path
}

/**
 * The guardian inherits its end: were we killed at any point here, it would see the end of the file and no open would wait for us.
 * @returns a writing end
 */
function spawnGuardian(fifo: string, cluster: string, launcher: Launcher): number {
  // Neither end can be opened without the other, unless for reading without waiting; and what the shell reads from has to wait.
  const first = openSync(fifo, READ_NOW)
  const held = openSync(fifo, WRITE_NOW)
  const inherited = openSync(fifo, constants.O_RDONLY)
  try {
    const child = launcher.spawn('/bin/sh', ['-c', GUARDIAN, 'broker-guardian', cluster], {
      stdin: inherited,
      apart: true,
    })
    child.on('error', () => {}) // The next look finds that there is none.
    child.unref()
  } finally {
    closeSync(first)
    closeSync(inherited)
  }
  return held
}

/** One line for a guardian that is counting down since the last one left. */
function announce(held: number): void {
  codeOf(() => writeSync(held, '\n'))
}

function isHeld(fifo: string): boolean {
  const end = openSync(fifo, READ_NOW)
  const lines = Buffer.alloc(LINES_BYTES)
  try {
    // A line may be of one that has left; who holds on shows behind the last of them.
    while (readSync(end, lines) > 0);
    return false
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return true
    throw error
  } finally {
    closeSync(end)
  }
}

function codeOf(action: () => void): string | undefined {
  try {
    action()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
  return undefined
}
