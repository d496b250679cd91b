/**
 * Resume tokens of followers: where a stream of flows goes on (docs/contract.md#following-flows). A token belongs to
 * one database and time line, because another one numbers its transactions anew, and to one filter.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { HttpError } from '../errors.ts'
import { cursorOf, cursorText, writeCursor } from '../http/request/cursor.ts'
import { documentedAs } from '../openapi/declare.ts'
import { parseNaive } from '../time/timestamp.ts'
import type { FlowFilter } from './filter.ts'
import type { Place } from './read.ts'

/**
 * Where a follower stands. It has all flows that were written by transactions before `base`, and by those that the
 * snapshot `seen` has. Of those between `base` and `upper` it has read up to `tx`, and within that one up to `uuid`.
 * Before that it reads the history: the flows from `since` on that `seen` has. Of these it has read up to `place`.
 */
export interface Position {
  /** Text of a pg_snapshot; null where `base` says it all. */
  readonly seen: string | null
  readonly base: string
  readonly upper: string
  readonly tx: string
  readonly uuid: string | null
  /** Only flows with this time or a later one; null for flows of any time. */
  readonly since: string | null
  readonly isHistory: boolean
  readonly place: Place | null
}

/** The database as tokens name it. */
export interface TimeLine {
  /** The identifier of the cluster and the number of its time line. */
  readonly name: string
  /** Text of a pg_snapshot. */
  readonly snapshot: string
  /** All transactions before this one have ended. */
  readonly xmin: string
  /** The newest transaction that wrote a flow; null if none did. */
  readonly newest: string | null
  /** Unix time in seconds. */
  readonly at: number
}

const TIME_LINE = fixed<{ name: string; snapshot: string; xmin: string; newest: string | null; at: number }[]>(`
  select c.system_identifier || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '-' || d.oid as name,
         pg_current_snapshot()::text as snapshot, pg_snapshot_xmin(pg_current_snapshot())::text as xmin,
         (select t.tx::text from traffic t where t.tx is not null order by t.tx desc limit 1) as newest,
         floor(extract(epoch from now()))::float8 as at
  from pg_control_system() c
  join pg_database d on d.datname = current_database()`)

export async function readTimeLine(gate: Gate): Promise<TimeLine> {
  const [row] = await gate((sql) => TIME_LINE(sql))
  return row!
}

const hashOf = (filter: FlowFilter): string =>
  createHash('sha256').update(JSON.stringify(filter)).digest('base64url').slice(0, 16)

/** Whether PostgreSQL reads a text as a pg_snapshot: `xmin:xmax:xip,...`. */
export function isSnapshot(text: string): boolean {
  const [, xmin, xmax, running] = /^(\d{1,19}):(\d{1,19}):(\d{1,19}(?:,\d{1,19})*)?$/.exec(text) ?? []
  if (xmin === undefined || xmax === undefined) return false
  const ids = [xmin, ...(running?.split(',') ?? []), xmax].map(BigInt)
  const isAscending = ids.every((id, i) => i === 0 || id >= ids[i - 1]!)
  return isAscending && ids[0]! > 0n && (running === undefined || ids.at(-2)! < ids.at(-1)!)
}

const xid = z.string().regex(/^\d{1,19}$/)
const time = cursorText.refine((text) => text === '' || parseNaive(text.replace(' ', 'T')) !== null)
const Keys = z.tuple([
  z.literal('follow'),
  // time line, filter, Unix time
  cursorText,
  cursorText,
  z.int().min(0),
  // seen, base, upper, tx, uuid
  z.string().refine((text) => text === '' || isSnapshot(text)),
  xid,
  xid,
  xid,
  cursorText,
  // since, whether it is in the history, and its place there
  z.union([time, z.literal('-infinity')]),
  z.literal([0, 1]),
  time,
  cursorText,
])
type Keys = z.output<typeof Keys>

/** The query parameter `resume`: a token as it was sent, or null. */
export const resumeParameter = documentedAs(
  cursorOf(Keys, (sent) => JSON.parse(Buffer.from(sent, 'base64url').toString()), writeCursor),
  { type: 'string', 'x-opaque': true, description: 'The last `resume` of a stream that is to go on.' },
)

/** The token of a position at which a follower stood at `at`, Unix time in seconds. */
export function writeResume(name: string, filter: FlowFilter, at: number, position: Position): string {
  const { seen, base, upper, tx, uuid, since, isHistory, place } = position
  // A leading mark tells an empty uuid from none.
  const marked = uuid === null ? '' : `=${uuid}`
  const inHistory = [isHistory ? 1 : 0, place?.time ?? '', place?.uuid ?? ''] as const
  const range = [seen ?? '', base, upper, tx, marked] as const
  const keys: Keys = ['follow', name, hashOf(filter), at, ...range, since ?? '', ...inHistory]
  return writeCursor(keys)
}

/**
 * The position of a token. Throws 400 for one of another filter, and 410 for one of another database, or one so old
 * that flows may have been deleted that were never sent.
 */
export function readResume(keys: Keys, filter: FlowFilter, now: TimeLine, retentionDays: number): Position {
  const [, name, hash, at, seen, base, upper, tx, uuid, since, isHistory, placeTime, placeUuid] = keys
  if (hash !== hashOf(filter)) throw new HttpError(400, 'Query deserialize error: resume: it belongs to another filter')
  const gone = (why: string) =>
    new HttpError(410, `resume: ${why}: begin anew with since=, and replace what you have of that time`)
  if (name !== now.name || BigInt(upper) > BigInt(now.xmin)) throw gone('the token is of another database or time line')
  if (retentionDays > 0 && now.at - at > retentionDays * 86_400)
    throw gone(`flows are kept for ${retentionDays} days, and the token is older`)
  return {
    ...{ seen: seen === '' ? null : seen, base, upper, tx, uuid: uuid === '' ? null : uuid.slice(1) },
    since: since === '' ? null : since,
    isHistory: isHistory === 1,
    place: placeTime === '' ? null : { time: placeTime, uuid: placeUuid },
  }
}

/** The position of a follower that begins now: with the flows from `since` on, or without a history. */
export const startPosition = (
  { snapshot, xmin }: TimeLine,
  since: string | null,
  isHistory = since !== null,
): Position => ({
  ...{ seen: snapshot, base: xmin, upper: xmin, tx: xmin, uuid: null, since, place: null, isHistory },
})

/** The position at the end of the range that is being read. */
export function rangeEnd(position: Position): Position {
  const { seen, upper } = position
  const isPast = seen === null || BigInt(upper) >= BigInt(seen.split(':')[1]!)
  return { ...position, seen: isPast ? null : seen, base: upper, tx: upper, uuid: null }
}
