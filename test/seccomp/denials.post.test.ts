import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { podPost } from '../support/records.ts'
import {
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  refusedBodies,
  whileRefused,
} from '../support/routes.ts'
import {
  byLabel,
  countedBy,
  denial,
  drain,
  type Fields,
  heartbeat,
  inSecs,
  type Row,
  rows,
  take,
  unique,
} from './drains.ts'

const PATH = '/seccomp/denials'
const MAX_COUNT = 1_000_000_000_000
const app = await startApp()
const { sql, deps } = app

beforeEach(async () => {
  await sql`truncate seccomp_denial, seccomp_denial_node, pod, pod_address`
  app.logged.length = 0
})

const rejected = async () => (await byLabel(deps.metrics.rejectedEntries))[PATH] ?? 0
const rowsCounted = async () => (await byLabel(deps.metrics.denialRows))['']!
const counted = () => countedBy(deps)
const warnings = () => app.logged.filter(({ level }) => level === 40)
const pod = async (fields: Fields = {}) => {
  const post = podPost({ pod_namespace: 'shop', workload_kind: 'Deployment', workload_name: 'web', ...fields })
  assert.equal((await app.post('/pod/spec', post)).status, 200)
  return post.pod_name
}
const one = async (): Promise<Row> => {
  const all = await rows(app)
  assert.equal(all.length, 1)
  return all[0]!
}
const isNow = (time: string) => assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000, time)

test('POST /seccomp/denials 200: a row has all posted fields, and the workload of the pod', async () => {
  const podName = await pod()
  const [firstSeen, lastSeen] = ['2026-01-02T03:04:05.123456Z', '2026-01-02T03:04:06Z']
  const sent = denial({
    podName,
    syscallNr: 101,
    actionRaw: 327_681,
    arch: 'SCMP_ARCH_X86_64',
    count: 7,
    firstSeen,
    lastSeen,
  })
  assert.equal(await take(app, [sent]), 1)
  const { id, ...row } = await one()
  assert.ok(Number.isInteger(id))
  assert.deepEqual(row, { ...sent, workloadKind: 'Deployment', workloadName: 'web', nodeName: 'node-a' })
})

test('POST /seccomp/denials 200: an empty drain stores the report of the node', async () => {
  assert.equal(await take(app, []), 0)
  const { capturing, interval_seconds, posts, age_secs } = (await heartbeat(app))!
  assert.deepEqual([capturing, interval_seconds, posts.length], [true, 10, 1])
  assert.ok(age_secs >= 0 && age_secs < 60)
  assert.deepEqual(await rows(app), [])
})

test('POST /seccomp/denials 200: counts are added, times span all drains, and the newest optional fields and nodes are stored', async () => {
  const podName = unique('pod')
  const at = (second: number) => `2026-01-01T00:00:0${second}Z`
  await take(app, [denial({ podName, count: 2, firstSeen: at(5), lastSeen: at(6), syscallNr: 1, arch: 'a' })])
  await take(app, [denial({ podName, count: 3, firstSeen: at(2), lastSeen: at(4), syscallNr: 2, actionRaw: 9 })], {
    node: 'node-b',
  })
  await take(app, [denial({ podName, count: 4, firstSeen: at(7), lastSeen: at(8), arch: 'b' })], { node: 'node-c' })
  const { count, firstSeen, lastSeen, syscallNr, actionRaw, arch, nodeName } = await one()
  assert.deepEqual(
    [count, firstSeen, lastSeen, syscallNr, actionRaw, arch, nodeName],
    [9, at(2), at(8), 2, 9, 'b', 'node-c'],
  )
})

test('POST /seccomp/denials 200: names of a pod are never changed', async () => {
  const podUid = unique('uid')
  await take(app, [denial({ podUid, podName: 'before', podNamespace: 'then' })])
  await take(app, [denial({ podUid, podName: 'after', podNamespace: 'now' })])
  const { podName, podNamespace, count } = await one()
  assert.deepEqual([podName, podNamespace, count], ['before', 'then', 2])
})

