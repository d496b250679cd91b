import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { mergeExecutables } from '../../lib/runtime/executables/merge.ts'
import { byLabel } from '../seccomp/drains.ts'
import { startApp, TOKENS } from '../support/app.ts'
import {
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  GOOD_TIMES,
  whileLocked,
} from '../support/routes.ts'
import { at, DIGEST, executable, type Fields, only, PATH, stored, take } from './executables.ts'

const ORIGINS = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd']
const MAX_BYTES = 8 * 1024 * 1024
const app = await startApp()
const { sql, deps } = app

beforeEach(async () => {
  await sql`truncate runtime_executable`
  app.logged.length = 0
})

const rejected = async () => (await byLabel(deps.metrics.rejectedEntries))[PATH] ?? 0
const isNow = (time: string) => assert.ok(Math.abs(Date.parse(`${time}Z`) - Date.now()) < 60_000, time)
const inSecs = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString().slice(0, -1)

test('POST /runtime/executables 200: a row has everything that was sent', async () => {
  const sent = executable({
    kind: 'lib',
    path: '/lib/a.so',
    source: 'ebpf',
    origin: 'otherFs',
    path_complete: false,
    last_seen: at(3.5),
  })
  assert.deepEqual(await take(app, [sent]), [1, 0, 1])
  const { pod_name, ...rest } = sent
  assert.deepEqual(await only(app), { cluster_id: 'primary', ...rest, last_pod_name: pod_name })
})

test('POST /runtime/executables 200: the longest texts are stored whole, also paths that differ only at their end', async () => {
  const long = (bytes: number) => `${'x'.repeat(bytes - 2)}é`
  const names = {
    pod_namespace: long(253),
    pod_name: long(253),
    workload_kind: long(63),
    workload_name: long(253),
    container_name: long(253),
  }
  const image_digest = `sha512:${'f'.repeat(128)}`
  const paths = [`${'/é'.repeat(1365)}a`, `${'/é'.repeat(1365)}b`, '/'.repeat(4096), `${'/'.repeat(4095)}x`]
  for (const path of paths) assert.ok(Buffer.byteLength(path) === 4096)
  const entries = paths.map((path) => executable({ ...names, image_digest, path }))
  assert.deepEqual(await take(app, entries), [4, 0, 4])
  assert.deepEqual(await take(app, entries), [4, 0, 0])
  const rows = await stored(app)
  assert.deepEqual(new Set(rows.map(({ path }) => path)), new Set(paths))
  const { pod_name, ...key } = names
  for (const row of rows)
    for (const [name, value] of Object.entries({ ...key, image_digest, last_pod_name: pod_name }))
      assert.equal(row[name as keyof typeof row], value)
})

test('POST /runtime/executables 200: a path is kept byte for byte', async () => {
  const paths = [
    ' ',
    '{}',
    'null',
    'NULL',
    '"',
    '\\',
    '\\"',
    'a,b',
    '{"a",b}',
    '\n',
    '\u0001',
    '/Bin/../x ',
    '\u00e9',
    'e\u0301',
    '😀',
    "'",
    '$1',
    '\u2028',
  ]
  assert.deepEqual(
    await take(
      app,
      paths.map((path) => executable({ path })),
    ),
    [paths.length, 0, paths.length],
  )
  assert.deepEqual(new Set((await stored(app)).map(({ path }) => path)), new Set(paths))
})

test('POST /runtime/executables 200: names with special characters are stored unchanged', async () => {
  const names = ['"', '\\', '{', 'NULL', 'a,b', ' x ', 'a\n', '😀']
  const fields = (text: string) => ({
    pod_namespace: text,
    pod_name: text,
    workload_kind: text,
    workload_name: text,
    container_name: text,
  })
  assert.deepEqual(
    await take(
      app,
      names.map((text) => executable(fields(text))),
    ),
    [names.length, 0, names.length],
  )
  for (const { pod_namespace, workload_kind, workload_name, container_name, last_pod_name } of await stored(app)) {
    assert.ok(names.includes(pod_namespace))
    assert.deepEqual([workload_kind, workload_name, container_name, last_pod_name], Array(4).fill(pod_namespace))
  }
})

