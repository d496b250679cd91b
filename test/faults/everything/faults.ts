/** The faults: each is a function that causes the fault for a while and then ends it. */
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { HOSTILE, validBodies } from '../../bench/hostile-bodies.ts'
import { type Hanging, readSlowly, trickle } from '../../bench/hostile-client.ts'
import type { Broker } from './broker.ts'
import type { Client } from './client.ts'
import { hostile } from './hostile.ts'
import type { Server } from './postgres.ts'
import type { Supervised } from './process.ts'
import type { LossyProxy } from './proxy.ts'
import type { Dice, Recorder } from './record.ts'

const SUSPENDED_S = [1, 20] as const
const LOCKED_S = [1, 40] as const
const SLOW_S = [10, 30] as const
/** Pause between two faults. */
const PAUSE_MS = [200, 2_500] as const
/** Pause before the next fault of a killed process, which is restarted meanwhile. */
const AFTER_KILL_MS = 3_000

export interface Scene {
  record: Recorder
  dice: Dice
  server: Server
  pooler: Supervised
  brokers: readonly Broker[]
  /** `front` is between the brokers and the pooler, `back` between the pooler and the server. */
  front: LossyProxy
  back: LossyProxy
  client: Client
}

/** Null if the fault is not possible now, since another one uses its target. */
export type Strike = (scene: Scene) => Promise<void> | null

const seconds = (s: number) => `for ${s.toFixed(1)} s`

async function named(record: Recorder, name: string, work: () => Promise<unknown>): Promise<void> {
  const fault = record.begin(name)
  try {
    await work()
  } catch (error) {
    // Another fault may have stopped the database; it has a line of its own.
    record.print(`(${name}: ${(error as Error).message})`)
  } finally {
    record.end(fault)
  }
}

async function alone(target: Supervised, work: () => Promise<void>): Promise<void> {
  target.busy = true
  try {
    await work()
  } finally {
    target.busy = false
  }
}

function kill({ record }: Scene, target: Supervised, signal: NodeJS.Signals): Promise<void> | null {
  if (target.busy || !target.isReady) return null
  return alone(target, () =>
    named(record, `${signal} of ${target.name}`, async () => {
      target.strike(signal)
      await delay(AFTER_KILL_MS)
    }),
  )
}

function suspend({ record, dice }: Scene, target: Supervised): Promise<void> | null {
  if (target.busy || !target.isReady) return null
  const s = dice.between(...SUSPENDED_S)
  return alone(target, () =>
    named(record, `SIGSTOP of ${target.name} ${seconds(s)}`, async () => {
      target.suspend()
      await delay(s * 1_000)
      target.resume()
    }),
  )
}

const some = (scene: Scene): Broker => scene.dice.pick(scene.brokers)

function signalBackend(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {}
}

function lock(scene: Scene, table: string): Promise<void> {
  const s = scene.dice.between(...LOCKED_S)
  return named(scene.record, `lock on ${table} ${seconds(s)}`, () =>
    scene.server.direct(
      (sql) =>
        sql.begin(async (transaction) => {
          await transaction.unsafe(`lock table ${table} in access exclusive mode`)
          await delay(s * 1_000)
        }),
      'broker',
      60_000,
    ),
  )
}

function lose(scene: Scene, proxy: LossyProxy, where: string): Promise<void> {
  const count = scene.dice.int(1, 20)
  return named(scene.record, `${count} answers to writes are lost between ${where}`, async () => {
    proxy.loseAnswers(count)
    await delay(5_000)
    proxy.loseAnswers(0)
  })
}

function hang(scene: Scene, name: string, start: (port: number) => Hanging): Promise<void> {
  const s = scene.dice.between(...SLOW_S)
  const broker = some(scene)
  return named(scene.record, `${name} at ${broker.name} ${seconds(s)}`, async () => {
    const hanging = start(broker.port)
    await delay(s * 1_000)
    hanging.stop()
  })
}

const SLOW_PATHS = ['/pod/traffic?limit=20000', '/pod/traffic/storm-1-1', '/pod/info']
const FRONT = 'brokers and pooler'
const BACK = 'pooler and server'

