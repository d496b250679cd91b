/** What POST /pod/syscalls makes of the workloads of its pods (workload-profiling, Seccomp; interop-profiling 1.2, 1.4). */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { deadPodRetention } from '../../jobs/dead-pod-retention.ts'
import { waiting } from '../jobs/scene.ts'
import { startApp } from '../support/app.ts'
import { startReplica } from '../support/routes.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const replica = startReplica(app)
after(() => replica.end())
const { sql } = app

const PATH = '/pod/syscalls'
const T = '2026-01-01T09:00:00'
const MAX_NAMES = 1_024
const MAX_ARCHES = 16
const MAX_UNION_BYTES = 16_384

interface Workload {
  namespace: string | null
  kind: string | null
  name: string | null
}

let count = 0
const unique = (prefix: string) => `${prefix}-${++count}`
const workload = (): Workload => ({ namespace: unique('ns'), kind: 'Deployment', name: 'web' })

async function run(pod_name: string, { namespace, kind, name }: Workload): Promise<string> {
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind, workload_name)
    values (${pod_name}, '', ${namespace}, ${T}, 'n', false, '{}', ${kind}, ${name})
    on conflict (pod_name) do update set
      pod_namespace = excluded.pod_namespace, workload_kind = excluded.workload_kind, workload_name = excluded.workload_name`
  return pod_name
}
const entry = (pod_name: string, syscalls: string[], fields: object = {}) => ({
  ...{ pod_name, pod_namespace: '', syscalls, arch: 'x86_64', time_stamp: T },
  ...fields,
})
async function post(...entries: unknown[]): Promise<void> {
  assert.equal((await app.post(PATH, entries)).status, 200)
}
/** A pod of a workload that posts at once. */
async function pod(of: Workload, syscalls: string[], fields: object = {}): Promise<string> {
  const name = await run(unique('pod'), of)
  await post(entry(name, syscalls, fields))
  return name
}
const rowOf = async ({ namespace, kind, name }: Workload) =>
  (
    await sql`
      select syscalls, to_json(arches) as arches, hash, syscall_count::integer as count, updated_at::text, xmin::text, xmax::text, ctid::text
      from workload_syscalls where pod_namespace = ${namespace} and workload_kind = ${kind} and workload_name = ${name}`
  )[0]
const namesOf = async (of: Workload) => (await rowOf(of))?.syscalls

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** FNV-1a of 64 bits. */
function fnv1a(text: string): string {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffff_ffff_ffff_ffffn
  return hash.toString(16).padStart(16, '0')
}
const fingerprint = (names: Iterable<string>, arches: Iterable<string>) =>
  fnv1a([[...names].sort(byBytes).join(','), [...arches].sort(byBytes).join(','), 'SCMP_ACT_LOG'].join('\x1e'))

test('fnv1a_64 is FNV-1a of 64 bits over bytes in UTF-8', async () => {
  const hashes = async (texts: readonly string[]) =>
    (
      await sql<{ hash: string }[]>`
      select fnv1a_64(t) as hash from json_array_elements_text(${JSON.stringify(texts)}::text::json) with ordinality a(t, n) order by n`
    ).map(({ hash }) => hash)
  // draft-eastlake-fnv, 6.2.
  assert.deepEqual(await hashes(['', 'a', 'foobar']), ['cbf29ce484222325', 'af63dc4c8601ec8c', '85944171f73967e8'])
  const text = fc.string({ unit: 'binary', maxLength: 80 }).map((one) => one.replaceAll('\0', ''))
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 20, maxLength: 60 }), async (texts) => {
      assert.deepEqual(await hashes(texts), texts.map(fnv1a))
    }),
    { numRuns: 30 },
  )
  const long = Array.from({ length: MAX_NAMES }, (_, i) => `${i}`.padEnd(64, 'x')).join(',')
  assert.deepEqual(await hashes([long]), [fnv1a(long)])
})

test('bounded_union: what is stored stays, the first of the others by bytes find room, each once and sorted', async () => {
  const name = fc.constantFrom('a', 'b', 'B', 'aa', 'é', 'z', '_', '9', '😀', '\uffff')
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(name),
      fc.array(name),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 24 }),
      async (stored, offered, most, mostBytes) => {
        const [row] = await sql`
        select to_json(bounded_union(array(select json_array_elements_text(${JSON.stringify(stored)}::text::json)),
                                     array(select json_array_elements_text(${JSON.stringify(offered)}::text::json)), ${most}, ${mostBytes})) as all`
        const others = [...new Set(offered)].filter((one) => !stored.includes(one)).sort(byBytes)
        const inOrder = [...[...stored].sort(byBytes), ...others]
        const bytesUpTo = (end: number) => inOrder.slice(0, end).reduce((sum, one) => sum + Buffer.byteLength(one) + 1, 0)
        const chosen = inOrder.filter((_, i) => i < most && bytesUpTo(i + 1) <= mostBytes)
        assert.deepEqual(row!.all, chosen.sort(byBytes))
      },
    ),
    { numRuns: 100 },
  )
  assert.deepEqual((await sql`select to_json(bounded_union(null, '{b,a}', 5, 99)) as all`)[0]!.all, ['a', 'b'])
})

test('workload_key tells every two workloads apart, can be taken apart, and is null without one', async () => {
  const part = fc.oneof(
    fc.constantFrom('', ' ', '\t', '\u00a0', '\u2003', '","', 'a', 'a,b', '"', '\\', 'é'),
    fc.string({ unit: 'binary', maxLength: 6 }),
  )
  const given = fc.option(
    part.map((one) => one.replaceAll('\0', '').toWellFormed?.() ?? one),
    { freq: 8 },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(given, given, given), { minLength: 1, maxLength: 30 }), async (all) => {
      const keys = await sql<{ key: string | null }[]>`
        select workload_key(w ->> 0, w ->> 1, w ->> 2) as key
        from json_array_elements(${JSON.stringify(all)}::text::json) with ordinality a(w, n) order by n`
      for (const [i, { key }] of keys.entries())
        assert.deepEqual(key === null ? null : JSON.parse(key), all[i]!.every((one) => one !== null && one.trim() !== '') ? all[i] : null)
    }),
    { numRuns: 60 },
  )
})

test('the union has the names of all pods, sorted by bytes, with their architectures, its hash and its size', async () => {
  const of = workload()
  await pod(of, ['write', 'read', 'accept4'])
  await pod(of, ['read', 'exit_group', '435', 'Z'], { arch: 'aarch64' })
  const { syscalls, arches, hash, count } = (await rowOf(of))!
  assert.equal(syscalls, '435,Z,accept4,exit_group,read,write')
  assert.deepEqual([arches, count], [['aarch64', 'x86_64'], 6])
  assert.equal(hash, fingerprint(syscalls.split(','), arches))
})

test('names are trimmed; blank ones, blank architectures and pods without names add nothing', async () => {
  const of = workload()
  await pod(of, [' read', 'read ', '\u2003write\t', ' ', '', '\u00a0'], { arch: ' \t' })
  await pod(of, [], { arch: 'aarch64' })
  await pod(of, ['  '], { arch: 'riscv64' })
  const { syscalls, arches } = (await rowOf(of))!
  assert.deepEqual([syscalls, arches], ['read,write', []])
  const none = workload()
  await pod(none, [])
  assert.equal(await rowOf(none), undefined)
  // Raw: not trimmed where there is something.
  await pod(of, ['read'], { arch: ' arm ' })
  assert.deepEqual((await rowOf(of))!.arches, [' arm '])
})

test('a pod without names adds no architecture beside others of its workload either, in one body or late', async () => {
  const of = workload()
  const [one, none, late] = [unique('one'), unique('none'), unique('late')]
  await post(entry(late, [], { arch: 'riscv64' }))
  for (const name of [one, none, late]) await run(name, of)
  await post(entry(none, [], { arch: 'aarch64' }), entry(one, ['read']))
  assert.deepEqual((await rowOf(of))!.arches, ['x86_64'])
})

test('a pod that has names only later adds its architecture then', async () => {
  const of = workload()
  const late = await pod(of, [], { arch: 'aarch64' })
  await pod(of, ['read'])
  assert.deepEqual((await rowOf(of))!.arches, ['x86_64'])
  await post(entry(late, ['write'], { arch: 'aarch64' }))
  const { syscalls, arches } = (await rowOf(of))!
  assert.deepEqual([syscalls, arches], ['read,write', ['aarch64', 'x86_64']])
})

test('pods without a whole workload add to nothing', async () => {
  const of = workload()
  const before = Number((await sql`select count(*) as n from workload_syscalls`)[0]!.n)
  await post(entry(unique('unknown'), ['read']))
  for (const part of ['namespace', 'kind', 'name'])
    for (const blank of [null, '', ' ', '\t', '\u2003']) {
      const name = await pod({ ...of, [part]: blank }, ['read'])
      assert.equal((await sql`select united_in from pod_syscalls where pod_name = ${name}`)[0]!.united_in, null)
    }
  assert.equal(Number((await sql`select count(*) as n from workload_syscalls`)[0]!.n), before)
})

test('what adds nothing to a union does not write or lock it, whichever pod posts it', async () => {
  const of = workload()
  const one = await pod(of, ['read', 'write'])
  const before = await rowOf(of)
  await post(entry(one, ['write']))
  const other = await pod(of, ['write', 'read'])
  await post(entry(other, ['read'], { time_stamp: '2026-01-02T09:00:00' }))
  assert.deepEqual(await rowOf(of), before)
})

test('a repeated post writes and locks neither pod nor workload', async () => {
  const of = workload()
  const name = await pod(of, ['read', 'write'])
  const version = async () => [
    (await sql`select xmin::text, xmax::text, ctid::text from pod_syscalls where pod_name = ${name}`)[0],
    await rowOf(of),
  ]
  const before = await version()
  for (const syscalls of [['read', 'write'], ['write'], ['write', 'read'], []]) await post(entry(name, syscalls))
  assert.deepEqual(await version(), before)
})

test('a pod whose workload is known later adds all of its names, with its next post or that of another', async () => {
  const of = workload()
  const [early, silent] = [unique('early'), unique('silent')]
  await post(entry(early, ['read', 'write']), entry(silent, ['mmap'], { arch: 'aarch64' }))
  await run(early, of)
  assert.equal(await rowOf(of), undefined)
  await post(entry(early, ['read']))
  assert.equal(await namesOf(of), 'read,write')
  await run(silent, of)
  await sql`update pod set is_dead = true where pod_name = ${silent}`
  await post(entry(early, ['read']))
  assert.equal(await namesOf(of), 'read,write', 'a repeated post looks at nothing but itself')
  await pod(of, ['brk'])
  const { syscalls, arches } = (await rowOf(of))!
  assert.deepEqual([syscalls, arches], ['brk,mmap,read,write', ['aarch64', 'x86_64']])
})

test('of many pods that were there before their workload a thousand add their names with a post, the rest with the next', async () => {
  const of = workload()
  const prefix = unique('crowd')
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind, workload_name)
    select ${prefix} || i, '', ${of.namespace}, ${T}::timestamp, 'n', true, '{}', ${of.kind}, ${of.name} from generate_series(1, 1010) i`
  await sql`insert into pod_syscalls select ${prefix} || i, '', 's' || i % 1015, 'x86_64', ${T}::timestamp from generate_series(1, 1010) i`
  const name = await pod(of, ['read'])
  assert.equal((await rowOf(of))!.count, 1_001)
  await post(entry(name, ['write']))
  assert.equal((await rowOf(of))!.count, 1_012)
})