test('POST /runtime/executables 200: an empty list writes nothing', async () => {
  assert.deepEqual(await take(app, []), [0, 0, 0])
})

test('POST /runtime/executables 200: the same path with another owner, container, image or kind is another row', async () => {
  const path = '/usr/bin/env'
  const others = [
    {},
    { pod_namespace: 'other' },
    { workload_kind: 'Job' },
    { workload_name: 'other' },
    { container_name: 'other' },
    { image_digest: '' },
    { kind: 'lib' },
    { workload_kind: null, workload_name: null },
  ].map((fields) => executable({ path, ...fields }))
  assert.deepEqual(await take(app, others), [8, 0, 8])
  assert.deepEqual(await take(app, others), [8, 0, 0])
})

test('POST /runtime/executables 200: the same path in another pod of the workload is the same row', async () => {
  const path = '/bin/x'
  assert.deepEqual(await take(app, [executable({ path }), executable({ path, pod_name: 'web-1' })]), [2, 0, 1])
  assert.deepEqual(await take(app, [executable({ path, pod_name: 'web-2' })]), [1, 0, 0])
})

test('POST /runtime/executables 200: rows of another cluster are left alone', async () => {
  await take(app, [executable({ path: '/x' })])
  await sql`update runtime_executable set cluster_id = 'secondary'`
  assert.deepEqual(await take(app, [executable({ path: '/x' })]), [1, 0, 1])
  assert.deepEqual((await stored(app)).map(({ cluster_id }) => cluster_id).sort(), ['primary', 'secondary'])
})

test('POST /runtime/executables 200: known files of a container with many files are neither written nor locked', async () => {
  const paths = Array.from({ length: 60 }, (_, i) => `/lib/${String(i).padStart(2, '0')}`)
  const others = [{ kind: 'lib' }, { container_name: 'other' }]
  await take(app, [
    ...paths.map((path) => executable({ path })),
    ...others.flatMap((of) => paths.map((path) => executable({ path, ...of }))),
  ])
  const versions = () => sql`select xmin::text, xmax::text, ctid::text, path from runtime_executable order by ctid`
  const old = [...(await versions())]
  const known = [paths[0]!, paths[30]!, paths[59]!]
  const some = [...known.map((path) => executable({ path })), executable({ path: paths[59], kind: 'lib' })]
  assert.deepEqual(await take(app, some), [4, 0, 0])
  assert.deepEqual([...(await versions())], old, 'not even locked')
  assert.deepEqual(await take(app, [...some, executable({ path: '/lib/30/new' })]), [5, 0, 1])
  assert.deepEqual(
    (await versions()).filter(({ path }) => path !== '/lib/30/new'),
    old,
  )
})

