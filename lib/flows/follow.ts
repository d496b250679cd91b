/**
 * A stream of flows that neither loses nor repeats any, over restarts and replicas (docs/contract.md#following-flows).
 */
import type { z } from 'zod'
import { type Context, cutList, kib } from '../http/index.ts'
import type { Pieces } from '../http/response/stream.ts'
import type { FlowFilter } from './filter.ts'
import type { Follower } from './followers.ts'
import { renderLines } from './forms.ts'
import { FlowList } from './list.ts'
import { readWritten, readWrittenPlain } from './live.ts'
import { type Position, rangeEnd, type TimeLine, writeResume } from './resume.ts'

/** Flows that one statement reads. */
const ROWS = 1_000
const SECOND_MS = 1_000

/** The pieces of such a stream. Each ends with a line that has the token of its end. */
export function follow(
  c: Context,
  filter: FlowFilter,
  record: z.ZodObject,
  start: Position,
  timeLine: TimeLine,
  rowBytes: number,
): Pieces {
  const { db, followers, draining } = c.get('deps')
  const share = c.get('share')
  const startedAt = performance.now()
  let position = start
  let count = 0
  let sentAt = Number.NEGATIVE_INFINITY
  /** When the upper end of the present range was chosen. */
  let rangeAt = startedAt
  let isEnded = false
  let woken = () => {}
  const follower: Follower = { caughtUpAt: startedAt, wake: () => woken() }
  followers.requireRoom()
  const end = () => {
    isEnded = true
    followers.delete(follower)
    woken()
  }

  const token = () => {
    const at = timeLine.at + Math.floor((performance.now() - startedAt) / SECOND_MS)
    return writeResume(timeLine.name, filter, at, position)
  }
  const line = (fields: object) => Buffer.from(`${JSON.stringify({ ...fields, resume: token() })}\n`)

  const history = start.isHistory
    ? new FlowList(
        db.read,
        { filter, order: 'oldest', since: start.since ?? '-infinity', until: 'infinity', snapshot: start.seen! },
        record,
        start.place,
      )
    : null

  /** The next lines of the history. */
  async function readHistory(list: FlowList): Promise<Buffer> {
    const before = list.count
    const lines = await list.next(ROWS, renderLines)
    count += list.count - before
    position = { ...position, isHistory: !list.isOver, place: list.after }
    return lines
  }

  const isAtEnd = () => position.tx === position.upper && position.uuid === null
  /** Whether there are flows behind the position that can be read. */
  const hasNew = () =>
    !isAtEnd() || (followers.newest >= BigInt(position.base) && followers.upper > BigInt(position.base))

  /** The next flows that were written. */
  async function readNew(): Promise<Buffer> {
    if (isAtEnd()) {
      position = { ...position, upper: String(followers.upper) }
      rangeAt = followers.lookedAt
    }
    const asked = position
    const key = JSON.stringify([filter, Object.keys(record.shape), asked])
    const { lines, written } = await followers.share(key, async () => {
      const written = await readWritten(db.read, filter, record, asked, ROWS)
      const plain = () => readWrittenPlain(db.read, filter, record, asked, ROWS)
      return { written, lines: await renderLines(record, written, plain) }
    })
    count += written.passed
    if (written.count < ROWS) {
      position = rangeEnd(asked)
      follower.caughtUpAt = Math.max(follower.caughtUpAt, rangeAt)
    } else position = { ...asked, ...written.last! }
    return lines
  }

  const wait = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      woken = () => {
        clearTimeout(timer)
        resolve()
      }
    })

  return {
    async next() {
      // Not before: the stream of an answer to HEAD is never read, and never cancelled.
      if (!isEnded) followers.add(follower)
      try {
        while (!isEnded) {
          const now = performance.now()
          const isMoved = followers.lookedAt > startedAt && followers.timeLine !== timeLine.name
          if (draining() || isMoved || now - startedAt >= followers.longestMs) {
            const last = line({ end: true, count })
            end()
            return last
          }
          let lines: Buffer | null = null
          if (position.isHistory || hasNew()) {
            await share?.renew(kib(ROWS * rowBytes))
            if (isEnded) return null
            lines = history !== null && position.isHistory ? await readHistory(history) : await readNew()
            if (lines.length > 0) {
              sentAt = performance.now()
              return Buffer.concat([lines, line({})])
            }
            share?.keep(0)
          } else if (followers.newest < BigInt(position.base))
            follower.caughtUpAt = Math.max(follower.caughtUpAt, followers.lookedAt)
          if (performance.now() - sentAt >= followers.heartbeatMs) {
            sentAt = performance.now()
            return line({ heartbeat: true })
          }
          if (lines === null) await wait(followers.heartbeatMs)
        }
        return null
      } catch (error) {
        if (!isEnded) cutList(c, error as Error)
        end()
        throw error
      }
    },
    cancel: end,
  }
}