test('a pod that moves to another workload adds its names there too, and the first keeps them', async () => {
  const [first, second] = [workload(), workload()]
  const name = await pod(first, ['read', 'write'])
  await run(name, second)
  await post(entry(name, ['read']))
  assert.deepEqual([await namesOf(first), await namesOf(second)], ['read,write', 'read,write'])
  await post(entry(name, ['mmap']))
  assert.deepEqual([await namesOf(first), await namesOf(second)], ['read,write', 'mmap,read,write'])
  await run(name, first)
  await post(entry(name, []))
  assert.equal(await namesOf(first), 'mmap,read,write')
  await run(name, { ...first, kind: null })
  await post(entry(name, ['brk']))
  await run(name, first)
  await post(entry(name, ['brk']))
  assert.equal(await namesOf(first), 'brk,mmap,read,write')
})

test('a pod that moved and is silent adds its names with the post of another', async () => {
  const [first, second] = [workload(), workload()]
  const name = await pod(first, ['read'])
  await run(name, second)
  await pod(second, ['write'])
  assert.deepEqual([await namesOf(first), await namesOf(second)], ['read', 'read,write'])
})

for (const isThere of [false, true])
  test(`two pods at once add to one union that ${isThere ? 'is there' : 'neither has seen'}`, async () => {
    const of = workload()
    if (isThere) await pod(of, ['brk'])
    const [one, other] = [await run(unique('one'), of), await run(unique('other'), of)]
    let second!: Promise<void>
    await sql.begin(async (first) => {
      await first`select union_syscalls(${JSON.stringify([entry(one, ['read'])])}::text::json)`
      second = post(entry(other, ['write']))
      await until('the second waits', async () => (await waiting(sql)) === 1)
    })
    await second
    assert.equal(await namesOf(of), isThere ? 'brk,read,write' : 'read,write')
  })