describe('optional fields', () => {
  for (const [what, fields, expected] of [
    [
      'no workload',
      { workload_kind: undefined, workload_name: undefined },
      { workload_kind: 'Pod', workload_name: 'web-0' },
    ],
    [
      'a workload of nulls',
      { workload_kind: null, workload_name: null },
      { workload_kind: 'Pod', workload_name: 'web-0' },
    ],
    ['a blank workload', { workload_kind: '', workload_name: ' \t' }, { workload_kind: 'Pod', workload_name: 'web-0' }],
    [
      'a blank kind and no name',
      { workload_kind: ' ', workload_name: undefined },
      { workload_kind: 'Pod', workload_name: 'web-0' },
    ],
    ['no pod', { pod_name: undefined }, { last_pod_name: null }],
    ['a pod that is null', { pod_name: null }, { last_pod_name: null }],
    ['a blank pod', { pod_name: ' ' }, { last_pod_name: null }],
    ['no digest', { image_digest: undefined }, { image_digest: '' }],
    ['a digest that is null', { image_digest: null }, { image_digest: '' }],
    ['an empty digest', { image_digest: '' }, { image_digest: '' }],
    ['no path_complete', { path_complete: undefined }, { path_complete: true }],
    ['path_complete null', { path_complete: null }, { path_complete: true }],
    ['no origin', { origin: undefined }, { origin: 'unknown' }],
    ['an origin that is null', { origin: null }, { origin: 'unknown' }],
    ['an empty origin', { origin: '' }, { origin: 'unknown' }],
    ['an unknown origin', { origin: 'elsewhere' }, { origin: 'unknown' }],
    ['an origin in another case', { origin: 'OTHERFS' }, { origin: 'unknown' }],
    ['a long origin', { origin: 'x'.repeat(5_000) }, { origin: 'unknown' }],
    [
      'kind and source in another case, with blanks',
      { kind: ' LIB\t', source: '\nBackFill ' },
      { kind: 'lib', source: 'backfill' },
    ],
    ['unknown keys', { comm: 'a\0b', deep: { x: [1, '\ud800'] }, __proto__: { path: '/y' } }, { kind: 'exec' }],
  ] as [string, Fields, Fields][])
    test(`POST /runtime/executables 200: ${what}`, async () => {
      assert.deepEqual(await take(app, [executable(fields)]), [1, 0, 1])
      const row = await only(app)
      for (const [name, value] of Object.entries(expected)) assert.equal(row[name as keyof typeof row], value)
    })
})

