/** Random posts against a model of docs/contract.md#executables. Each post carries a step of many histories. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { at, executable, stored, take } from './executables.ts'

const RUNS = depth(3, 12)
const HISTORIES = 60
const REWRITTEN_AFTER_SECS = 300
const ORIGINS = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd']
const app = await startApp()

/** Ages on both sides of the limit after which a row is written again. */
const second = fc.constantFrom(0, 1, 299, 300, 301, 599, 600, 900)

const entry = fc.record({
  path: fc.constantFrom('/a', '/b'),
  kind: fc.constantFrom('exec', 'exec', 'lib'),
  workload: fc.constantFrom<string | null>('web', 'web', 'web', null),
  pod: fc.constantFrom<string | null>('p', 'q', null),
  source: fc.constantFrom('ebpf', 'backfill'),
  origin: fc.constantFrom(...ORIGINS),
  isComplete: fc.boolean(),
  from: second,
  to: second,
})
type Entry = typeof entry extends fc.Arbitrary<infer T> ? T : never
/** The posts of a history, in order. */
const history = fc.array(fc.array(entry, { maxLength: 4 }), { minLength: 1, maxLength: 5 })

interface Row {
  source: string
  origin: string
  isComplete: boolean
  pod: string | null
  first: number
  last: number
}
type Rows = Map<string, Row>

function judged({ source, origin, isComplete, pod, from, to }: Entry): Row {
  const isTold = source === 'ebpf' || origin === 'deleted' || origin === 'memfd'
  return {
    source,
    origin: isTold ? origin : 'unknown',
    isComplete,
    pod,
    first: Math.min(from, to),
    last: Math.max(from, to),
  }
}

const merged = (a: Row, b: Row): Row => ({
  source: [a, b].some(({ source }) => source === 'ebpf') ? 'ebpf' : 'backfill',
  origin: ORIGINS[Math.max(ORIGINS.indexOf(a.origin), ORIGINS.indexOf(b.origin))]!,
  isComplete: a.isComplete || b.isComplete,
  pod: b.last > a.last ? b.pod : a.pod,
  first: Math.min(a.first, b.first),
  last: Math.max(a.last, b.last),
})

const { stringify } = JSON

/**
 * Applies the rules to one post: the entries that are accepted, those that are dropped, and the rows that it writes.
 */
function posted(rows: Rows, entries: readonly Entry[]): number[] {
  const batch: Rows = new Map()
  let dropped = 0
  for (const entry of entries) {
    if (entry.workload === null && entry.pod === null) {
      dropped++
      continue
    }
    const key = [entry.workload ?? `pod ${entry.pod}`, entry.kind, entry.path].join()
    const row = judged(entry)
    const before = batch.get(key)
    batch.set(key, before ? merged(before, row) : row)
  }
  let written = 0
  for (const [key, row] of batch) {
    const before = rows.get(key)
    const now = before ? merged(before, row) : row
    const isDue = !before || row.last - before.last >= REWRITTEN_AFTER_SECS
    const adds = before && stringify({ ...now, last: 0, pod: '' }) !== stringify({ ...before, last: 0, pod: '' })
    if (!isDue && !adds) continue
    rows.set(key, now)
    written++
  }
  return [entries.length - dropped, dropped, written]
}

const wire = ({ path, kind, workload, pod, source, origin, isComplete, from, to }: Entry, of: number) =>
  executable({
    pod_namespace: `history-${of}`,
    ...(workload === null ? { workload_kind: null, workload_name: null } : { workload_name: workload }),
    ...{
      pod_name: pod,
      path,
      kind,
      source,
      origin,
      path_complete: isComplete,
      first_seen: at(from),
      last_seen: at(to),
    },
  })

const shown = (of: number, [key, { source, origin, isComplete, pod, first, last }]: [string, Row]) =>
  stringify([`history-${of}`, key, source, origin, isComplete, pod, at(first), at(last)])

test(`POST /runtime/executables 200: ${RUNS} times ${HISTORIES} random histories are stored as the model says`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(history, { minLength: 1, maxLength: HISTORIES, size: 'max' }), async (histories) => {
      await app.sql`truncate runtime_executable`
      const models = histories.map((): Rows => new Map())
      for (let step = 0; histories.some((posts) => step < posts.length); step++) {
        const expected = [0, 0, 0]
        for (const [of, posts] of histories.entries())
          for (const [i, count] of posted(models[of]!, posts[step] ?? []).entries()) expected[i]! += count
        const entries = histories.flatMap((posts, of) => (posts[step] ?? []).map((one) => wire(one, of)))
        assert.deepEqual(await take(app, entries), expected)
        assert.equal((await take(app, entries))[2], 0, 'the same again')
      }
      const rows = (await stored(app)).map((row) => {
        const workload = row.workload_kind === 'Pod' ? `pod ${row.workload_name}` : row.workload_name
        const key = [workload, row.kind, row.path].join()
        const { pod_namespace, source, origin, path_complete, last_pod_name, first_seen, last_seen } = row
        return stringify([pod_namespace, key, source, origin, path_complete, last_pod_name, first_seen, last_seen])
      })
      assert.deepEqual(rows.sort(), models.flatMap((model, of) => [...model].map((row) => shown(of, row))).sort())
    }),
    { numRuns: RUNS },
  )
})
