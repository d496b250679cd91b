/** Assertions and bodies that the tests of many routes share. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import type postgres from 'postgres'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import { type Answer, PATIENCE_MS, type startApp } from './app.ts'

type App = Awaited<ReturnType<typeof startApp>>

export function assertUnauthorized(answer: Answer): void {
  assert.equal(answer.status, 401)
  assert.equal(answer.text, 'missing or invalid bearer token')
  assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
}

export function assertForbidden(answer: Answer, scope: string): void {
  assert.equal(answer.status, 403)
  assert.equal(answer.text, `token lacks the '${scope}' scope`)
}

export function assertNoData(answer: Answer): void {
  assert.equal(answer.status, 404)
  assert.equal(answer.text, 'No data found')
  assert.match(answer.headers.get('content-type')!, /^text\/plain/)
}

/** 503 because the server cancelled the statement, with the text and retry time that clients rely on. */
export function assertDatabaseBusy(answer: Answer): void {
  assert.equal(answer.status, 503)
  assert.match(answer.text, /^database busy: .*; retry in 5 seconds$/)
  assert.equal(answer.headers.get('retry-after'), '5')
}

/** 503 because the read budget is spent, with both phrases that clients look for. */
export function assertShed(answer: Answer, neededKib: number, totalKib: number): void {
  assert.equal(answer.status, 503)
  assert.match(answer.text, /^read memory budget/)
  assert.ok(answer.text.includes(`needs ${neededKib} KiB of a ${totalKib} KiB budget`), answer.text)
  assert.equal(answer.headers.get('retry-after'), '1')
}

/** Runs `work` while another session holds an exclusive lock on the table. */
export async function whileLocked(sql: postgres.Sql, table: string, work: () => Promise<void>): Promise<void> {
  await sql.begin(async (held) => {
    await held`lock table ${held(table)} in access exclusive mode`
    await work()
  })
}

/**
 * Like `whileLocked`, and cancels each statement that waits for the lock, as a statement timeout does. The app
 * therefore needs no short timeout, which its other statements could exceed on a busy machine.
 */
export async function whileRefused(sql: postgres.Sql, table: string, work: () => Promise<void>): Promise<void> {
  await sql.begin(async (held) => {
    await held`lock table ${held(table)} in access exclusive mode`
    const [holder] = await held<{ pid: number }[]>`select pg_backend_pid() as pid`
    let isOver = false
    const cancelling = (async () => {
      // Each statement is cancelled once: a second signal could arrive late and cancel the next statement.
      const cancelled: string[] = []
      while (!isOver) {
        const found = await sql<{ statement: string }[]>`
          select s.statement
          from (
            select pid, pid || ' ' || query_start as statement from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query_start is not null
          ) s
          where case
            when s.statement = any (string_to_array(${cancelled.join()}, ',')) then false
            when ${holder!.pid}::integer = any (pg_blocking_pids(s.pid)) then pg_cancel_backend(s.pid)
            else false
          end`
        cancelled.push(...found.map(({ statement }) => statement))
        await delay(5)
      }
    })()
    try {
      await work()
    } finally {
      isOver = true
      await cancelling
    }
  })
}

/** A second process on the same database. `post` resolves to the status. Call `end` before the test file ends. */
export function startReplica(app: App) {
  const log = pino({ level: 'silent' })
  const db = openDatabase({
    connection: app.url,
    poolMax: 8,
    statementTimeoutMs: app.deps.config.dbStatementTimeoutMs,
    waitMs: PATIENCE_MS,
    prepare: true,
    applicationName: 'broker-test-replica',
    log,
  })
  const replica = createApp(buildDeps({ config: app.deps.config, db, log }), routes)
  const headers = { 'content-type': 'application/json' }
  return {
    post: async (path: string, body: unknown) =>
      (await replica.request(path, { method: 'POST', headers, body: JSON.stringify(body) })).status,
    end: () => db.end(1_000),
  }
}

export interface RefusedBody {
  what: string
  status: number
  says: RegExp
  body: string | Uint8Array
  headers?: Record<string, string>
}

/**
 * Bodies that every route with a JSON object as its body refuses, whatever its schema. `accepted` is a valid body, and
 * `field` is one of its texts.
 */