describe('entries that are dropped', () => {
  const NAMES = {
    pod_namespace: 253,
    pod_name: 253,
    workload_kind: 63,
    workload_name: 253,
    container_name: 253,
  } as const
  const dropped: [what: string, field: string, entry: unknown][] = [
    ...Object.entries({ ...NAMES, path: 4096 }).flatMap(([field, most]): [string, string, unknown][] => [
      [`${field} of ${most + 1} bytes`, field, executable({ [field]: 'x'.repeat(most + 1) })],
      [`${field} of ${most} characters, more bytes`, field, executable({ [field]: `${'x'.repeat(most - 1)}é` })],
    ]),
    ...['pod_namespace', 'container_name'].flatMap((field) =>
      [undefined, null, '', ' ', '\t\u00a0'].map((value): [string, string, unknown] => [
        `${field} ${JSON.stringify(value)}`,
        field,
        executable({ [field]: value }),
      ]),
    ),
    ...[...Object.keys(NAMES), 'image_digest', 'kind', 'path', 'source', 'origin', 'first_seen', 'last_seen'].flatMap(
      (field): [string, string, unknown][] => [
        ...[7, true, {}, [], ['x']].map((value): [string, string, unknown] => [
          `${field} ${JSON.stringify(value)}`,
          field,
          executable({ [field]: value }),
        ]),
        [`${field} with U+0000`, field, executable({ [field]: 'a\0b' })],
        [`${field} with half a surrogate pair`, field, executable({ [field]: 'a\ud800' })],
      ],
    ),
    ...['kind', 'source'].flatMap((field) =>
      [undefined, null, '', ' ', 'script', 'exec\u0130', 'execs', `${' '.repeat(13)}exec`].map(
        (value): [string, string, unknown] => [
          `${field} ${JSON.stringify(value)}`,
          field,
          executable({ [field]: value }),
        ],
      ),
    ),
    ['a kind for a source', 'source', executable({ source: 'exec' })],
    ...[undefined, null, ''].map((path): [string, string, unknown] => [
      `path ${JSON.stringify(path)}`,
      'path',
      executable({ path }),
    ]),
    ...['true', 1, 0, '', {}, []].map((value): [string, string, unknown] => [
      `path_complete ${JSON.stringify(value)}`,
      'path_complete',
      executable({ path_complete: value }),
    ]),
    ...[
      ' ',
      'latest',
      DIGEST.slice(0, -1),
      `${DIGEST}0`,
      DIGEST.toUpperCase(),
      `sha256:${'A'.repeat(64)}`,
      `sha512:${'a'.repeat(64)}`,
      `sha256:${'a'.repeat(128)}`,
      `md5:${'a'.repeat(32)}`,
      ` ${DIGEST}`,
      `${DIGEST}\n`,
    ].map((image_digest): [string, string, unknown] => [
      `image_digest ${JSON.stringify(image_digest).slice(0, 20)}`,
      'image_digest',
      executable({ image_digest }),
    ]),
    ...[undefined, null, '', ' '].flatMap((nothing): [string, string, unknown][] => [
      [`workload_name ${JSON.stringify(nothing)} only`, 'workload_name', executable({ workload_name: nothing })],
      [`workload_kind ${JSON.stringify(nothing)} only`, 'workload_kind', executable({ workload_kind: nothing })],
      [
        `neither workload nor pod, ${JSON.stringify(nothing)}`,
        'pod_name',
        executable({ workload_kind: nothing, workload_name: nothing, pod_name: nothing }),
      ],
    ]),
    ...['first_seen', 'last_seen'].flatMap((field) =>
      [undefined, null, ...BAD_TIMES, `2026-01-01T00:00:00.${'0'.repeat(80)}`].map(
        (value): [string, string, unknown] => [
          `${field} ${JSON.stringify(value)}`,
          field,
          executable({ [field]: value }),
        ],
      ),
    ),
    ...[null, 'text', 7, true, [], [executable()]].map((entry): [string, string, unknown] => [
      `${JSON.stringify(entry).slice(0, 9)} for an entry`,
      'entry',
      entry,
    ]),
  ]
  for (const field of new Set(dropped.map(([, field]) => field)))
    test(`POST /runtime/executables 200: an entry with an invalid ${field} is dropped and counted; the others are stored`, async () => {
      const before = await rejected()
      const bad = dropped.filter(([, one]) => one === field)
      assert.deepEqual(await take(app, [executable(), ...bad.map(([, , entry]) => entry), executable()]), [
        2,
        bad.length,
        2,
      ])
      assert.equal(await rejected(), before + bad.length)
      for (const [what, , entry] of bad)
        assert.deepEqual((await mergeExecutables([JSON.parse(JSON.stringify(entry))])).dropped, { [field]: 1 }, what)
    })

  test('POST /runtime/executables 200: one log line a minute counts dropped entries by field', async () => {
    const other = await startApp()
    assert.deepEqual(
      await take(other, [
        executable({ kind: 'x' }),
        executable({ kind: '' }),
        executable({ path: '' }),
        7,
        executable(),
      ]),
      [1, 4, 1],
    )
    assert.deepEqual(await take(other, [executable({ kind: 'x' })]), [0, 1, 0])
    const lines = other.logged.filter(({ level }) => level === 40)
    assert.equal(lines.length, 1)
    const { kind, path, entry, msg } = lines[0]!
    assert.deepEqual([kind, path, entry], [2, 1, 1])
    assert.match(String(msg), /\/runtime\/executables: executables were dropped/)
  })
})

describe('times', () => {
  const kept = async (first_seen: unknown, last_seen: unknown) => {
    await sql`truncate runtime_executable`
    assert.deepEqual(await take(app, [executable({ first_seen, last_seen })]), [1, 0, 1])
    const row = await only(app)
    return [row.first_seen, row.last_seen] as const
  }

  test('POST /runtime/executables 200: naive UTC with up to nine digits, cut to microseconds', async () => {
    for (const [sent, shown] of Object.entries(GOOD_TIMES))
      if (shown < '2100') assert.deepEqual(await kept(sent, sent), [shown, shown])
  })

  test('POST /runtime/executables 200: a first_seen after last_seen is corrected', async () => {
    const [a, b] = ['2026-01-01T00:00:00', '2026-01-01T00:00:00.000001']
    assert.deepEqual(await kept(b, a), [a, b])
    const [first, last] = await kept(inSecs(86_400), a)
    assert.equal(first, a)
    isNow(last)
  })

  test('POST /runtime/executables 200: future times are stored as the present time of the database', async () => {
    const [first, last] = await kept(at(0), '9999-12-31T23:59:59.999999')
    assert.equal(first, at(0))
    isNow(last)
    const both = await kept(inSecs(86_400), inSecs(90_000))
    isNow(both[0])
    assert.equal(both[0], both[1])
  })

  test('POST /runtime/executables 200: a future time that is posted again is not written again', async () => {
    const entry = executable({ last_seen: inSecs(86_400) })
    assert.deepEqual(await take(app, [entry]), [1, 0, 1])
    assert.deepEqual(await take(app, [entry]), [1, 0, 0])
  })
})