test('who waited for another that added the same does not write', async () => {
  const of = workload()
  await pod(of, ['brk'])
  const [one, other] = [await run(unique('one'), of), await run(unique('other'), of)]
  let second!: Promise<void>
  let written: unknown
  await sql.begin(async (first) => {
    await first`select union_syscalls(${JSON.stringify([entry(one, ['read'])])}::text::json)`
    ;[written] = await first`select updated_at::text, xmin::text, ctid::text from workload_syscalls where pod_namespace = ${of.namespace}`
    second = post(entry(other, ['read']))
    await until('the second waits', async () => (await waiting(sql)) === 1)
  })
  await second
  const { updated_at, xmin, ctid } = (await rowOf(of))!
  assert.deepEqual({ updated_at, xmin, ctid }, { ...(written as object) })
})

test('a union outlives its pods', async () => {
  const of = workload()
  const name = await pod(of, ['read'])
  const before = await rowOf(of)
  await sql`update pod set is_dead = true, time_stamp = timestamp '2000-01-01' where pod_name = ${name}`
  await deadPodRetention.run({ config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal } as never)
  assert.equal((await sql`select from pod where pod_name = ${name}`).length, 0)
  assert.deepEqual(await rowOf(of), before)
  await post(entry(name, ['write']))
  assert.deepEqual(await rowOf(of), before, 'whose pod it is is not known')
  await pod(of, ['brk'])
  assert.equal(await namesOf(of), 'brk,read')
})

