import type { ChildProcess } from 'node:child_process'
import type { Log } from '../../observability/log.ts'
import { within } from '../../time/within.ts'
import { EmbeddedUnavailable } from './binaries.ts'
import type { Launcher } from './launcher.ts'
import { readOutput } from './output.ts'
import { readPidFile } from './pid-file.ts'
import { PORT } from './socket.ts'

const POLL_MS = 10

// Another process won the start, or backends of a killed postmaster are still leaving: both pass.
const PASSING = /lock file|pre-existing shared memory block/

/** A postmaster of ours that said it is ready. */
export interface Postmaster {
  pid: number
  child: ChildProcess
  /** Settles when the process is gone; the text says how, undefined for a clean shutdown. Never rejects. */
  ended: Promise<string | undefined>
}

/**
 * Starts a postmaster and waits until it is ready, crash recovery included.
 * @returns undefined when the cluster is taken for now, in which case the caller looks again
 * @throws EmbeddedUnavailable with the server's own words when it cannot start
 */
export async function startPostmaster(
  program: string,
  cluster: string,
  socketDir: string,
  launcher: Launcher,
  log: Log,
  signal: AbortSignal,
): Promise<Postmaster | undefined> {
  const child = launcher.spawn(program, ['-D', cluster, '-p', String(PORT), ...settings(socketDir)])
  const output = readOutput(child, (line) => log.debug({}, line))
  let hasEnded = false
  const ended = output.ended.then((failure) => {
    hasEnded = true
    return failure
  })
  const abort = () => child.kill('SIGINT')
  signal.addEventListener('abort', abort)
  try {
    while (!hasEnded) {
      const file = readPidFile(cluster)
      if (child.pid !== undefined && file?.pid === child.pid && file.status === 'ready')
        return { pid: child.pid, child, ended }
      await within(ended, POLL_MS)
    }
  } finally {
    signal.removeEventListener('abort', abort)
  }
  const failure = await ended
  if (signal.aborted || PASSING.test(output.tail())) return undefined
  throw new EmbeddedUnavailable(`the embedded PostgreSQL did not start (${failure ?? 'it stopped'}): ${output.tail()}`)
}

function settings(socketDir: string): string[] {
  const values = {
    listen_addresses: '',
    // The value is a list: it is quoted so that a comma or blank in the path stays part of it.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: '200',
    shared_buffers: '256MB',
    max_wal_size: '4GB',
    checkpoint_timeout: '15min',
    synchronous_commit: 'on',
    fsync: 'on',
    full_page_writes: 'on',
    autovacuum_naptime: '15s',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_min_messages: 'warning',
    // Statements and the values in DETAIL lines are the cluster's data, and no log may carry that.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