describe('a backfill', () => {
  for (const origin of ORIGINS) {
    const expected = origin === 'deleted' || origin === 'memfd' ? origin : 'unknown'
    test(`POST /runtime/executables 200: origin ${origin} is stored as ${expected}`, async () => {
      await take(app, [executable({ source: 'backfill', origin })])
      assert.equal((await only(app)).origin, expected)
    })
  }

  test('POST /runtime/executables 200: a backfilled entry does not change the origin of a runtime entry in the same post', async () => {
    const path = '/bin/x'
    await take(app, [
      executable({ path, source: 'backfill', origin: 'writableLayer' }),
      executable({ path, origin: 'image' }),
    ])
    const { source, origin } = await only(app)
    assert.deepEqual([source, origin], ['ebpf', 'image'])
  })
})

describe('entries of one file in a post', () => {
  const path = '/bin/x'
  const entries = [
    executable({
      path,
      source: 'backfill',
      origin: 'deleted',
      path_complete: false,
      first_seen: at(30),
      last_seen: at(40),
      pod_name: 'a',
    }),
    executable({
      path,
      source: 'ebpf',
      origin: 'image',
      path_complete: true,
      first_seen: at(60),
      last_seen: at(90),
      pod_name: 'b',
    }),
    executable({
      path,
      source: 'backfill',
      origin: 'unknown',
      path_complete: false,
      first_seen: at(10),
      last_seen: at(80),
      pod_name: 'c',
    }),
  ]
  for (const [what, order] of [
    ['as they came', [0, 1, 2]],
    ['the newest first', [1, 2, 0]],
    ['the newest last', [2, 0, 1]],
  ] as [string, number[]][])
    test(`POST /runtime/executables 200: they become one row, ${what}`, async () => {
      assert.deepEqual(
        await take(
          app,
          order.map((i) => entries[i]),
        ),
        [3, 0, 1],
      )
      const { source, origin, path_complete, first_seen, last_seen, last_pod_name } = await only(app)
      assert.deepEqual(
        [source, origin, path_complete, first_seen, last_seen, last_pod_name],
        ['ebpf', 'deleted', true, at(10), at(90), 'b'],
      )
    })

  test('POST /runtime/executables 200: the pod is that of the newest entry, of the first if times are equal, and null if that entry has none', async () => {
    const one = { path, last_seen: at(90) }
    await take(app, [
      executable({ ...one, pod_name: 'a' }),
      executable({ ...one, pod_name: 'b' }),
      executable({ path, pod_name: null, last_seen: at(80) }),
    ])
    assert.equal((await only(app)).last_pod_name, 'a')
    await take(app, [
      executable({ path, last_seen: at(990), pod_name: null }),
      executable({ path, last_seen: at(890) }),
    ])
    assert.equal((await only(app)).last_pod_name, null)
  })
})

