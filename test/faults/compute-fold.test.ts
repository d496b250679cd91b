/**
 * Several processes pack and roll up minutes at once and are killed or lose their sessions, while others post: each
 * minute is in exactly one row of five minutes.
 */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { computeFold } from '../../jobs/compute-fold.ts'
import {
  difference,
  emptyHistory,
  foldedAtOnce,
  type Minute,
  makeContainers,
  minutesRead,
  plain,
  post,
  stored,
  storedMinutes,
} from '../jobs/compute-minutes.ts'
import { startScene } from '../jobs/scene.ts'
import { depth } from '../support/depth.ts'
import { program } from '../support/program.ts'
import { until } from '../support/until.ts'

const HOUR = 3_600
const HOURS = 30
const POSTERS = 3
const PER_POST = 12
/** Then a poster goes on with other containers: no minute is posted twice. */
const LAPS = 60 / POSTERS
/** Posts of each poster before the faults and after them. */
const POSTS = depth(10, 25)
/** Pause of a poster after a post: without one, posts take the time from the processes that fold. */
const PAUSE_MS = depth(20, 0)
const CUTS = depth(2, 5)
/** Packs of five-minute rows that are there while others still post. */
const FOLDED = depth(5, 20)
const DEADLOCK_DETECTED = '40P01'

const scene = await startScene(computeFold)
const { sql } = scene
const [clock] = await sql<
  { secs: number }[]
>`select extract(epoch from date_trunc('minute', now() at time zone 'utc'))::float8 as secs`

await emptyHistory(sql)
await makeContainers(sql)

/** A deadlock with a process that makes days undoes the whole post; the broker tries such statements again. */
async function postAsBroker(minutes: readonly Minute[]): Promise<void> {
  const error = await post(sql, minutes).catch((reason: Error & { code?: string }) => reason)
  if (error?.code === DEADLOCK_DETECTED) return postAsBroker(minutes)
  if (error !== undefined) throw error
}

const folders: ChildProcess[] = []
async function folder(t: TestContext): Promise<ChildProcess> {
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [...program('test/faults/compute-folder.ts'), scene.url], {
    env: { PATH, HOME },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  folders.push(child)
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout!, 'data')
  return child
}

test('folding processes run at once and are killed during posts: no minute is lost and none counts twice', {
  timeout: 900_000,
}, async (t) => {
  // Containers without history would be deleted.
  const posted: Minute[] = Array.from({ length: 8 }, (_, i) => ({
    container: i + 1,
    at: clock!.secs - HOURS * HOUR - 60,
  }))
  await post(sql, posted)
  let posts = 0
  let isOver = false
  const posters = Array.from({ length: POSTERS }, async (_, poster) => {
    for (let n = 0; !isOver; n++) {
      // Different minutes around the limit of folding: before it, near it, and after it.
      const minutes = Array.from({ length: PER_POST }, (_, i) => {
        const slot = n * PER_POST + i
        const lap = Math.floor(slot / (HOURS * 60))
        const age = ((slot * 1_237) % (HOURS * 60)) * 60 + poster + POSTERS * (lap % LAPS)
        return {
          container: (slot % 4) + 1 + 4 * Math.floor(lap / LAPS),
          at: clock!.secs - age,
          values: plain(slot % 101),
        }
      })
      await postAsBroker(minutes)
      posted.push(...minutes)
      posts++
      await delay(PAUSE_MS)
    }
  })
  const more = async () => {
    const before = posts
    await until('more is posted', () => posts >= before + POSTERS * POSTS)
  }

  const [first] = await Promise.all([folder(t), folder(t)])
  await more()
  first.kill('SIGKILL')
  await folder(t)
  for (let cut = 0; cut < CUTS; cut++) {
    await until('a folder is at it', async () => {
      const ended = await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'compute-folder' and state = 'active' and query like '%compute_%'`
      return ended.length > 0
    })
  }
  await more()
  await until('they did fold', async () => (await sql`select from compute_folded_pack`).length > FOLDED)
  // Their lock is refused while others post or fold, so on a busy machine they take a few passes.
  await until('they did make days', async () => (await sql`select from compute_days('compute_minute')`).length > 1)
  await more()
  isOver = true
  await Promise.all(posters)
  for (const child of folders) child.kill('SIGKILL')
  await until('nobody folds', async () => {
    const rows =
      await sql`select from pg_stat_activity where datname = current_database() and application_name = 'compute-folder'`
    return rows.length === 0
  })

  const minutes = await storedMinutes(sql)
  const missing = posted.filter(({ container, at }) => !minutes.has(`${container} ${at}`))
  assert.deepEqual(missing.slice(0, 20), [], `${missing.length} are missing`)
  assert.deepEqual([await minutesRead(sql), minutes.size], [posted.length, posted.length])
  const { config } = scene.context()
  await until('all is folded', async () => {
    return (await scene.run({ config: { ...config, computeHistoryMinuteHours: 1 } })).outcome === 'done'
  })
  const [line] = await sql<
    { secs: number }[]
  >`select extract(epoch from counted_until)::float8 as secs from compute_fold`
  assert.ok(line!.secs > clock!.secs - 3 * HOUR)
  assert.equal(difference(await stored(sql), foldedAtOnce(posted, line!.secs)), null)
  assert.equal(await minutesRead(sql), posted.length)
})