test('a clock that went back makes no growth older than the one before', async () => {
  const of = workload()
  const name = await pod(of, ['read'])
  await sql`update workload_syscalls set updated_at = '2200-01-01T00:00:00' where pod_namespace = ${of.namespace}`
  await post(entry(name, ['write']))
  assert.equal((await rowOf(of))!.updated_at, '2200-01-01 00:00:00.000001')
})

const rejected = async () => {
  const { values } = await app.deps.metrics.rejectedEntries.get()
  return values.find(({ labels }) => labels.route === PATH)?.value ?? 0
}

test('names beyond those that there may be are left out and counted: what is stored stays, then the first by bytes', async () => {
  const of = workload()
  const numbered = (prefix: string, total: number) => Array.from({ length: total }, (_, i) => `${prefix}${String(i).padStart(4, '0')}`)
  const name = await pod(of, numbered('m', MAX_NAMES - 2))
  let before = await rejected()
  await post(entry(name, ['z', 'b', 'c', 'a']))
  const full = (await rowOf(of))!
  assert.deepEqual([full.count, full.syscalls], [MAX_NAMES, ['a', 'b', ...numbered('m', MAX_NAMES - 2)].join(',')])
  assert.equal((await rejected()) - before, 2)
  assert.ok(app.logged.some((line) => String(line.msg).startsWith(`${PATH}: `) && line.entries === 2 && line.level === 40))

  // From here on nothing of it grows, is written or locked.
  before = await rejected()
  for (let i = 0; i < 5; i++) await post(entry(name, [`0${i}`]))
  assert.deepEqual(await rowOf(of), full)
  assert.equal((await rejected()) - before, 3 + 4 + 5 + 6 + 7)
  before = await rejected()
  await post(entry(name, ['00']))
  assert.equal((await rejected()) - before, 0, 'a repeated post is not looked at again')
  assert.equal(app.logged.filter((line) => String(line.msg).startsWith(`${PATH}: `) && line.level === 40).length, 1, 'told once a minute')
})