describe('a file that is stored', () => {
  const path = '/bin/x'
  const was = {
    path,
    source: 'backfill',
    origin: 'deleted',
    path_complete: false,
    first_seen: at(1_000),
    last_seen: at(2_000),
    pod_name: 'old',
  }
  const kept = async () => {
    const { source, origin, path_complete, first_seen, last_seen, last_pod_name } = await only(app)
    return { source, origin, path_complete, first_seen, last_seen, last_pod_name }
  }
  const { path: _, pod_name, ...before } = { ...was, last_pod_name: 'old' }

  for (const [what, fields, expected] of [
    ['the same', {}, null],
    ['the same of another pod', { pod_name: 'new' }, null],
    ['299.999999 s later', { last_seen: `${at(2_299)}.999999`, pod_name: 'new' }, null],
    ['300 s later', { last_seen: at(2_300), pod_name: 'new' }, { last_seen: at(2_300), last_pod_name: 'new' }],
    ['300 s later, of no pod', { last_seen: at(2_300), pod_name: null }, { last_seen: at(2_300), last_pod_name: null }],
    ['seen before', { last_seen: at(1_500) }, null],
    ['begun later', { first_seen: at(1_001) }, null],
    ['begun earlier', { first_seen: at(999), last_seen: at(1_999), pod_name: 'new' }, { first_seen: at(999) }],
    [
      'begun earlier, seen later',
      { first_seen: at(999), last_seen: at(2_001) },
      { first_seen: at(999), last_seen: at(2_001), last_pod_name: 'new' },
    ],
    ['seen at runtime', { source: 'ebpf', origin: 'image' }, { source: 'ebpf' }],
    ['complete', { path_complete: true }, { path_complete: true }],
    ['a more suspicious origin', { origin: 'memfd' }, { origin: 'memfd' }],
    ['a less suspicious origin', { origin: 'image' }, null],
  ] as [string, Fields, Fields | null][])
    test(`POST /runtime/executables 200: ${what}: it is ${expected ? 'written' : 'left alone'}`, async () => {
      await take(app, [executable(was)])
      const version = async () => (await sql`select xmin::text, ctid::text from runtime_executable`)[0]
      const old = await version()
      const again = executable({ ...was, pod_name: 'new', ...fields })
      if (what === 'the same') again.pod_name = 'old'
      assert.deepEqual(await take(app, [again]), [1, 0, expected ? 1 : 0])
      assert.deepEqual(await kept(), { ...before, ...expected })
      if (!expected) assert.deepEqual(await version(), old)
      assert.deepEqual(await take(app, [again]), [1, 0, 0])
    })

  test('POST /runtime/executables 200: source, origin, path_complete and first_seen are not overwritten by weaker or later values', async () => {
    await take(app, [executable({ ...was, source: 'ebpf', origin: 'memfd', path_complete: true })])
    await take(app, [
      executable({ ...was, last_seen: at(9_000), first_seen: at(8_000), source: 'backfill', origin: 'unknown' }),
    ])
    const { source, origin, path_complete, first_seen, last_seen } = await only(app)
    assert.deepEqual(
      [source, origin, path_complete, first_seen, last_seen],
      ['ebpf', 'memfd', true, at(1_000), at(9_000)],
    )
  })

  test('POST /runtime/executables 200: only changed and new files of a large post are written', async () => {
    const many = Array.from({ length: 50 }, (_, i) => executable({ path: `/bin/${i}` }))
    await take(app, many)
    const again = many.map((one, i) => (i % 10 === 3 ? { ...one, origin: 'memfd' } : one))
    assert.deepEqual(await take(app, [...again, executable()]), [51, 0, 6])
  })
})

