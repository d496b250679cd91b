/** The effect of POST /pod/syscalls on the workloads of its pods (docs/contract.md#seccomp-profiles). */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { deadPodRetention } from '../../jobs/dead-pod-retention.ts'
import { waiting } from '../jobs/scene.ts'
import { anyCharacter } from '../support/any-character.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
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

async function run(pod_name: string, { namespace, kind, name }: Workload, fields: object = {}): Promise<string> {
  const pod = {
    ...{ pod_name, pod_ip: '', pod_ips: [], time_stamp: T, node_name: 'n', is_dead: false },
    ...{ pod_namespace: namespace, workload_kind: kind, workload_name: name, ...fields },
  }
  await sql`select upsert_pods(${JSON.stringify([pod])}::text::json)`
  return pod_name
}
const entry = (pod_name: string, syscalls: string[], fields: object = {}) => ({
  ...{ pod_name, pod_namespace: '', syscalls, arch: 'x86_64', time_stamp: T },
  ...fields,
})
async function post(...entries: unknown[]): Promise<void> {
  assert.equal((await app.post(PATH, entries)).status, 200)
}
/** A pod of a workload that sends syscalls at once. */
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
  const text = fc.string({ unit: anyCharacter, maxLength: 80 }).map((one) => one.replaceAll('\0', ''))
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 20, maxLength: 60 }), async (texts) => {
      assert.deepEqual(await hashes(texts), texts.map(fnv1a))
    }),
    { numRuns: depth(6, 30) },
  )
  const long = Array.from({ length: MAX_NAMES }, (_, i) => `${i}`.padEnd(64, 'x')).join(',')
  assert.deepEqual(await hashes([long]), [fnv1a(long)])
})

test('bounded_union: stored names stay, the first others by bytes are added while there is room, each once and sorted', async () => {
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
        const bytesUpTo = (end: number) =>
          inOrder.slice(0, end).reduce((sum, one) => sum + Buffer.byteLength(one) + 1, 0)
        const chosen = inOrder.filter((_, i) => i < most && bytesUpTo(i + 1) <= mostBytes)
        assert.deepEqual(row!.all, chosen.sort(byBytes))
      },
    ),
    { numRuns: depth(15, 100) },
  )
  assert.deepEqual((await sql`select to_json(bounded_union(null, '{b,a}', 5, 99)) as all`)[0]!.all, ['a', 'b'])
})

test('workload_key distinguishes any two workloads, can be split, and is null without a workload', async () => {
  const part = fc.oneof(
    fc.constantFrom('', ' ', '\t', '\u00a0', '\u2003', '","', 'a', 'a,b', '"', '\\', 'é'),
    fc.string({ unit: anyCharacter, maxLength: 6 }),
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
        assert.deepEqual(
          key === null ? null : JSON.parse(key),
          all[i]!.every((one) => one !== null && one.trim() !== '') ? all[i] : null,
        )
    }),
    { numRuns: depth(12, 60) },
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
  // The name is stored untrimmed if it is not blank.
  await pod(of, ['read'], { arch: ' arm ' })
  assert.deepEqual((await rowOf(of))!.arches, [' arm '])
})

test('a pod without names adds no architecture to its workload, in one body or later', async () => {
  const of = workload()
  const [one, none, late] = [unique('one'), unique('none'), unique('late')]
  await post(entry(late, [], { arch: 'riscv64' }))
  for (const name of [one, none, late]) await run(name, of)
  await post(entry(none, [], { arch: 'aarch64' }), entry(one, ['read']))
  assert.deepEqual((await rowOf(of))!.arches, ['x86_64'])
})

test('a pod that gets names later adds its architecture then', async () => {
  const of = workload()
  const late = await pod(of, [], { arch: 'aarch64' })
  await pod(of, ['read'])
  assert.deepEqual((await rowOf(of))!.arches, ['x86_64'])
  await post(entry(late, ['write'], { arch: 'aarch64' }))
  const { syscalls, arches } = (await rowOf(of))!
  assert.deepEqual([syscalls, arches], ['read,write', ['aarch64', 'x86_64']])
})