test('POST /seccomp/denials 200: entries of one pod, syscall and action become one row', async () => {
  const podName = unique('pod')
  const at = (second: number) => `2026-01-01T00:00:0${second}Z`
  const accepted = await take(app, [
    denial({ podName, count: 1, firstSeen: at(4), lastSeen: at(5), actionRaw: 0 }),
    denial({ podName, count: 5, firstSeen: at(3), lastSeen: at(9), syscallNr: 0, actionRaw: 8, arch: 'x' }),
    denial({
      podName,
      podUid: `uid-${podName}`,
      podNamespace: 'elsewhere',
      count: 6,
      firstSeen: at(4),
      lastSeen: at(4),
      syscallNr: 3,
    }),
    denial({ podName, syscall: 'bpf' }),
    denial({ podName, action: 'SCMP_ACT_LOG' }),
    denial({ podName, podUid: 'another' }),
  ])
  assert.equal(accepted, 4)
  const all = await rows(app)
  assert.equal(all.length, 4)
  const { count, firstSeen, lastSeen, syscallNr, actionRaw, arch, podNamespace } = all.find((row) => row.count > 1)!
  assert.deepEqual(
    [count, firstSeen, lastSeen, syscallNr, actionRaw, arch, podNamespace],
    [12, at(3), at(9), 0, 0, 'x', 'shop'],
  )
})

test('POST /seccomp/denials 200: the answer counts the stored rows, after merging', async () => {
  const rowsBefore = await rowsCounted()
  const podName = unique('pod')
  await take(app, [denial({ podName }), denial({ podName }), denial({ podName, syscall: 'bpf' }), denial({ count: 0 })])
  await take(app, [])
  assert.equal(await rowsCounted(), rowsBefore + 2)
})

test('POST /seccomp/denials 200: counts are limited to 10^12: of an entry, of a drain and of all drains', async () => {
  const podName = unique('pod')
  assert.equal(await take(app, [denial({ podName, count: MAX_COUNT }), denial({ podName, count: MAX_COUNT })]), 1)
  assert.equal((await one()).count, MAX_COUNT)
  await take(app, [denial({ podName, count: 1 })])
  assert.equal((await one()).count, MAX_COUNT)
})

describe('times', () => {
  const stored = async (firstSeen?: unknown, lastSeen?: unknown) => {
    await sql`truncate seccomp_denial`
    assert.equal(await take(app, [denial({ firstSeen, lastSeen })]), 1)
    return one()
  }

  test('POST /seccomp/denials 200: an entry without times happened just now, by the clock of the database', async () => {
    const { firstSeen, lastSeen } = await stored()
    isNow(firstSeen)
    assert.equal(lastSeen, firstSeen)
  })

  test('POST /seccomp/denials 200: a missing first time is the last one, a missing last time is now', async () => {
    const past = '2026-01-01T00:00:00Z'
    const { firstSeen, lastSeen } = await stored(undefined, past)
    assert.deepEqual([firstSeen, lastSeen], [past, past])
    const other = await stored(past)
    assert.equal(other.firstSeen, past)
    isNow(other.lastSeen)
  })

  test('POST /seccomp/denials 200: times in the future are set to now, one or both', async () => {
    const [past, future] = ['2026-01-01T00:00:00Z', inSecs(86_400)]
    const { firstSeen, lastSeen } = await stored(past, future)
    assert.equal(firstSeen, past)
    isNow(lastSeen)
    for (const times of [[future, future], [future], [undefined, future]])
      for (const time of shownTimes(await stored(...times))) isNow(time)
  })

  test('POST /seccomp/denials 200: a reversed pair of times is swapped, also with one in the future', async () => {
    const [a, b] = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000001Z']
    assert.deepEqual(shownTimes(await stored(b, a)), [a, b])
    const [first, last] = shownTimes(await stored(inSecs(86_400), a))
    assert.equal(first, a)
    isNow(last!)
  })

  test('POST /seccomp/denials 200: any zone is accepted', async () => {
    const shown = shownTimes(await stored('2026-01-01T02:00:00.5+02:00', '2025-12-31t23:00:01.1234567-01:00'))
    assert.deepEqual(shown, ['2026-01-01T00:00:00.500Z', '2026-01-01T00:00:01.123456Z'])
  })

  test('POST /seccomp/denials 200: an unreadable time counts as absent, and drops nothing', async () => {
    for (const bad of [
      '2026-01-01T00:00:00',
      'yesterday',
      '',
      1_767_225_600,
      null,
      true,
      {},
      [],
      '2026-02-30T00:00:00Z',
      '9'.repeat(100_000),
    ])
      for (const time of shownTimes(await stored(bad, bad))) isNow(time)
    assert.equal(warnings().length, 0)
  })

  test('POST /seccomp/denials 200: within a drain an entry without a time is the latest, and the least first time is stored', async () => {
    const podName = unique('pod')
    const past = '2026-01-01T00:00:00Z'
    await take(app, [denial({ podName }), denial({ podName, firstSeen: past, lastSeen: past })])
    const { firstSeen, lastSeen } = await one()
    assert.equal(firstSeen, past)
    isNow(lastSeen)
  })

  const shownTimes = ({ firstSeen, lastSeen }: Row) => [firstSeen, lastSeen]
})