/** The faults with their relative frequencies. */
export const STRIKES: [weight: number, strike: Strike][] = [
  [3, (scene) => kill(scene, some(scene).process, 'SIGKILL')],
  [1, (scene) => kill(scene, some(scene).process, 'SIGTERM')],
  [3, (scene) => suspend(scene, some(scene).process)],
  [
    2,
    (scene) =>
      named(scene.record, 'pg_terminate_backend of every second session', async () => {
        await scene.server.direct(
          (sql) =>
            sql`select count(pg_terminate_backend(pid)) from (select pid, row_number() over () as n from pg_stat_activity where usename = 'broker') a where n % 2 = 0`,
          'postgres',
          5_000,
        )
      }),
  ],
  [
    1,
    (scene) =>
      named(scene.record, 'SIGKILL of a backend', async () => {
        const backends = await scene.server.backends()
        if (backends.length > 0) signalBackend(scene.dice.pick(backends), 'SIGKILL')
        await delay(AFTER_KILL_MS)
      }),
  ],
  [
    2,
    (scene) => {
      const s = scene.dice.between(...SUSPENDED_S)
      return named(scene.record, `SIGSTOP of some backends ${seconds(s)}`, async () => {
        const backends = (await scene.server.backends()).filter(() => scene.dice.next() < 0.4)
        for (const pid of backends) signalBackend(pid, 'SIGSTOP')
        await delay(s * 1_000)
        for (const pid of backends) signalBackend(pid, 'SIGCONT')
      })
    },
  ],
  [1, (scene) => kill(scene, scene.server.process, 'SIGKILL')],
  [1, (scene) => kill(scene, scene.server.process, 'SIGQUIT')],
  [1, (scene) => suspend(scene, scene.server.process)],
  [2, (scene) => kill(scene, scene.pooler, 'SIGKILL')],
  [2, (scene) => suspend(scene, scene.pooler)],
  [3, (scene) => lose(scene, scene.front, FRONT)],
  [3, (scene) => lose(scene, scene.back, BACK)],
  [1, (scene) => named(scene.record, `every connection between ${FRONT} is reset`, async () => scene.front.cut())],
  [1, (scene) => named(scene.record, `every connection between ${BACK} is reset`, async () => scene.back.cut())],
  [2, (scene) => lock(scene, 'traffic')],
  [1, (scene) => lock(scene, 'pod')],
  [
    4,
    (scene) => {
      const attack =
        scene.dice.next() < 0.85 ? scene.dice.pick(HOSTILE) : scene.dice.pick(validBodies(randomRun(scene.dice)))
      const [count, gzip, broker] = [scene.dice.pick([1, 2, 8]), scene.dice.next() < 0.5, some(scene)]
      const name = `${count} x ${attack.name}${gzip ? ', gzip' : ''} to ${broker.name}`
      return named(scene.record, name, () =>
        hostile(
          scene.client,
          broker,
          attack,
          Array.from({ length: count }, (_, i) => packed(attack.body(i), gzip)),
          gzip,
        ),
      )
    },
  ],
  [
    2,
    (scene) => {
      const path = scene.dice.pick(SLOW_PATHS)
      return hang(scene, `6 readers of ${path} at 2.4 kB/s`, (port) => readSlowly(port, path, 6, 2_400))
    },
  ],
  [1, (scene) => hang(scene, 'a reader that reads nothing', (port) => readSlowly(port, SLOW_PATHS[0]!, 1, 0))],
  [
    1,
    (scene) => hang(scene, '40 posters at 1 kB/s', (port) => trickle(port, '/pod/traffic/batch', 40, 1_000_000, 1_000)),
  ],
]

const randomRun = (dice: Dice) => dice.int(0, 0xffff_ffff).toString(16).padStart(8, '0')

function packed(text: string, gzip: boolean): Buffer {
  return gzip ? gzipSync(text, { level: 1 }) : Buffer.from(text)
}

function draw(dice: Dice): Strike {
  let at = dice.next() * STRIKES.reduce((sum, [weight]) => sum + weight, 0)
  for (const [weight, strike] of STRIKES) {
    at -= weight
    if (at < 0) return strike
  }
  return STRIKES[0]![1]
}

/** Causes random faults until the time is over, a few at once; resolves when the last one has ended. */
export async function storm(scene: Scene, untilMs: number, mostAtOnce: number): Promise<void> {
  const { dice, record } = scene
  const running = new Set<Promise<void>>()
  while (Date.now() < untilMs) {
    if (record.active.length < mostAtOnce) {
      const struck = draw(dice)(scene)
      if (struck) {
        const done = struck.finally(() => running.delete(done))
        running.add(done)
      }
    }
    await delay(dice.between(...PAUSE_MS))
  }
  await Promise.all(running)
}