test('names beyond the bytes that there may be are left out and counted', async () => {
  const of = workload()
  const long = Array.from({ length: 300 }, (_, i) => `${i}`.padEnd(64, 'x')).sort(byBytes)
  const before = await rejected()
  await pod(of, long)
  const room = Math.floor(MAX_UNION_BYTES / 65)
  const row = (await rowOf(of))!
  assert.deepEqual([row.count, row.syscalls], [room, long.slice(0, room).join(',')])
  assert.equal((await rejected()) - before, 300 - room)
  await pod(of, ['z'])
  assert.equal((await rowOf(of))!.count, room + 1, 'a short one finds room')
})

test('architectures beyond those that there may be are left out and counted', async () => {
  const of = workload()
  const before = await rejected()
  for (let i = 0; i < MAX_ARCHES; i++) await pod(of, ['read'], { arch: `m${String(i).padStart(2, '0')}` })
  assert.equal(await rejected(), before)
  const full = (await rowOf(of))!
  await pod(of, ['read'], { arch: 'a' })
  assert.equal(await rejected(), before + 1)
  assert.deepEqual(await rowOf(of), full)
  await pod(of, ['write'], { arch: 'b' })
  const { arches, syscalls, hash } = (await rowOf(of))!
  assert.deepEqual([arches, syscalls], [full.arches, 'read,write'])
  assert.equal(hash, fingerprint(['read', 'write'], full.arches))
})

test('one body may name pods of many workloads, and one pod several times', async () => {
  const all = Array.from({ length: 40 }, workload)
  const names = await Promise.all(all.map((of) => run(unique('many'), of)))
  await post(...names.toReversed().map((name) => entry(name, ['read'])), ...names.map((name, i) => entry(name, [`s${i}`])))
  for (const [i, of] of all.entries()) assert.equal(await namesOf(of), [`read`, `s${i}`].sort().join(','))
})

// ---- against a model

const NAMES = ['read', 'write', ' read ', 'mmap', 'é', '😀', '\uffff', '435', ' ', 'Z']
const ARCHES = ['x86_64', 'aarch64', ' ', 'riscv64']

interface Model {
  pods: Map<string, Workload>
  rows: Map<string, { names: string[]; arch: string; time: number; namespace: string; unitedIn: string | null }>
  unions: Map<string, { names: Set<string>; arches: Set<string> }>
}