describe('entries that are dropped', () => {
  const dropped: [what: string, field: string, entry: unknown][] = [
    ...(['podUid', 'podName', 'podNamespace', 'syscall', 'action'] as const).flatMap(
      (field): [string, string, unknown][] => {
        const most = { podUid: 128, podName: 253, podNamespace: 253, syscall: 128, action: 64 }[field]
        return [
          [`no ${field}`, field, { ...denial(), [field]: undefined }],
          [`${field} null`, field, denial({ podUid: 'uid', [field]: null })],
          [`${field} a number`, field, denial({ podUid: 'uid', [field]: 7 })],
          [`${field} empty`, field, denial({ podUid: 'uid', [field]: '' })],
          [`${field} blank`, field, denial({ podUid: 'uid', [field]: ' \t\u00a0' })],
          [`${field} of ${most + 1} bytes`, field, denial({ podUid: 'uid', [field]: 'x'.repeat(most + 1) })],
          [
            `${field} of ${most} characters, more bytes`,
            field,
            denial({ podUid: 'uid', [field]: `${'x'.repeat(most - 1)}é` }),
          ],
          [`${field} with U+0000`, field, denial({ podUid: 'uid', [field]: 'a\0b' })],
          [`${field} with half a surrogate pair`, field, denial({ podUid: 'uid', [field]: 'a\ud800' })],
        ]
      },
    ),
    ...[undefined, null, '1', true, 0, -3, 1.5, MAX_COUNT + 1, [1]].map((count): [string, string, unknown] => [
      `a count of ${JSON.stringify(count)}`,
      'count',
      denial({ count }),
    ]),
    ['an arch of 65 bytes', 'arch', denial({ arch: 'a'.repeat(65) })],
    ...(['arch', 'firstSeen', 'lastSeen'] as const).flatMap((field): [string, string, unknown][] => [
      [`${field} with U+0000`, field, denial({ podUid: 'uid', [field]: 'a\0' })],
      [`${field} with half a surrogate pair`, field, denial({ podUid: 'uid', [field]: '\udc00' })],
    ]),
    ...[null, 'text', 7, [], [denial()]].map((entry): [string, string, unknown] => [
      `${JSON.stringify(entry).slice(0, 9)} for an entry`,
      'entry',
      entry,
    ]),
  ]
  for (const [what, field, entry] of dropped)
    test(`POST /seccomp/denials 200: ${what}: the entry is dropped and counted, the others are stored`, async () => {
      const before = await rejected()
      assert.equal(await take(app, [denial(), entry, denial()]), 2)
      assert.equal((await rows(app)).length, 2)
      assert.equal(await rejected(), before + 1)
      const fresh = await startedAnew([entry])
      assert.deepEqual(fresh, { [field]: 1 })
    })

  /** The log lines for these entries by a broker that has not logged any before. */
  async function startedAnew(entries: unknown[]): Promise<Record<string, number>> {
    const { mergeEntries } = await import('../../lib/seccomp/denials/drain.ts')
    return (await mergeEntries(entries)).dropped
  }

  test('POST /seccomp/denials 200: a number beyond the range of a double is not a count', async () => {
    const body = JSON.stringify(drain([denial(), denial({ count: 4_711 })])).replace('4711', '1e999')
    assert.deepEqual((await app.post(PATH, body)).json, { accepted: 1 })
  })

  test('POST /seccomp/denials 200: dropped entries are logged in one line a minute, by field', async () => {
    const other = await startApp()
    await take(other, [denial({ count: 0 }), denial({ count: -1 }), denial({ podUid: '' }), 7, denial()])
    await take(other, [denial({ count: 0 })])
    const lines = other.logged.filter(({ level }) => level === 40)
    assert.equal(lines.length, 1)
    const { count, podUid, entry } = lines[0]!
    assert.deepEqual([count, podUid, entry], [2, 1, 1])
  })
})