test('pods without a complete workload add to no union', async () => {
  const of = workload()
  const before = Number((await sql`select count(*) as n from workload_syscalls`)[0]!.n)
  await post(entry(unique('unknown'), ['read']))
  for (const part of ['namespace', 'kind', 'name'])
    for (const blank of [null, '', ' ', '\t', '\u2003']) await pod({ ...of, [part]: blank }, ['read'])
  assert.equal(Number((await sql`select count(*) as n from workload_syscalls`)[0]!.n), before)
})

test('a post that adds nothing to a union neither writes nor locks it', async () => {
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

test('a pod whose workload becomes known later adds all its names with that post', async () => {
  const of = workload()
  const [early, silent] = [unique('early'), unique('silent')]
  await post(entry(early, ['read', 'write']), entry(silent, ['mmap'], { arch: 'aarch64' }))
  assert.equal(await rowOf(of), undefined)
  await run(early, of)
  assert.equal(await namesOf(of), 'read,write')
  await run(silent, { ...of, kind: null, name: null })
  assert.equal(await namesOf(of), 'read,write')
  await run(silent, of, { is_dead: true })
  const { syscalls, arches } = (await rowOf(of))!
  assert.deepEqual([syscalls, arches], ['mmap,read,write', ['aarch64', 'x86_64']])
  assert.equal((await sql`select from unattributed_syscalls where pod_name in (${early}, ${silent})`).length, 0)
})

for (const isThere of [false, true])
  test(`two concurrent pods add to one union that ${isThere ? 'exists' : 'does not exist yet'}`, async () => {
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

test('a post that waited for another with the same names does not write', async () => {
  const of = workload()
  await pod(of, ['brk'])
  const [one, other] = [await run(unique('one'), of), await run(unique('other'), of)]
  let second!: Promise<void>
  let written: unknown
  await sql.begin(async (first) => {
    await first`select union_syscalls(${JSON.stringify([entry(one, ['read'])])}::text::json)`
    ;[written] =
      await first`select updated_at::text, xmin::text, ctid::text from workload_syscalls where pod_namespace = ${of.namespace}`
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
  await deadPodRetention.run({
    config: app.deps.config,
    db: app.db,
    log: app.deps.log,
    signal: new AbortController().signal,
  } as never)
  assert.equal((await sql`select from pod where pod_name = ${name}`).length, 0)
  assert.deepEqual(await rowOf(of), before)
  await pod(of, ['brk'])
  assert.equal(await namesOf(of), 'brk,read')
})

test('a clock that went back gives no growth an earlier time than the one before', async () => {
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

test('names above the limit are left out and counted: stored ones stay, then the first by bytes', async () => {
  const of = workload()
  const numbered = (prefix: string, total: number) =>
    Array.from({ length: total }, (_, i) => `${prefix}${String(i).padStart(4, '0')}`)
  const name = await pod(of, numbered('m', MAX_NAMES - 2))
  let before = await rejected()
  await post(entry(name, ['z', 'b', 'c', 'a']))
  const full = (await rowOf(of))!
  assert.deepEqual([full.count, full.syscalls], [MAX_NAMES, ['a', 'b', ...numbered('m', MAX_NAMES - 2)].join(',')])
  assert.equal((await rejected()) - before, 2)
  assert.ok(
    app.logged.some((line) => String(line.msg).startsWith(`${PATH}: `) && line.entries === 2 && line.level === 40),
  )

  // From here on nothing of it grows, is written or locked.
  before = await rejected()
  for (let i = 0; i < 5; i++) await post(entry(name, [`0${i}`]))
  assert.deepEqual(await rowOf(of), full)
  assert.equal((await rejected()) - before, 5)
  before = await rejected()
  await post(entry(name, ['00']))
  assert.equal((await rejected()) - before, 0, 'a repeated post is not looked at again')
  assert.equal(
    app.logged.filter((line) => String(line.msg).startsWith(`${PATH}: `) && line.level === 40).length,
    1,
    'told once a minute',
  )
})

test('names above the limit of bytes are left out and counted', async () => {
  const of = workload()
  const long = Array.from({ length: 300 }, (_, i) => `n${i}`.padEnd(64, 'x')).sort(byBytes)
  const before = await rejected()
  await pod(of, long)
  const room = Math.floor(MAX_UNION_BYTES / 65)
  const row = (await rowOf(of))!
  assert.deepEqual([row.count, row.syscalls], [room, long.slice(0, room).join(',')])
  assert.equal((await rejected()) - before, 300 - room)
  await pod(of, ['z'])
  assert.equal((await rowOf(of))!.count, room + 1, 'a short one finds room')
})

test('architectures above the limit are left out and counted', async () => {
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

test('a pod whose name or architecture found no room makes its workload incomplete, and names that no syscall has leave room for the others', async () => {
  const exported = async ({ namespace, kind, name }: Workload) => {
    const path = `/seccomp/profiles/${namespace}/${kind}/${name}/export?defaultAction=SCMP_ACT_KILL_PROCESS`
    const { status, headers } = await app.get(path)
    return [status, headers.get('x-kguardian-capture-level')]
  }
  const full = { capture_level: 'full' }
  const numbers = Array.from({ length: 1_100 }, (_, i) => String(1_000 + i))
  const many = workload()
  const name = await run(unique('pod'), many, full)
  await post(entry(name, numbers.slice(0, 256)))
  assert.deepEqual(await exported(many), [200, 'full'])
  await post(entry(name, numbers))
  assert.deepEqual(await exported(many), [409, 'unknown'])
  await post(entry(name, ['openat', '_llseek']))
  assert.deepEqual(
    (await rowOf(many))!.syscalls.split(',').filter((one: string) => !/^\d/.test(one)),
    ['_llseek', 'openat'],
  )
  assert.deepEqual(await exported(many), [409, 'unknown'])

  const wide = workload()
  const other = await run(unique('pod'), wide, full)
  for (let i = 0; i < MAX_ARCHES; i++) await post(entry(other, ['read'], { arch: `m${i}` }))
  assert.deepEqual(await exported(wide), [200, 'full'])
  await post(entry(other, ['read'], { arch: 'x86_64' }))
  assert.deepEqual(await exported(wide), [409, 'unknown'])
})

test('one body may name pods of many workloads, and one pod several times', async () => {
  const all = Array.from({ length: 40 }, workload)
  const names = await Promise.all(all.map((of) => run(unique('many'), of)))
  await post(
    ...names.toReversed().map((name) => entry(name, ['read'])),
    ...names.map((name, i) => entry(name, [`s${i}`])),
  )
  for (const [i, of] of all.entries()) assert.equal(await namesOf(of), [`read`, `s${i}`].sort().join(','))
})

// ---- against a model

const NAMES = ['read', 'write', ' read ', 'mmap', 'é', '😀', '\uffff', '435', ' ', 'Z']
const ARCHES = ['x86_64', 'aarch64', ' ', 'riscv64']
const RANKS = ['full', 'high', 'medium', 'low', null, 'custom']
const worse = (a: string | null, b: string | null) => (RANKS.indexOf(a) > RANKS.indexOf(b) ? a : b)

interface Instance {
  pod: string
  namespace: string
  uid: string
  workload: string | null
  /** Levels with their start. */
  levels: { since: number; level: string | null }[]
  start: number
}
interface Contribution {
  level: string | null
  levelAt: number
  isDoubtful: boolean
  names: Set<string>
  arches: Set<string>
  /** The state before the post `post`. */
  stored: { level: string | null; levelAt: number; names: Set<string>; arches: Set<string> } | undefined
  post: number
}
interface Sent {
  pod: string
  namespace: string
  names: string[]
  arch: string
  time: number
  /** The number of its post. */
  post: number
}

/**
 * The syscalls by sender, from the rules (docs/contract.md#seccomp-profiles): pods are distinguished by namespace and
 * uid, and a syscall belongs to the pod that ran at its time.
 */
class Model {
  readonly instances: Instance[] = []
  readonly unions = new Map<string, { names: Set<string>; arches: Set<string> }>()
  readonly contributions = new Map<string, Map<Instance, Contribution>>()
  readonly waiting: Sent[] = []
  #posts = 0

  run(pod: string, namespace: string, uid: string, workload: string | null, level: string | null, time: number): void {
    let one = this.instances.find((other) => other.pod === pod && other.namespace === namespace && other.uid === uid)
    if (one === undefined) {
      one = {
        pod,
        namespace,
        uid,
        workload,
        levels: [level, level].map((one, n) => ({ since: n * time, level: one })),
        start: time,
      }
      this.instances.push(one)
    }
    one.workload ??= workload
    const last = one.levels.at(-1)!
    // An unknown level is filled in, however late.
    if (last.level === null && time < last.since) last.level = level
    if (level !== null && level !== last.level && time >= last.since) one.levels.push({ since: time, level })
    const waiting = this.waiting.splice(0)
    this.waiting.push(...waiting.filter((sent) => sent.pod !== pod))
    this.post(waiting.filter((sent) => sent.pod === pod))
  }

  post(entries: readonly Omit<Sent, 'post'>[]): void {
    this.#posts++
    for (const sent of entries) this.#send({ ...sent, post: this.#posts })
  }

  #send(sent: Sent): void {
    const { pod, namespace, time, arch } = sent
    const names = sent.names.filter((name) => name.trim() !== '')
    const possible = this.instances.filter(
      (one) => one.pod === pod && (namespace === '' || one.namespace === namespace),
    )
    const namespaces = [...new Set(possible.map((one) => one.namespace))]
    const senders = namespaces.map((of) => {
      const sorted = possible.filter((one) => one.namespace === of).sort((a, b) => a.start - b.start)
      return sorted.filter(({ start }) => start <= time).at(-1) ?? sorted[0]!
    })
    if (senders.length > 1) {
      if (names.length > 0)
        for (const one of senders) if (one.workload !== null) this.#contribute(one, sent, []).isDoubtful = true
      return
    }
    const [one] = senders
    if (one === undefined || one.workload === null) {
      if (names.length > 0) this.#keep({ ...sent, namespace: one?.namespace ?? namespace })
      return
    }
    this.#contribute(one, sent, names)
    if (names.length === 0) return
    const union = this.unions.get(one.workload) ?? { names: new Set<string>(), arches: new Set<string>() }
    this.unions.set(one.workload, union)
    for (const name of names) union.names.add(name.trim())
    if (arch.trim() !== '') union.arches.add(arch)
  }

  /**
   * All waiting syscalls of one name and namespace are attributed together, with the newest time. A repetition of a
   * waiting one does not count as newer within five minutes: the level at the older time is never higher.
   */
  #keep(sent: Sent): void {
    const isSameKey = ({ pod, namespace }: Sent) => pod === sent.pod && namespace === sent.namespace
    const known = this.waiting.filter((one) => isSameKey(one) && one.post < sent.post)
    const names = known.flatMap((one) => one.names)
    const isRepeated = sent.names.filter((name) => name.trim() !== '').every((name) => names.includes(name))
    if (isRepeated && known.some(({ arch }) => arch === sent.arch)) return
    this.waiting.push(sent)
    const together = this.waiting.filter(isSameKey)
    const newest = Math.max(...together.map(({ time }) => time))
    for (const one of together) one.time = newest
  }

  /** Within five minutes, an entry that adds nothing to what was stored before its post does not count as newer. */
  #contribute(one: Instance, { time, arch, post }: Sent, names: readonly string[]): Contribution {
    const [last, before] = [one.levels.at(-1)!, one.levels.at(-2)!]
    const level = time >= last.since ? last.level : worse(last.level, before.level)
    const all = this.contributions.get(one.workload!) ?? new Map<Instance, Contribution>()
    this.contributions.set(one.workload!, all)
    const empty = { names: new Set<string>(), arches: new Set<string>() }
    const contribution = all.get(one) ?? { level, levelAt: time, isDoubtful: false, ...empty, stored: undefined, post }
    all.set(one, contribution)
    if (contribution.post !== post) {
      const [known, arches] = [new Set(contribution.names), new Set(contribution.arches)]
      contribution.stored = { level: contribution.level, levelAt: contribution.levelAt, names: known, arches }
      contribution.post = post
    }
    const { stored } = contribution
    const isNew =
      stored === undefined ||
      names.some((name) => !stored.names.has(name)) ||
      !stored.arches.has(arch) ||
      (level !== stored.level && time >= stored.levelAt)
    if (names.length === 0 || !isNew) return contribution
    // In the first post, entries with names precede those without.
    const isFirst = stored === undefined && contribution.names.size === 0
    if (isFirst || time >= contribution.levelAt) Object.assign(contribution, { level, levelAt: time })
    for (const name of names) contribution.names.add(name)
    contribution.arches.add(arch)
    return contribution
  }

  /** The lowest level first. */
  capture(workload: string): string[] {
    const all = [...(this.contributions.get(workload) ?? [])].map(([{ pod, namespace }, { level, isDoubtful }]) => {
      const isAwaited = this.waiting.some((sent) => sent.pod === pod && ['', namespace].includes(sent.namespace))
      return { pod, rank: RANKS.indexOf(isDoubtful || isAwaited ? worse(level, null) : level) }
    })
    return all.sort((a, b) => b.rank - a.rank || byBytes(a.pod, b.pod)).map(({ pod, rank }) => `${pod} ${rank}`)
  }
}

test('property: for any posts in any order unions and captures equal the model, and the time of a union changes exactly when it grows', async () => {
  const step = fc.oneof(
    fc.record({
      what: fc.constant('run' as const),
      pod: fc.nat(2),
      namespace: fc.constantFrom('a', 'a', 'a', 'b'),
      uid: fc.constantFrom('u1', 'u1', 'u2'),
      isOwned: fc.constantFrom(true, true, false),
      level: fc.constantFrom('full', 'full', 'low', 'custom', null),
      at: fc.nat(3),
    }),
    fc.record({
      what: fc.constant('send' as const),
      entries: fc.array(
        fc.record({
          pod: fc.nat(2),
          namespace: fc.constantFrom('', '', 'a', 'b'),
          names: fc.array(fc.constantFrom(...NAMES), { maxLength: 3 }),
          arch: fc.constantFrom(...ARCHES),
          at: fc.nat(6),
        }),
        { minLength: 1, maxLength: 3 },
      ),
      elsewhere: fc.boolean(),
    }),
  )
  const begin = Date.now() - 600_000
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 16 }), async (steps) => {
      const prefix = unique('model')
      const model = new Model()
      const called = (pod: number) => `${prefix}-${pod}`
      const timeOf = (time: number) => new Date(begin + time).toISOString().slice(0, -1)
      const keyOf = (namespace: string, pod: number, uid: string) =>
        JSON.stringify([`${prefix}-${namespace}`, 'Deployment', `w${pod % 2}${uid}`])
      let times = new Map<string, string>()
      for (const [i, one] of steps.entries()) {
        const before = new Map([...model.unions].map(([key, { names, arches }]) => [key, names.size + arches.size]))
        // Each at a different time, some at a time that is past.
        const clock = (back: number) => Math.max(0, i - back) * 1_000 + i + 1
        if (one.what === 'run') {
          const { pod, namespace, uid, isOwned, level } = one
          const time = clock(one.at)
          const key = isOwned ? keyOf(namespace, pod, uid) : null
          const [of, kind, name] = key === null ? [`${prefix}-${namespace}`, null, null] : JSON.parse(key)
          model.run(called(pod), of, uid, key, level, time)
          await run(
            called(pod),
            { namespace: of, kind, name },
            { pod_uid: `${of}-${uid}`, pod_obj: {}, capture_level: level, time_stamp: timeOf(time) },
          )
        } else {
          const entries = one.entries.map(({ pod, namespace, names, arch, at }, n) => {
            const time = clock(at) + n * 40
            const sent = { pod: called(pod), namespace: namespace && `${prefix}-${namespace}`, names, arch, time }
            return {
              sent,
              body: entry(sent.pod, names, { arch, pod_namespace: sent.namespace, time_stamp: timeOf(time) }),
            }
          })
          model.post(entries.map(({ sent }) => sent))
          const body = entries.map((each) => each.body)
          assert.equal(one.elsewhere ? await replica.post(PATH, body) : (await app.post(PATH, body)).status, 200)
        }
        const rows = await sql`
          select workload_key(w.pod_namespace, w.workload_kind, w.workload_name) as key, w.syscalls, to_json(w.arches) as arches, w.hash,
                 w.syscall_count::integer as count, w.updated_at::text as at, to_json(c.names) as pods, to_json(c.ranks) as ranks
          from workload_syscalls w cross join lateral workload_capture(w.pod_namespace, w.workload_kind, w.workload_name) c
          where starts_with(w.pod_namespace, ${`${prefix}-`})`
        const captured = (names: string[] | null, ranks: number[]) =>
          (names ?? []).map((name, n) => `${name} ${ranks[n]}`)
        const found = rows.map(({ key, syscalls, arches, hash, count, pods, ranks }) => [
          ...[JSON.stringify(JSON.parse(key)), syscalls, arches, hash, count, captured(pods, ranks)],
        ])
        const expected = [...model.unions].map(([key, { names, arches }]) => [
          ...[
            key,
            [...names].sort(byBytes).join(','),
            [...arches].sort(byBytes),
            fingerprint(names, arches),
            names.size,
            model.capture(key),
          ],
        ])
        assert.deepEqual(found.sort(), expected.sort())
        const now = new Map(rows.map(({ key, at }) => [JSON.stringify(JSON.parse(key)), at as string]))
        for (const [key, { names, arches }] of model.unions) {
          const was = times.get(key)
          if (was !== undefined)
            assert.equal(now.get(key)! > was, names.size + arches.size > before.get(key)!, 'the time of a union')
          if (was !== undefined) assert.ok(now.get(key)! >= was)
        }
        times = now
      }
    }),
    { numRuns: depth(15, 100) },
  )
})

test('concurrent posts of many pods, over two replicas, lose nothing and do not deadlock', async () => {
  const prefix = unique('storm')
  const all = Array.from({ length: 4 }, (_, w) => ({ namespace: prefix, kind: 'Deployment', name: `w${w}` }))
  const pods = Array.from({ length: 24 }, (_, i) => `${prefix}-${(i * 7) % 24}`)
  const home = (i: number) => all[(i * 5) % all.length]!
  // Half of them existed before their workload.
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
      return entry(pods[i]!, [syscall, 'read'], {
        arch: j % 2 ? 'x86_64' : 'aarch64',
        time_stamp: `2026-01-01T09:00:${10 + (k % 40)}`,
      })
    })
    return k % 2 ? entries : entries.reverse()
  })
  const statuses = await Promise.all(
    posts.map(async (body, k) => (k % 2 ? replica.post(PATH, body) : (await app.post(PATH, body)).status)),
  )
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
