/** Random drains: the stored and counted denials equal those of a model of the rules (docs/contract.md#denials). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { podPost } from '../support/records.ts'
import { countedBy, denial, type Fields, heartbeat, rows, take } from './drains.ts'

const RUNS = depth(18, 150)
const MAX_COUNT = 1e12
const app = await startApp()
const { sql } = app

const PODS = ['owned', 'bare', 'ghost'] as const
/** Seconds of a past day; null means absent. */
const second = fc.option(fc.integer({ min: 0, max: 59 }), { freq: 4 })
const shown = (at: number) => `2026-01-01T00:00:${String(at).padStart(2, '0')}Z`

const entry = fc.record({
  pod: fc.constantFrom(...PODS),
  syscall: fc.constantFrom('ptrace', 'bpf'),
  action: fc.constantFrom('SCMP_ACT_ERRNO', 'SCMP_ACT_LOG'),
  count: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 9 }) },
    { weight: 1, arbitrary: fc.constantFrom(0, -1, 1.5, MAX_COUNT, MAX_COUNT + 1) },
  ),
  syscallNr: fc.option(fc.integer({ min: 0, max: 3 })),
  arch: fc.option(fc.constantFrom('a', 'b', ' ')),
  first: second,
  last: second,
})
type Entry = typeof entry extends fc.Arbitrary<infer T> ? T : never
const drained = fc.record({
  node: fc.constantFrom('node-a', 'node-b'),
  capturing: fc.boolean(),
  entries: fc.array(entry, { maxLength: 8 }),
})

interface Row {
  count: number
  syscallNr: number | null
  arch: string | null
  node: string
  /** Infinity means now. */
  first: number
  last: number
}

const NOW = Number.POSITIVE_INFINITY

function judged({ count, syscallNr, arch, first, last }: Entry, node: string): Row | null {
  if (!Number.isInteger(count) || count < 1 || count > MAX_COUNT) return null
  const [from, to] = [first ?? last ?? NOW, last ?? NOW]
  return {
    count,
    syscallNr,
    arch: arch === ' ' ? null : arch,
    node,
    first: Math.min(from, to),
    last: Math.max(from, to),
  }
}

/** `newer` selects between two optional fields: within a drain the first present one, between drains the last. */
const joined = (a: Row, b: Row, newer: boolean): Row => ({
  count: Math.min(a.count + b.count, MAX_COUNT),
  syscallNr: newer ? (b.syscallNr ?? a.syscallNr) : (a.syscallNr ?? b.syscallNr),
  arch: newer ? (b.arch ?? a.arch) : (a.arch ?? b.arch),
  node: b.node,
  first: Math.min(a.first, b.first),
  last: Math.max(a.last, b.last),
})

function add(to: Map<string, Row>, key: string, row: Row, newer: boolean): void {
  const old = to.get(key)
  to.set(key, old ? joined(old, row, newer) : row)
}

const sent = ({ pod, syscall, action, count, syscallNr, arch, first, last }: Entry): Fields =>
  denial({
    ...{ podName: pod, podUid: pod, syscall, action, count, syscallNr, arch },
    ...(first !== null && { firstSeen: shown(first) }),
    ...(last !== null && { lastSeen: shown(last) }),
  })

const secondOf = (time: string): number => (time.startsWith('2026-01-01T00:00:') ? Number(time.slice(17, 19)) : NOW)

test('random drains', { timeout: 900_000 }, async () => {
  const owner = { pod_namespace: 'shop', workload_kind: 'Deployment', workload_name: 'web' }
  for (const post of [podPost({ ...owner, pod_name: 'owned' }), podPost({ pod_namespace: 'shop', pod_name: 'bare' })])
    assert.equal((await app.post('/pod/spec', post)).status, 200)
  const counted: Record<string, number> = {}
  await fc.assert(
    fc.asyncProperty(fc.array(drained, { maxLength: 5 }), async (drains) => {
      await sql`truncate seccomp_denial, seccomp_denial_node`
      const stored = new Map<string, Row>()
      const capturing = new Map<string, boolean>()
      for (const { node, capturing: flag, entries } of drains) {
        const folded = new Map<string, Row>()
        for (const one of entries) {
          const row = judged(one, node)
          if (row) add(folded, `${one.pod} ${one.syscall} ${one.action}`, row, false)
        }
        for (const [key, row] of folded) {
          add(stored, key, row, true)
          const [pod] = key.split(' ') as [(typeof PODS)[number]]
          const series = { owned: 'shop Deployment web', bare: 'shop Pod bare', ghost: null }[pod]
          if (series) counted[series] = (counted[series] ?? 0) + row.count
        }
        capturing.set(node, flag || folded.size > 0)
        assert.equal(await take(app, entries.map(sent), { node, capturing: flag }), folded.size)
      }
      const found = (await rows(app)).map((row): [string, Row] => [
        `${row.podName} ${row.syscall} ${row.action}`,
        {
          count: row.count,
          syscallNr: row.syscallNr,
          arch: row.arch,
          node: row.nodeName!,
          first: secondOf(row.firstSeen),
          last: secondOf(row.lastSeen),
        },
      ])
      assert.deepEqual(new Map(found.sort()), new Map([...stored].sort()))
      for (const [node, flag] of capturing) assert.equal((await heartbeat(app, node))!.capturing, flag)
      assert.deepEqual(countedBy(app.deps), counted)
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
})