export function refusedBodies(accepted: Record<string, unknown>, field: string): RefusedBody[] {
  const text = JSON.stringify(accepted)
  const gzipped = gzipSync(text)
  const withText = (escaped: string) => text.replace(JSON.stringify(accepted[field]), `"${escaped}"`)
  const notUtf8 = Buffer.from(withText('@'))
  notUtf8[notUtf8.indexOf(0x40)] = 0xff
  const padded = (bytes: number) => text + ' '.repeat(bytes - Buffer.byteLength(text))
  const gzip = { 'content-encoding': 'gzip' }
  return [
    { what: 'an empty body', status: 400, says: /^Json deserialize error: /, body: '' },
    {
      what: 'a body that ends early',
      status: 400,
      says: /^Json deserialize error: invalid JSON/,
      body: text.slice(0, -1),
    },
    {
      what: 'a body that is not JSON',
      status: 400,
      says: /^Json deserialize error: invalid JSON/,
      body: 'pod_name=web',
    },
    {
      what: 'two documents',
      status: 400,
      says: /^Json deserialize error: invalid JSON: at position /,
      body: text + text,
    },
    { what: 'a byte order mark', status: 400, says: /^Json deserialize error: /, body: `\u{feff}${text}` },
    {
      what: 'a megabyte of opening brackets',
      status: 400,
      says: /^Json deserialize error: /,
      body: '['.repeat(1024 * 1024),
    },
    {
      what: 'an array nested a million deep',
      status: 400,
      says: /^Json deserialize error: /,
      body: `${'['.repeat(1e6)}${']'.repeat(1e6)}`,
    },
    ...['null', '7', '"text"', '[]', `[${text}]`].map((body) => ({
      what: `${body.slice(0, 8)} where an object is due`,
      status: 400,
      says: /^Json deserialize error: .*expected object/,
      body,
    })),
    {
      what: 'U+0000',
      status: 400,
      says: new RegExp(`^Json deserialize error: ${field}: U\\+0000`),
      body: withText('a\\u0000b'),
    },
    ...['\\ud800', '\\udc00x', '\\udc00\\ud800'].map((half) => ({
      what: `half a surrogate pair, ${half}`,
      status: 400,
      says: new RegExp(`^Json deserialize error: ${field}: half a surrogate pair`),
      body: withText(half),
    })),
    { what: 'U+0000 in a key', status: 400, says: /U\+0000/, body: text.replace('{', '{"a\\u0000":1,') },
    { what: 'bytes that are not UTF-8', status: 400, says: /^Json deserialize error: .*UTF-8/, body: notUtf8 },
    {
      what: 'another content type',
      status: 400,
      says: /content type/i,
      body: text,
      headers: { 'content-type': 'text/plain' },
    },
    { what: 'no content type', status: 400, says: /content type/i, body: text, headers: { 'content-type': '' } },
    {
      what: 'an unknown content coding',
      status: 415,
      says: /content-encoding br /,
      body: text,
      headers: { 'content-encoding': 'br' },
    },
    { what: 'invalid gzip', status: 400, says: /not valid gzip/, body: text, headers: gzip },
    {
      what: 'a gzip that ends early',
      status: 400,
      says: /not valid gzip/,
      body: gzipped.subarray(0, -9),
      headers: gzip,
    },
    { what: 'a body of 2 MiB and one byte', status: 413, says: /2097152 bytes/, body: padded(MAX_CORE_BODY_BYTES + 1) },
    {
      what: 'a gzip of more than 2 MiB',
      status: 413,
      says: /2097152 bytes/,
      body: gzipSync(padded(MAX_CORE_BODY_BYTES + 1)),
      headers: gzip,
    },
  ]
}

/** Forms of one body that must be accepted as well. */
export function acceptedSpellings(accepted: Record<string, unknown>) {
  const text = JSON.stringify(accepted)
  const large = text + ' '.repeat(MAX_CORE_BODY_BYTES - Buffer.byteLength(text))
  return [
    { what: 'gzip', body: gzipSync(text), headers: { 'content-encoding': 'gzip' } },
    { what: 'GZIP in capitals', body: gzipSync(text), headers: { 'content-encoding': 'GZIP' } },
    { what: 'identity', body: text, headers: { 'content-encoding': 'identity' } },
    { what: 'a charset', body: text, headers: { 'content-type': 'application/json; charset=utf-8' } },
    { what: 'a content type in capitals', body: text, headers: { 'content-type': 'Application/JSON' } },
    { what: '2 MiB to the byte', body: large, headers: {} },
    { what: 'a gzip of 2 MiB to the byte', body: gzipSync(large), headers: { 'content-encoding': 'gzip' } },
  ]
}

/** Times that are invalid in any body. */
export const BAD_TIMES = [
  ...[
    '',
    'now',
    '2024-05-01',
    '2024-05-01T10:00',
    '2024-05-01 10:00:00',
    '2024-05-01T10:00:00Z',
    '2024-05-01T10:00:00+00:00',
  ],
  ...[
    '2024-02-30T00:00:00',
    '2023-02-29T00:00:00',
    '2024-04-31T00:00:00',
    '2024-13-01T00:00:00',
    '2024-00-10T00:00:00',
  ],
  ...[
    '2024-05-01T24:00:00',
    '2024-05-01T10:60:00',
    '2024-05-01T10:00:60',
    '2024-05-01T10:00:00.',
    '2024-05-01T10:00:00.1234567890',
  ],
  ...['0000-01-01T00:00:00', '12024-05-01T10:00:00', ' 2024-05-01T10:00:00', '2024-05-01T10:00:00 ', 'infinity'],
]

/** Valid times, with their form in answers. */
export const GOOD_TIMES = {
  '2024-02-29T23:59:59': '2024-02-29T23:59:59',
  '2024-05-01T10:00:00.1': '2024-05-01T10:00:00.100',
  '2024-05-01T10:00:00.123': '2024-05-01T10:00:00.123',
  '2024-05-01T10:00:00.1230': '2024-05-01T10:00:00.123',
  '2024-05-01T10:00:00.12345': '2024-05-01T10:00:00.123450',
  '2024-05-01T10:00:00.123456789': '2024-05-01T10:00:00.123456',
  '2024-05-01T10:00:00.000000999': '2024-05-01T10:00:00',
  '0001-01-01T00:00:00': '0001-01-01T00:00:00',
  '9999-12-31T23:59:59.999999': '9999-12-31T23:59:59.999999',
}
