/** Posts that repeat stored values are answered after reading a few rows; all others are evaluated in full. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'

const looked = await startApp()
const judged = await startApp({}, looked)
const both = [looked, judged]

const START = Date.now() - 7 * 3_600_000
const at = (minute: number) => new Date(START + minute * 60_000).toISOString().slice(0, -1)

const pod = fc.constantFrom('p', 'p', 'p', 'q')
const namespace = fc.constantFrom('x', 'x', 'x', 'y')
/** Minutes after the step before. */
const later = fc.constantFrom(0, 0, 0, 1, 6, -2)
const names = fc.subarray(['read', 'write', 'bpf'], { minLength: 1 })
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('run' as const),
      pod_name: pod,
      pod_namespace: namespace,
      capture_level: fc.constantFrom('full', 'full', 'low', null),
      pod_uid: fc.constantFrom('a', 'a', 'b', null),
      workload_name: fc.constantFrom('w', 'w', 'v'),
      later,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      pod_name: pod,
      pod_namespace: fc.oneof(namespace, fc.constant('')),
      syscalls: names,
      arch: fc.constantFrom('x86_64', 'x86_64', 'aarch64'),
      later,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('again' as const),
      changed: fc.oneof(
        { weight: 3, arbitrary: fc.constant({}) },
        fc.record({ syscalls: names }),
        fc.record({ arch: fc.constantFrom('x86_64', 'aarch64') }),
        fc.record({ pod_namespace: fc.constantFrom('x', 'y', '') }),
      ),
      isNewer: fc.boolean(),
      later,
    }),
  },
  // Pods that were not posted for a long time.
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('silence' as const), later }) },
)

const ran = {
  kind: 'run',
  pod_name: 'p',
  pod_namespace: 'x',
  capture_level: 'full',
  pod_uid: 'a',
  workload_name: 'w',
} as const
const first = {
  kind: 'send',
  pod_name: 'p',
  pod_namespace: 'x',
  syscalls: ['read'] as string[],
  arch: 'x86_64',
  later: 1,
} as const
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
/**
 * Cases that are rare among random steps: a level that falls, and two pods of one name that both sent the syscall
 * before.
 */
const EXAMPLES: [Step[]][] = [
  [
    [
      { ...ran, later: 0 },
      first,
      { ...ran, capture_level: 'low', later: 1 },
      { kind: 'again', changed: {}, isNewer: true, later: 1 },
    ],
  ],
  [
    [
      { ...ran, later: 0 },
      { ...ran, pod_namespace: 'y', later: 0 },
      first,
      { ...first, pod_namespace: 'y', later: 0 },
      { ...first, pod_namespace: '', later: 0 },
    ],
  ],
]

type App = typeof looked
const stateOf = async ({ sql }: App) => [
  await sql`select pod_name, pod_namespace, syscalls, arch, time_stamp::text from pod_syscalls order by 1`,
  await sql`select pod_namespace, workload_name, syscalls, arches::text from workload_syscalls order by 1, 2`,
  await sql`
    select pod_name, pod_namespace, instance, workload_name, array(select unnest(string_to_array(syscalls, ',')) order by 1)::text as syscalls,
           arches::text, capture_level, level_at::text, is_doubtful, seen_until::text
    from syscall_contribution order by 1, 2, 3, 4`,
  await sql`
    select pod_name, pod_namespace, is_ambiguous, array(select unnest(string_to_array(syscalls, ',')) order by 1)::text as syscalls,
           arches::text, sent_at::text
    from unattributed_syscalls order by 1, 2, 3`,
  await sql`
    select pod_namespace, workload_name, names::text, first_seen::text, last_seen::text from workload_syscalls_seen order by 1, 2`,
]

test('property: any posts, repeated or new, leave the same rows as full evaluation', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
      for (const { sql } of both)
        await sql`
          truncate pod, pod_address, pod_instance, pod_syscalls, syscall_contribution, unattributed_syscalls, workload_syscalls,
            workload_syscalls_seen`
      let minute = 0
      let sent: Record<string, unknown> | null = null
      for (const { later, ...of } of steps) {
        minute += later
        if (of.kind === 'silence') {
          for (const { sql } of both) await sql`update pod_instance set last_seen = last_seen - interval '20 minutes'`
          continue
        }
        if (of.kind === 'run') {
          const { kind, ...fields } = of
          const post = {
            ...fields,
            pod_ip: '',
            pod_ips: [],
            node_name: 'n',
            is_dead: false,
            workload_kind: 'Deployment',
          }
          const doc = JSON.stringify([{ ...post, time_stamp: at(minute), image_digests: [] }])
          for (const { sql } of both) await sql`select upsert_pods(${doc}::text::json)`
          continue
        }
        if (of.kind === 'send') {
          const { kind, ...fields } = of
          sent = { ...fields, time_stamp: at(minute) }
        } else {
          if (sent === null) continue
          sent = Object.assign({}, sent, of.changed, of.isNewer ? { time_stamp: at(minute) } : {})
        }
        const doc: string = JSON.stringify([sent])
        // With the entries one by one everything is evaluated.
        const [one] = await looked.sql`select * from add_syscalls(${doc}::text::json, null)`
        const [other] = await judged.sql`select * from add_syscalls(${doc}::text::json, ${doc}::text::json)`
        assert.deepEqual({ ...one }, { ...other })
        assert.deepEqual(await stateOf(looked), await stateOf(judged))
      }
    }),
    { numRuns: depth(20, 60), examples: EXAMPLES },
  )
})