describe('fields that may be absent', () => {
  test('POST /seccomp/denials 200: the longest texts are stored whole', async () => {
    const longest = {
      podUid: `${'u'.repeat(126)}é`,
      podName: 'p'.repeat(253),
      podNamespace: 'n'.repeat(253),
      syscall: 's'.repeat(128),
      action: 'A'.repeat(64),
      arch: 'a'.repeat(64),
    }
    assert.equal(await take(app, [denial({ ...longest, count: MAX_COUNT })]), 1)
    const { podUid, podName, podNamespace, syscall, action, arch, count } = await one()
    assert.deepEqual({ podUid, podName, podNamespace, syscall, action, arch }, longest)
    assert.equal(count, MAX_COUNT)
  })

  test('POST /seccomp/denials 200: numbers are integers of either sign, up to 2^53', async () => {
    await take(app, [denial({ syscallNr: -1, actionRaw: Number.MAX_SAFE_INTEGER })])
    const { syscallNr, actionRaw } = await one()
    assert.deepEqual([syscallNr, actionRaw], [-1, Number.MAX_SAFE_INTEGER])
  })

  test('POST /seccomp/denials 200: values of another type count as absent', async () => {
    for (const bad of [null, '7', 1.5, 2 ** 53, true, {}, []])
      await take(app, [denial({ syscallNr: bad, actionRaw: bad, arch: bad === '7' ? 7 : bad })])
    for (const { syscallNr, actionRaw, arch } of await rows(app))
      assert.deepEqual([syscallNr, actionRaw, arch], [null, null, null])
    assert.equal((await rows(app)).length, 7)
  })

  test('POST /seccomp/denials 200: an architecture is trimmed and lower-cased, a blank one counts as absent', async () => {
    for (const [sent, stored] of [
      [' SCMP_ARCH_ARM64 ', 'SCMP_ARCH_AARCH64'],
      ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_AARCH64'],
      [`${' '.repeat(100)}x`, 'x'],
      ['  ', null],
      ['', null],
    ]) {
      await sql`truncate seccomp_denial`
      await take(app, [denial({ arch: sent })])
      assert.equal((await one()).arch, stored)
    }
  })

  test('POST /seccomp/denials 200: unknown keys are ignored, whatever their values', async () => {
    assert.equal(await take(app, [denial({ comm: 'a\0b', deep: { x: [1] } })], { extra: 1 }), 1)
  })
})

