import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { readPidFile } from '../../lib/db/embedded/pid-file.ts'
import { type Installation, installation, isGone, query } from '../support/installation.ts'
import { noLog } from '../support/log.ts'
import { until } from '../support/until.ts'

// Far above what is promised, which is 10 s: the machine may be busy.
const LIMIT_MS = 120_000

/** The guardians of a folder. */
function guardians(dataDir: string): number[] {
  const { stdout } = spawnSync('ps', ['-A', '-ww', '-o', 'pid=,args='], { encoding: 'utf8' })
  return stdout
    .split('\n')
    .filter((line) => line.endsWith(`broker-guardian ${join(dataDir, 'postgres')}`))
    .map((line) => Number.parseInt(line, 10))
}

const untilGone = ({ dataDir }: Installation, pid: number) =>
  until('the server is gone', () => isGone(dataDir, pid), LIMIT_MS)
const pidFile = ({ dataDir }: Installation) => readPidFile(join(dataDir, 'postgres'))

describe('kill -9 of brokers', { timeout: 900_000 }, () => {
  test('of the only one: its server ends, in an orderly way, and so does the guardian', async (t) => {
    const site = await installation(t)
    const only = site.other()
    const { pid } = await only.up
    assert.equal(guardians(site.dataDir).length, 1)
    only.process.kill('SIGKILL')
    await untilGone(site, pid)
    assert.equal(pidFile(site), undefined, 'a server that is killed leaves its file behind')
    await until('the guardian is gone', () => guardians(site.dataDir).length === 0)
  })

  test('of both, the one that started the server and the one that attached: it ends', async (t) => {
    const site = await installation(t)
    const first = site.other()
    const { pid } = await first.up
    const second = site.other()
    assert.deepEqual(await second.up, { pid, attached: true })
    first.process.kill('SIGKILL')
    second.process.kill('SIGKILL')
    await untilGone(site, pid)
  })

  test('of one of two: the server stays for the other, even for one that is stopped, and ends with it', async (t) => {
    const [site, control] = [await installation(t), await installation(t)]
    const [first, alone] = [site.other(), control.other()]
    const [{ pid }, controlled] = await Promise.all([first.up, alone.up])
    const second = site.other()
    await second.up
    second.process.kill('SIGSTOP')
    first.process.kill('SIGKILL')
    alone.process.kill('SIGKILL')
    // By then a guardian has done what it does.
    await untilGone(control, controlled.pid)
    assert.equal(isGone(site.dataDir, pid), false)
    second.process.kill('SIGCONT')
    await second.leave()
    assert.ok(isGone(site.dataDir, pid))
  })

  test('during its start: nothing stays', async (t) => {
    const site = await installation(t)
    const early = site.other()
    const pid = await until('the server is starting', () => pidFile(site)?.pid)
    early.process.kill('SIGKILL')
    early.up.catch(() => {})
    await untilGone(site, pid)
    await until('the guardian is gone', () => guardians(site.dataDir).length === 0, LIMIT_MS)
  })
})

describe('a guardian', { timeout: 900_000 }, () => {
  test('that is killed is replaced, and the next one does its work', async (t) => {
    const site = await installation(t)
    const broker = site.other()
    const { pid } = await broker.up
    const [killed] = guardians(site.dataDir)
    process.kill(killed!, 'SIGKILL')
    await until('there is another', () => guardians(site.dataDir).some((one) => one !== killed))
    assert.equal(isGone(site.dataDir, pid), false)
    broker.process.kill('SIGKILL')
    await untilGone(site, pid)
  })

  test('that counts down leaves the server to a broker that comes meanwhile', async (t) => {
    const site = await installation(t)
    const broker = site.other()
    const { pid } = await broker.up
    const [guardian] = guardians(site.dataDir)
    broker.process.kill('SIGKILL')
    await until('it counts', () =>
      spawnSync('ps', ['-A', '-o', 'ppid=,comm='], { encoding: 'utf8' }).stdout.includes(`${guardian} sleep`),
    )
    // Time stands still for it, however long the next start takes.
    process.kill(guardian!, 'SIGSTOP')
    const server = await site.start()
    assert.deepEqual([server.pid, server.attached], [pid, true])
    process.kill(guardian!, 'SIGCONT')
    const control = await installation(t)
    const alone = control.other()
    const controlled = await alone.up
    alone.process.kill('SIGKILL')
    await untilGone(control, controlled.pid)
    assert.deepEqual([server.pid, isGone(site.dataDir, pid)], [pid, false])
    assert.deepEqual(guardians(site.dataDir), [guardian])
  })

  test('that ends the server under a broker that is just starting: it comes up again', async (t) => {
    const site = await installation(t)
    for (let round = 0; round < 3; round++) {
      const broker = site.other()
      const { pid } = await broker.up
      broker.process.kill('SIGKILL')
      await until(
        'the server is told to stop',
        () => pidFile(site)?.status === 'stopping' || isGone(site.dataDir, pid),
        LIMIT_MS,
      )
      const server = await startEmbedded({ dataDir: site.dataDir, log: noLog })
      assert.notEqual(server.pid, pid)
      assert.equal((await query(server, 'select 1')).length, 1)
      await server.stop()
      assert.ok(isGone(site.dataDir, server.pid))
    }
  })
})
