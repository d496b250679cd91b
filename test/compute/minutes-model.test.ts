/**
 * Minutes that are repeated, partly repeated, out of order, simultaneous, late or in the future, against a model of the
 * stored rows (docs/contract.md#compute).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { computeFold } from '../../jobs/compute-fold.ts'
import { emptyHistory } from '../jobs/compute-minutes.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { history, MINUTES, minute, minutes, pairs } from './minutes.ts'
import { culprit, type Fields, type Row, unique } from './posts.ts'

const RUNS = depth(15, 200)
const MINUTE_SECS = 60
const BUCKET_SECS = 300
/** Each history has its own minutes, one after another. */
const SLOT_MINUTES = 30
const SLOTS = 288
const WEEK_MINUTES = 10_080
/** Shorter waits are selected by time, longer ones by total. */
const HOURS_MINUTES = 360
const [MAX_CULPRITS, MAX_PAIRS_OF_VICTIM] = [20, 50]

/** With so many hours no minute of a history is rolled up, or all are. */
const [MANY_HOURS, FEW_HOURS] = [1_000, 1]
const NEVER = new AbortController().signal

const app = await startApp()
const { sql } = app
const began = Math.floor(Date.now() / 3_600_000) * 3_600
const FIRST = began - 6.5 * 86_400

/** The posted values of a container: its number, its counts and its waits. */
interface Sent {
  readonly container: number
  readonly value: number
  readonly waits: readonly number[]
  readonly isBad: boolean
}
interface Post {
  /** Seconds from the start of the slot; future ones are so many minutes beyond an hour from now. */
  readonly at: number
  readonly isAhead: boolean
  readonly secs: number
  readonly sent: readonly Sent[]
}
type Step =
  | { readonly kind: 'post'; readonly post: Post }
  | { readonly kind: 'again'; readonly which: number; readonly how: 'whole' | 'part' | 'reversed' | 'changed' | 'more' }
  | { readonly kind: 'at once'; readonly post: Post }
  | { readonly kind: 'pack' }
  | { readonly kind: 'roll up' }

const sent: fc.Arbitrary<Sent> = fc.record({
  container: fc.nat(2),
  value: fc.integer({ min: 1, max: 1_000 }),
  waits: fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 24, size: 'max' }),
  isBad: fc.nat(9).map((n) => n === 0),
})
const post: fc.Arbitrary<Post> = fc
  .record({
    minute: fc.nat(SLOT_MINUTES - 1),
    isAhead: fc.nat(4).map((n) => n === 0),
    secs: fc.constantFrom(60, 60, 60, 61, 300),
    sent: fc.array(sent, { minLength: 1, maxLength: 5 }),
  })
  // Minutes are not folded into a posted five-minute row.
  .map(({ minute, ...rest }) => ({ ...rest, at: minute * MINUTE_SECS + (rest.secs === BUCKET_SECS ? 7 : 0) }))
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('post' as const), post }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('again' as const),
      which: fc.nat(7),
      how: fc.constantFrom('whole', 'part', 'reversed', 'changed', 'more'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('at once' as const), post }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'pack' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'roll up' as const }) },
)

/** A stored row, by the time as sent. */
interface Kept {
  readonly post: Post
  readonly sent: Sent
  /** Whether a row of five minutes contains it. */
  isRolledUp: boolean
}

/** The row that is stored: the first post of each container, time and resolution, and the last entry within a post. */
class Model {
  readonly kept = new Map<string, Kept>()

  post(post: Post): number {
    const last = new Map(post.sent.filter(({ isBad }) => !isBad).map((one) => [one.container, one]))
    for (const one of last.values()) {
      const key = `${one.container} ${post.isAhead} ${post.at} ${post.secs}`
      if (!this.kept.has(key)) this.kept.set(key, { post, sent: one, isRolledUp: false })
    }
    return last.size
  }

  rollUp(): void {
    for (const one of this.kept.values()) one.isRolledUp = !one.post.isAhead && one.post.secs < BUCKET_SECS
  }

  /** Container, resolution, time or null for now, sum and maximum of each row, in this order. */
  rows(): string[] {
    const rows = new Map<string, number[]>()
    for (const [key, { post, sent, isRolledUp }] of this.kept) {
      const head = isRolledUp
        ? [sent.container, BUCKET_SECS, post.at - (post.at % BUCKET_SECS)]
        : [sent.container, post.secs, post.isAhead ? null : post.at]
      const id = isRolledUp ? JSON.stringify(head) : key
      const [, , , sum, most] = (rows.get(id) ?? [0, 0, 0, 0, 0]) as [number, number, number, number, number]
      rows.set(id, [...head, sum + sent.value, Math.max(most, sent.value)] as number[])
    }
    return [...rows.values()].map((row) => JSON.stringify(row)).sort()
  }