describe('the workload', () => {
  const owner = async (podName: string, podNamespace = 'shop') => {
    await sql`truncate seccomp_denial`
    await take(app, [denial({ podName, podNamespace })])
    const { workloadKind, workloadName } = await one()
    return [workloadKind, workloadName]
  }

  test('POST /seccomp/denials 200: a pod with owner kind and name, alive or dead, belongs to that workload', async () => {
    assert.deepEqual(await owner(await pod()), ['Deployment', 'web'])
    assert.deepEqual(await owner(await pod({ is_dead: true })), ['Deployment', 'web'])
  })

  test('POST /seccomp/denials 200: a pod with neither is its own workload; blank ones count as absent', async () => {
    for (const fields of [
      { workload_kind: null, workload_name: null },
      { workload_kind: '', workload_name: ' ' },
      { workload_kind: '\t', workload_name: '\u2003\n' },
      { workload_kind: null, workload_name: '\u00a0' },
    ]) {
      const name = await pod(fields)
      assert.deepEqual(await owner(name), ['Pod', name])
    }
  })

  test('POST /seccomp/denials 200: a pod without a namespace matches by its name', async () => {
    for (const pod_namespace of [null, '', ' ', '\t', '\u2003'])
      assert.deepEqual(await owner(await pod({ pod_namespace }), 'any'), ['Deployment', 'web'])
  })

  test('POST /seccomp/denials 200: a denial of an unknown pod, of another namespace, or of a pod with only kind or name has no workload', async () => {
    assert.deepEqual(await owner(unique('ghost')), [null, null])
    assert.deepEqual(await owner(await pod(), 'other'), [null, null])
    assert.deepEqual(await owner(await pod({ workload_kind: null })), [null, null])
    assert.deepEqual(await owner(await pod({ workload_name: null })), [null, null])
    for (const blank of ['\t', '\u2003']) {
      assert.deepEqual(await owner(await pod({ workload_kind: blank })), [null, null])
      assert.deepEqual(await owner(await pod({ workload_name: blank })), [null, null])
    }
  })

  test('POST /seccomp/denials 200: names that are not blank are the same text as in the union of the workload', async () => {
    const workload = { pod_namespace: ' shop', workload_kind: ' Deployment\t', workload_name: '\u2003web ' }
    const podName = await pod(workload)
    const { pod_namespace: podNamespace, workload_kind, workload_name } = workload
    assert.deepEqual(await owner(podName, podNamespace), [workload_kind, workload_name])
    const calls = {
      pod_name: podName,
      pod_namespace: '',
      syscalls: ['read'],
      arch: 'x86_64',
      time_stamp: '2026-01-01T09:00:00',
    }
    assert.equal((await app.post('/pod/syscalls', [calls])).status, 200)
    const path = [podNamespace, workload_kind, workload_name].map(encodeURIComponent).join('/')
    assert.equal((await app.get(`/seccomp/profiles/${path}`)).json.denials.total, 1)
  })

  test('POST /seccomp/denials 200: a later drain sets the workload once the pod is known, and one without a known pod does not remove it', async () => {
    const podName = unique('late')
    await take(app, [denial({ podName })])
    await pod({ pod_name: podName })
    await take(app, [denial({ podName })])
    const known = await one()
    assert.deepEqual([known.workloadKind, known.workloadName, known.count], ['Deployment', 'web', 2])
    await sql`delete from pod`
    await take(app, [denial({ podName })])
    const left = await one()
    assert.deepEqual([left.workloadKind, left.workloadName, left.count], ['Deployment', 'web', 3])
  })

  test('POST /seccomp/denials 200: rows follow a pod to another workload', async () => {
    const podName = await pod()
    await take(app, [denial({ podName })])
    await pod({ pod_name: podName, workload_kind: 'StatefulSet', workload_name: 'db' })
    await take(app, [denial({ podName })])
    const { workloadKind, workloadName } = await one()
    assert.deepEqual([workloadKind, workloadName], ['StatefulSet', 'db'])
  })
})