describe('the body', () => {
  for (const body of ['{}', 'null', '"x"', '7', 'true', '{"0":{}}'])
    test(`POST /runtime/executables 400: ${body} instead of a list`, async () => {
      const answer = await app.post(PATH, body)
      assert.equal(answer.status, 400)
      assert.match(answer.text, /^Json deserialize error: .*expected array/)
    })

  for (const body of ['', '[', '[{"a":', '[]]', '[{}', `[${JSON.stringify(executable())},]`])
    test(`POST /runtime/executables 400: ${body.slice(0, 8)} is invalid JSON`, async () => {
      const answer = await app.post(PATH, body)
      assert.equal(answer.status, 400)
      assert.match(answer.text, /^Json deserialize error: invalid JSON/)
    })

  test('POST /runtime/executables 400: bytes that are not UTF-8 or not gzip are refused', async () => {
    const bytes = Buffer.from(JSON.stringify([executable({ path: '/@' })]))
    bytes[bytes.indexOf(0x40)] = 0xff
    assert.match((await app.post(PATH, bytes)).text, /not UTF-8/)
    const answer = await app.post(PATH, '[]', { headers: { 'content-encoding': 'gzip' } })
    assert.deepEqual([answer.status, answer.text], [400, 'the body is not valid gzip'])
    assert.equal((await app.post(PATH, '[]', { headers: { 'content-encoding': 'br' } })).status, 415)
    assert.deepEqual(await stored(app), [])
  })

  test('POST /runtime/executables 400: invalid JSON behind 1000 good entries stores nothing', async () => {
    const good = Array.from({ length: 1_000 }, () => executable())
    const answer = await app.post(PATH, `${JSON.stringify(good).slice(0, -1)},{"a":}]`)
    assert.deepEqual([answer.status, await stored(app)], [400, []])
  })

  test('POST /runtime/executables 200: a body of 8 MiB is accepted, compressed or not', async () => {
    const body = JSON.stringify([executable()]).padEnd(MAX_BYTES)
    assert.deepEqual((await app.post(PATH, body)).json, { accepted: 1, dropped: 0, written: 1 })
    const packed = await app.post(PATH, gzipSync(body), { headers: { 'content-encoding': 'gzip' } })
    assert.deepEqual(packed.json, { accepted: 1, dropped: 0, written: 0 })
  })

  test('POST /runtime/executables 413: a body above 8 MiB is refused, compressed or not', async () => {
    const body = JSON.stringify([executable()]).padEnd(MAX_BYTES + 1)
    for (const answer of [
      await app.post(PATH, body),
      await app.post(PATH, gzipSync(body), { headers: { 'content-encoding': 'gzip' } }),
    ]) {
      assert.equal(answer.status, 413)
      assert.match(answer.text, /8388608 bytes/)
    }
    assert.deepEqual(await stored(app), [])
  })

  test('POST /runtime/executables 200: 5 000 full entries are accepted', async () => {
    const entries = Array.from({ length: 5_000 }, (_, i) => executable({ container_name: `c-${i % 40}` }))
    assert.deepEqual(await take(app, entries), [5_000, 0, 5_000])
    assert.deepEqual(await take(app, entries.toReversed()), [5_000, 0, 0])
  })

  test('POST /runtime/executables 413: more than 5 000 elements of any kind are refused, and nothing is written', async () => {
    for (const entry of [0, {}, executable()])
      for (const gzip of [false, true]) {
        const body = JSON.stringify(Array(5_001).fill(entry))
        const answer = await app.post(PATH, gzip ? gzipSync(body) : body, {
          headers: gzip ? { 'content-encoding': 'gzip' } : {},
        })
        assert.equal(answer.status, 413)
        assert.match(answer.text, /more than 5000 elements/)
      }
    assert.deepEqual(await stored(app), [])
  })

  test('POST /runtime/executables 200: text that PostgreSQL cannot store drops only its entry, also in a large body', async () => {
    const entries = Array.from({ length: 2_000 }, (_, i) =>
      executable(i % 100 === 7 ? { path: '/a\0' } : i % 100 === 8 ? { 'x\0': '\ud800' } : {}),
    )
    assert.deepEqual(await take(app, entries), [1_980, 20, 1_980])
  })
})

test('POST /runtime/executables 401: a request without a token is refused', async () => {
  const secured = await startApp(TOKENS)
  assertUnauthorized(await secured.post(PATH, []))
})

test('POST /runtime/executables 403: a token that only reads is refused', async () => {
  const secured = await startApp(TOKENS)
  assertForbidden(await secured.post(PATH, [], { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
  assert.equal((await secured.post(PATH, [executable()], { token: TOKENS.BROKER_TOKEN_INGEST })).status, 200)
})

test('POST /runtime/executables 503: a locked table: nothing is stored, and dropped entries are not counted', async () => {
  const busy = await startApp({ DB_STATEMENT_TIMEOUT_MS: '300' })
  await whileLocked(busy.sql, 'runtime_executable', async () => {
    assertDatabaseBusy(await busy.post(PATH, [executable(), 7]))
  })
  assert.deepEqual(await stored(busy), [])
  assert.deepEqual(await byLabel(busy.deps.metrics.rejectedEntries), {})
})
