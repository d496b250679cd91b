import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { isPostmaster, readPidFile } from '../../lib/db/embedded/attach.ts'
import { type EmbeddedServer, startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { noLog } from './log.ts'
import { copyCluster } from './prepared-cluster.ts'
import { program } from './program.ts'
import { until } from './until.ts'

const CHILD = program('test/support/embedded-process.ts')

/** The data folder of an installation and the processes on it; all of it ends with the test, in reverse order. */
export interface Installation {
  /** The data folder; other users may pass through it. */
  dataDir: string
  start(folder?: string): Promise<EmbeddedServer>
  other(): Other
  atEnd(action: () => unknown): void
}

export interface Other {
  process: ChildProcess
  up: Promise<{ pid: number; attached: boolean }>
  leave(): Promise<void>
}

export function emptyInstallation(t: TestContext): Installation {
  const dataDir = mkdtempSync(join(tmpdir(), 'broker-embedded-'))
  chmodSync(dataDir, 0o711)
  const actions = [
    () => stopLeftOver(dataDir).then(() => rmSync(dataDir, { recursive: true, force: true })),
  ] as (() => unknown)[]
  const atEnd = (action: () => unknown) => void actions.unshift(action)
  t.after(async () => {
    for (const action of actions) await action()
  })
  return {
    dataDir,
    atEnd,
    async start(folder = dataDir) {
      const server = await startEmbedded({ dataDir: folder, log: noLog })
      atEnd(() => server.stop())
      return server
    },
    other() {
      const child = spawn(process.execPath, [...CHILD, dataDir], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
      const exit = once(child, 'exit')
      const up = once(createInterface({ input: child.stdout }), 'line').then(([line]) => JSON.parse(line))
      atEnd(async () => {
        if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
        await exit
      })
      const leave = async () => {
        child.stdin.end()
        assert.deepEqual(await exit, [0, null])
      }
      return { process: child, up, leave }
    },
  }
}

/** An installation with a cluster that has not yet run here. */
export async function installation(t: TestContext): Promise<Installation> {
  const site = emptyInstallation(t)
  await copyCluster(site.dataDir)
  return site
}

async function stopLeftOver(dataDir: string): Promise<void> {
  const pid = readPidFile(join(dataDir, 'postgres'))?.pid
  if (pid === undefined || isGone(dataDir, pid)) return
  process.kill(pid, 'SIGQUIT')
  await until('the left-over server is gone', () => isGone(dataDir, pid))
}

export async function query<T>(server: EmbeddedServer, statement: string): Promise<T[]> {
  const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 30, onnotice: () => {} })
  try {
    return (await sql.unsafe(statement)) as unknown as T[]
  } finally {
    await sql.end({ timeout: 1 })
  }
}

export const isGone = (dataDir: string, pid: number) => !isPostmaster(pid, join(dataDir, 'postgres'))