describe('the counter', () => {
  const labels = (namespace: string, name: string) => `${namespace} Deployment ${name}`

  test('POST /seccomp/denials 200: the counter follows the posted counts of each workload', async () => {
    const [ns, name] = [unique('ns'), unique('w')]
    const pods = [
      await pod({ pod_namespace: ns, workload_name: name }),
      await pod({ pod_namespace: ns, workload_name: name }),
    ]
    await take(app, [
      denial({ podName: pods[0], podNamespace: ns, count: 2 }),
      denial({ podName: pods[0], podNamespace: ns, syscall: 'bpf', count: 3 }),
      denial({ podName: pods[1], podNamespace: ns, action: 'SCMP_ACT_LOG', count: 1 }),
      denial({ podName: pods[1], podNamespace: ns, count: -5 }),
    ])
    assert.equal(counted()[labels(ns, name)], 6)
    await take(app, [denial({ podName: pods[0], podNamespace: ns, count: 4 })])
    assert.equal(counted()[labels(ns, name)], 10)
  })

  test('POST /seccomp/denials 200: denials without a known workload are not counted', async () => {
    const before = counted()
    await take(app, [denial({ count: 5 })])
    assert.deepEqual(counted(), before)
  })

  test('POST /seccomp/denials 200: once a drain finds the pod, the counter includes the workload', async () => {
    const [podName, name] = [unique('pod'), unique('w')]
    await take(app, [denial({ podName, count: 5 })])
    await pod({ pod_name: podName, workload_name: name })
    await take(app, [denial({ podName, count: 3 })])
    assert.equal(counted()[labels('shop', name)], 3)
  })

  test('POST /seccomp/denials 200: above 10^12 the counter increases although the row does not', async () => {
    const name = unique('w')
    const podName = await pod({ workload_name: name })
    for (let n = 0; n < 2; n++) await take(app, [denial({ podName, count: MAX_COUNT })])
    assert.equal(counted()[labels('shop', name)], 2 * MAX_COUNT)
    assert.equal((await one()).count, MAX_COUNT)
  })

  test('POST /seccomp/denials 200: with the names of the ecosystem the counter has the label action', async () => {
    const other = await startApp({ WIRE_NAMES: 'kguardian' })
    const post = podPost({ pod_namespace: 'shop', workload_kind: 'Deployment', workload_name: 'web' })
    await other.post('/pod/spec', post)
    const podName = post.pod_name
    await take(other, [
      denial({ podName, count: 2 }),
      denial({ podName, action: 'SCMP_ACT_LOG', syscall: 'bpf', count: 5 }),
    ])
    const { text } = await other.get('/metrics')
    const lines = text
      .split('\n')
      .filter((line) => /^kguardian_seccomp_denial(s_total|_rows_total|_workloads)/.test(line))
    const of = (action: string, value: number) =>
      `kguardian_seccomp_denials_total{workload_namespace="shop",workload_kind="Deployment",workload="web",action="${action}"} ${value}`
    assert.deepEqual(lines.sort(), [
      'kguardian_seccomp_denial_rows_total 2',
      'kguardian_seccomp_denial_workloads 0',
      of('SCMP_ACT_ERRNO', 2),
      of('SCMP_ACT_LOG', 5),
    ])
    assert.ok(!text.includes('svc_seccomp'))
  })

  test('POST /seccomp/denials 200: names in labels are escaped', async () => {
    const other = await startApp()
    await other.sql`
      insert into pod (pod_name, pod_ip, pod_ips, pod_namespace, time_stamp, node_name, is_dead, workload_kind, workload_name)
      values ('p', '', '{}', 'shop', now() at time zone 'utc', 'node', false, 'a\\b', ${'q"\n\\n'})`
    await take(other, [denial({ podName: 'p' })])
    const { text } = await other.get('/metrics')
    const line = text.split('\n').find((one) => one.startsWith('svc_seccomp_denials_total{'))
    assert.equal(
      line,
      String.raw`svc_seccomp_denials_total{workload_namespace="shop",workload_kind="a\\b",workload="q\"\n\\n"} 1`,
    )
  })

  test('POST /seccomp/denials 200: the counter has at most 10 000 series; existing ones continue', async () => {
    const other = await startApp()
    await other.sql`
      insert into pod (pod_name, pod_ip, pod_ips, pod_namespace, time_stamp, node_name, is_dead, workload_kind, workload_name)
      select 'p-' || n, '', '{}', 'ns', now() at time zone 'utc', 'node', false, 'Deployment', 'w-' || n from generate_series(1, 10010) n`
    const entries = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, i) => denial({ podName: `p-${from + i}`, podNamespace: 'ns' }))
    await take(other, entries(1, 5_000))
    await take(other, entries(5_001, 10_010))
    await take(other, entries(9_990, 10_010))
    const all = Object.values(countedBy(other.deps))
    assert.equal(all.length, 10_000)
    assert.equal(
      all.reduce((sum, value) => sum + value, 0),
      10_000 + all.filter((value) => value === 2).length,
    )
    assert.ok(all.some((value) => value === 2))
    assert.equal((await other.sql`select 1 from seccomp_denial`).length, 10_010, 'all are stored')
    assert.match(String(other.logged.find(({ level }) => level === 40)?.msg), /beyond the 10000 series/)
  })
})