  /** The longest waits of each container; `isRecent`: only current ones. */
  waits(isRecent: boolean): number[][] {
    const all: number[][] = [[], [], []]
    for (const { post, sent } of this.kept.values())
      if (post.isAhead || !isRecent)
        all[sent.container]!.push(...sent.waits.toSorted((a, b) => b - a).slice(0, MAX_CULPRITS))
    return all.map((waits) => waits.sort((a, b) => b - a).slice(0, MAX_PAIRS_OF_VICTIM))
  }
}

/** One history: a pod of three containers on a node of its own. */
class Subject {
  readonly pod = unique('model')
  readonly start: number

  constructor(slot: number) {
    this.start = FIRST + slot * SLOT_MINUTES * MINUTE_SECS
  }

  async post({ at, isAhead, secs, sent }: Post): Promise<number> {
    const ts = new Date((isAhead ? began + 7_200 + at : this.start + at) * 1_000).toISOString()
    const containers = sent.map(({ container, value, waits, isBad }): Fields => {
      const blame = waits.map((wait) => culprit(wait))
      const gauge = { avg: value, max: value, last: value }
      const read = minute({
        pod_name: this.pod,
        container: `c${container}`,
        cpu: { nr_periods: value },
        memory: { current: gauge },
        blame,
      })
      return isBad ? { ...read, memory: null } : read
    })
    const answer = await app.post(MINUTES, minutes(containers, { node: this.pod, ts, resolution_secs: secs }))
    assert.equal(answer.status, 200, answer.text)
    return answer.json.accepted
  }

  /** Runs a pass of the job that keeps minutes of so many hours. */
  async pass(computeHistoryMinuteHours: number): Promise<void> {
    const { config, log } = app.deps
    await computeFold.run({ config: { ...config, computeHistoryMinuteHours }, db: app.db, log, signal: NEVER })
  }

  async rows(): Promise<string[]> {
    const rows = await history(app, { pod_uid: `uid-${this.pod}` }, WEEK_MINUTES)
    const shown = ({ container, resolution_secs, ts, cpu_nr_periods, mem_current_max }: Row) => {
      const at = Date.parse(ts) / 1_000
      const time = at < this.start + SLOT_MINUTES * MINUTE_SECS ? at - this.start : null
      if (time === null) assert.ok(at >= began && at <= Date.now() / 1_000 + 60, ts)
      return JSON.stringify([Number(container.slice(1)), resolution_secs, time, cpu_nr_periods, mem_current_max])
    }
    return rows.map(shown).sort()
  }

  async waits(minutes: number): Promise<number[][]> {
    const all: number[][] = [[], [], []]
    for (const { victim_container_uid, wait_ns } of await pairs(app, { node: this.pod, minutes }))
      all[Number(victim_container_uid.at(-1))]!.push(wait_ns)
    return all
  }
}

/** An earlier post, as it is repeated. */
function again(post: Post, how: Extract<Step, { kind: 'again' }>['how']): Post {
  const { sent } = post
  const changed = sent.map((one) => ({ ...one, value: one.value + 1, waits: [...one.waits, 500] }))
  if (how === 'part') return { ...post, sent: sent.slice(1) }
  if (how === 'reversed') return { ...post, sent: sent.toReversed() }
  if (how === 'changed') return { ...post, sent: changed }
  if (how === 'more')
    return {
      ...post,
      sent: [...[0, 1, 2].map((container) => ({ container, value: 7, waits: [9], isBad: false })), ...sent],
    }
  return post
}

let run = 0

test(`${RUNS} random histories: repeated minutes change nothing, whatever else is in the post`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 9 }), async (steps) => {
      const slot = run++ % SLOTS
      if (slot === 0) await emptyHistory(sql)
      const [model, subject] = [new Model(), new Subject(slot)]
      const posted: Post[] = []
      const send = async (post: Post) => {
        posted.push(post)
        assert.equal(await subject.post(post), model.post(post), 'accepted')
      }
      for (const one of steps) {
        if (one.kind === 'post') await send(one.post)
        else if (one.kind === 'again') {
          const before = posted[one.which % Math.max(1, posted.length)]
          if (before !== undefined) await send(again(before, one.how))
        } else if (one.kind === 'at once') {
          // Both posts have the same values for the same containers, in either order.
          const sent = [...new Map(one.post.sent.filter(({ isBad }) => !isBad).map((c) => [c.container, c])).values()]
          await Promise.all([
            send({ ...one.post, sent }),
            send({ ...one.post, sent: sent.toReversed() }),
            send({ ...one.post, sent: sent.slice(1) }),
            subject.pass(MANY_HOURS),
          ])
        } else if (one.kind === 'pack') await subject.pass(MANY_HOURS)
        else {
          await subject.pass(FEW_HOURS)
          model.rollUp()
        }
      }
      assert.deepEqual(await subject.rows(), model.rows(), 'GET /compute/history')
      assert.deepEqual(await subject.waits(WEEK_MINUTES), model.waits(false), 'GET /compute/contention by weight')
      assert.deepEqual(await subject.waits(HOURS_MINUTES), model.waits(true), 'GET /compute/contention by time')
    }),
    { numRuns: RUNS },
  )
})