const keyOf = (of: Workload | undefined) =>
  of && [of.namespace, of.kind, of.name].every((part) => part !== null && part.trim() !== '')
    ? JSON.stringify([of.namespace, of.kind, of.name])
    : null

interface Entry {
  pod: number
  names: string[]
  arch: string
  time: number
}

function modelPost({ pods, rows, unions }: Model, entries: { pod: string; names: string[]; arch: string; time: number }[]): void {
  const touched = new Set<string>()
  const whole = new Map<string, (typeof entries)[number]>()
  for (const one of entries) {
    const before = whole.get(one.pod)
    const names = [...(before?.names ?? []), ...one.names]
    whole.set(one.pod, before && before.time > one.time ? { ...before, names } : { ...one, names })
  }
  for (const { pod, names, arch, time } of whole.values()) {
    const key = keyOf(pods.get(pod))
    const row = rows.get(pod) ?? { names: [], arch: '', time: -1, namespace: '', unitedIn: null }
    const added = names.filter((one) => one.trim() !== '' && !row.names.includes(one))
    const isChanged =
      !rows.has(pod) || added.length > 0 || time > row.time || (time === row.time && arch !== row.arch) || row.unitedIn !== key
    if (!isChanged) continue
    const isNewest = time >= row.time
    rows.set(pod, {
      names: [...row.names, ...added],
      arch: isNewest ? arch : row.arch,
      time: Math.max(time, row.time),
      namespace: '',
      unitedIn: key,
    })
    if (key) touched.add(key)
  }
  for (const key of touched) {
    const union = unions.get(key) ?? { names: new Set<string>(), arches: new Set<string>() }
    for (const [pod, row] of rows) {
      const speaks = row.unitedIn === key ? [...whole.keys()].includes(pod) : keyOf(pods.get(pod)) === key
      if (!speaks) continue
      row.unitedIn = key
      if (row.names.length === 0) continue
      for (const one of row.names) union.names.add(one.trim())
      if (row.arch.trim() !== '') union.arches.add(row.arch)
    }
    if (union.names.size > 0) unions.set(key, union)
  }
}

test('whatever is posted in whatever order, every union is that of a model, and its time changes exactly when it grows', async () => {
  const part = (names: string[]) => fc.constantFrom<string | null>(...names, ...names, null, ' ')
  const step = fc.oneof(
    fc.record({
      what: fc.constant('run' as const),
      pod: fc.nat(4),
      of: fc.record({
        namespace: fc.constantFrom('a', 'a', 'a', 'b'),
        kind: part(['Deployment', 'Deployment', 'Job']),
        name: part(['web', 'api']),
      }),
    }),
    fc.record({ what: fc.constant('gone' as const), pod: fc.nat(4) }),
    fc.record({
      what: fc.constant('post' as const),
      entries: fc.array(
        fc.record({
          pod: fc.nat(4),
          names: fc.array(fc.constantFrom(...NAMES), { maxLength: 3 }),
          arch: fc.constantFrom(...ARCHES),
          time: fc.nat(3),
        }) as fc.Arbitrary<Entry>,
        { minLength: 1, maxLength: 4 },
      ),
      elsewhere: fc.boolean(),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      const prefix = unique('model')
      const model: Model = { pods: new Map(), rows: new Map(), unions: new Map() }
      const called = (pod: number) => `${prefix}-${pod}`
      let times = new Map<string, string>()
      for (const one of steps) {
        const before = new Map([...model.unions].map(([key, { names, arches }]) => [key, names.size + arches.size]))
        if (one.what === 'run') {
          const of = { ...one.of, namespace: `${prefix}-${one.of.namespace}` }
          model.pods.set(called(one.pod), of)
          await run(called(one.pod), of)
        } else if (one.what === 'gone') {
          model.pods.delete(called(one.pod))
          await sql`delete from pod where pod_name = ${called(one.pod)}`
        } else {
          const entries = one.entries.map(({ pod, ...rest }) => ({ pod: called(pod), ...rest }))
          modelPost(model, entries)
          const body = entries.map(({ pod, names, arch, time }) => entry(pod, names, { arch, time_stamp: `2026-01-01T09:00:0${time}` }))
          const status = one.elsewhere ? await replica.post(PATH, body) : (await app.post(PATH, body)).status
          assert.equal(status, 200)
        }
        const rows = await sql`
          select workload_key(pod_namespace, workload_kind, workload_name) as key, syscalls, to_json(arches) as arches, hash,
                 syscall_count::integer as count, updated_at::text as at
          from workload_syscalls where starts_with(pod_namespace, ${`${prefix}-`})`
        const found = rows.map(({ key, syscalls, arches, hash, count }) => [JSON.stringify(JSON.parse(key)), syscalls, arches, hash, count])
        const expected = [...model.unions].map(([key, { names, arches }]) => [
          key,
          [...names].sort(byBytes).join(','),
          [...arches].sort(byBytes),
          fingerprint(names, arches),
          names.size,
        ])
        assert.deepEqual(found.sort(), expected.sort())
        const now = new Map(rows.map(({ key, at }) => [JSON.stringify(JSON.parse(key)), at as string]))
        for (const [key, { names, arches }] of model.unions) {
          const was = times.get(key)
          if (was !== undefined) assert.equal(now.get(key)! > was, names.size + arches.size > before.get(key)!, 'the time of a union')
          if (was !== undefined) assert.ok(now.get(key)! >= was)
        }
        times = now
      }
    }),
    { numRuns: 60 },
  )
})