describe('the envelope', () => {
  for (const [what, fields] of Object.entries<Fields>({
    'no node': { node: undefined },
    'a node that is null': { node: null },
    'an empty node': { node: '' },
    'a blank node': { node: ' \t' },
    'a node that is a number': { node: 7 },
    'a node of 254 bytes': { node: 'n'.repeat(254) },
    'a node of 253 characters and 254 bytes': { node: `${'n'.repeat(252)}é` },
    'U+0000 in the node': { node: 'a\0b' },
    'half a surrogate pair in the node': { node: 'a\ud800' },
    'no denials': { denials: undefined },
    'denials that are null': { denials: null },
    'denials that are an object': { denials: {} },
    'denials that are text': { denials: 'x' },
  }))
    test(`POST /seccomp/denials 400: ${what}`, async () => {
      const answer = await app.post(PATH, { ...drain([denial()]), ...fields })
      assert.equal(answer.status, 400)
      assert.match(answer.text, /^Json deserialize error: (node|denials): /)
      assert.match(answer.headers.get('content-type')!, /^text\/plain/)
      assert.deepEqual([(await rows(app)).length, await heartbeat(app)], [0, undefined])
    })

  for (const { what, status, says, body, headers } of refusedBodies(drain([denial()]), 'node').filter(
    ({ says }) => !/2097152/.test(says.source),
  ))
    test(`POST /seccomp/denials ${status}: ${what}`, async () => {
      const answer = await app.request('POST', PATH, { body, ...(headers && { headers }) })
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.text, says)
    })

  test('POST /seccomp/denials 200: a node of 253 bytes', async () => {
    const node = 'n'.repeat(253)
    await take(app, [], { node })
    assert.ok(await heartbeat(app, node))
  })

  test('POST /seccomp/denials 200: a body of 4 MiB, compressed or not', async () => {
    const body = JSON.stringify(drain([denial()])).padEnd(4 * 1024 * 1024)
    assert.equal((await app.post(PATH, body)).status, 200)
    const { gzipSync } = await import('node:zlib')
    assert.equal((await app.post(PATH, gzipSync(body), { headers: { 'content-encoding': 'gzip' } })).status, 200)
    assert.equal((await one()).podNamespace, 'shop')
  })

  test('POST /seccomp/denials 413: a body above 4 MiB', async () => {
    const answer = await app.post(PATH, JSON.stringify(drain([denial()])).padEnd(4 * 1024 * 1024 + 1))
    assert.equal(answer.status, 413)
    assert.match(answer.text, /4194304 bytes/)
  })

  test('POST /seccomp/denials 200: 10 000 entries', async () => {
    assert.equal(
      await take(
        app,
        Array.from({ length: 10_000 }, (_, n) => denial({ syscall: `call-${n % 7}`, podName: 'p' })),
      ),
      7,
    )
  })

  test('POST /seccomp/denials 413: more than 10 000 elements of any kind', async () => {
    for (const entry of [0, denial()]) {
      const answer = await app.post(PATH, drain(Array(10_001).fill(entry)))
      assert.equal(answer.status, 413)
      assert.match(answer.text, /more than 10000 elements/)
    }
    assert.equal(await heartbeat(app), undefined)
  })
})