test('posts of many pods at once, over two replicas, lose nothing and never deadlock', async () => {
  const prefix = unique('storm')
  const all = Array.from({ length: 4 }, (_, w) => ({ namespace: prefix, kind: 'Deployment', name: `w${w}` }))
  const pods = Array.from({ length: 24 }, (_, i) => `${prefix}-${(i * 7) % 24}`)
  const home = (i: number) => all[(i * 5) % all.length]!
  // Half of them were there before their workload.
  await post(...pods.filter((_, i) => i % 2).map((name) => entry(name, [`early-${name}`])))
  for (const [i, name] of pods.entries()) await run(name, home(i))
  const { retried } = app.db.ingest.stats
  const expected = new Map(all.map(({ name }) => [name, new Set<string>()]))
  for (const [i, name] of pods.entries()) if (i % 2) expected.get(home(i).name)!.add(`early-${name}`)
  const posts = Array.from({ length: 120 }, (_, k) => {
    const entries = Array.from({ length: 6 }, (_, j) => {
      const i = (k * 11 + j * (k % 5) * 3 + j) % pods.length
      const syscall = `s${(k * j) % 97}`
      expected.get(home(i).name)!.add(syscall).add('read')
      return entry(pods[i]!, [syscall, 'read'], { arch: j % 2 ? 'x86_64' : 'aarch64', time_stamp: `2026-01-01T09:00:${10 + (k % 40)}` })
    })
    return k % 2 ? entries : entries.reverse()
  })
  const statuses = await Promise.all(posts.map(async (body, k) => (k % 2 ? replica.post(PATH, body) : (await app.post(PATH, body)).status)))
  assert.deepEqual(new Set(statuses), new Set([200]))
  assert.equal(app.db.ingest.stats.retried - retried, 0, 'a deadlock')
  for (const of of all) {
    const { syscalls, arches, hash, count } = (await rowOf(of))!
    const names = [...expected.get(of.name)!].sort(byBytes)
    assert.deepEqual([syscalls, count], [names.join(','), names.length])
    assert.deepEqual(arches, ['aarch64', 'x86_64'])
    assert.equal(hash, fingerprint(names, arches))
  }
})