describe('the node', () => {
  for (const [sent, stored, entries] of [
    [true, true, []],
    [false, false, []],
    [undefined, false, []],
    [null, false, []],
    ['true', false, []],
    [1, false, []],
    [false, true, [denial()]],
    [undefined, true, [denial()]],
    [false, false, [denial({ count: 0 })]],
    [true, true, [denial({ count: 0 })]],
  ] as [unknown, boolean, unknown[]][])
    test(`POST /seccomp/denials 200: capturing ${JSON.stringify(sent)} and ${entries.length} entries: ${stored}`, async () => {
      await take(app, entries, { capturing: sent })
      assert.equal((await heartbeat(app))!.capturing, stored)
    })

  test('POST /seccomp/denials 200: the last report counts', async () => {
    await take(app, [], { capturing: true, intervalSeconds: 10 })
    await take(app, [], { capturing: false, intervalSeconds: undefined })
    const { capturing, interval_seconds } = (await heartbeat(app))!
    assert.deepEqual([capturing, interval_seconds], [false, null])
  })

  for (const [sent, stored] of [
    [1, 1],
    [10.9, 10],
    [600, 600],
    [600.5, 600],
    [601, 600],
    [1e300, 600],
    [0, null],
    [0.9, null],
    [-5, null],
    [undefined, null],
    [null, null],
    ['10', null],
    [true, null],
    [[10], null],
  ] as [unknown, number | null][])
    test(`POST /seccomp/denials 200: a cadence of ${JSON.stringify(sent)} is stored as ${stored}`, async () => {
      await take(app, [], { intervalSeconds: sent })
      assert.equal((await heartbeat(app))!.interval_seconds, stored)
    })

  test('POST /seccomp/denials 200: a cadence beyond the range of a double counts as absent', async () => {
    assert.equal(
      (await app.post(PATH, JSON.stringify(drain([], { intervalSeconds: 4_711 })).replace('4711', '1e999'))).status,
      200,
    )
    assert.equal((await heartbeat(app))!.interval_seconds, null)
  })

  test('POST /seccomp/denials 200: a clamped cadence is logged in one line a minute; 600 is not clamped', async () => {
    const other = await startApp()
    await take(other, [], { intervalSeconds: 600 })
    assert.deepEqual(
      other.logged.filter(({ level }) => level === 40),
      [],
    )
    for (let n = 0; n < 3; n++) await take(other, [], { intervalSeconds: 601 })
    const lines = other.logged.filter(({ level }) => level === 40)
    assert.equal(lines.length, 1)
    assert.match(String(lines[0]!.msg), /cadence above 600/)
  })

  test('POST /seccomp/denials 200: the ids of the latest 16 posts of a node are stored, newest first', async () => {
    for (let n = 0; n < 20; n++) await take(app, [])
    const { posts } = (await heartbeat(app))!
    assert.equal(new Set(posts).size, 16)
    await take(app, [])
    assert.deepEqual((await heartbeat(app))!.posts.slice(1), posts.slice(0, 15))
  })
})

test('POST /seccomp/denials 401: without a token', async () => {
  const secured = await startApp(TOKENS)
  assertUnauthorized(await secured.post(PATH, drain([])))
})

test('POST /seccomp/denials 403: with a token that only reads', async () => {
  const secured = await startApp(TOKENS)
  assertForbidden(await secured.post(PATH, drain([]), { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
  assert.equal((await secured.post(PATH, drain([]), { token: TOKENS.BROKER_TOKEN_INGEST })).status, 200)
})

test('POST /seccomp/denials 503: the database is busy, and nothing is stored or counted', async () => {
  const busy = await startApp()
  await whileRefused(busy.sql, 'seccomp_denial', async () => {
    assertDatabaseBusy(await busy.post(PATH, drain([denial(), denial({ count: 0 })])))
  })
  assert.equal(await heartbeat(busy), undefined, 'one transaction')
  assert.equal((await byLabel(busy.deps.metrics.denialRows))[''], 0)
  assert.deepEqual(await byLabel(busy.deps.metrics.rejectedEntries), {})
})
