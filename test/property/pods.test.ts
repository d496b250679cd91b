import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { podsWithWrongAddresses } from '../support/records.ts'

const app = await startApp()

// ---- Generated posts: few pods and uids, optional keys sometimes left out -------------------------------------------

const often = <T>(...words: T[]) => fc.option(fc.constantFrom(...words), { freq: 2 })

const post = fc.record({
  op: fc.constant('post' as const),
  pod_name: fc.constantFrom<string>('p', 'q'),
  pod_ip: fc.constantFrom<string>('10.0.0.1', '10.0.0.2'),
  pod_ips: fc.constantFrom<string[]>([], ['fd00::1']),
  time_stamp: fc.constantFrom<string>('2026-01-01T00:00:00', '2026-01-01T00:01:00', '2026-01-01T00:02:00'),
  node_name: fc.constantFrom<string>('n', 'm'),
  is_dead: fc.boolean(),
  pod_obj: fc.option(
    fc.record(
      {
        metadata: fc.record(
          { uid: fc.constantFrom('a', 'b', '', 7), generation: fc.nat(2) },
          { requiredKeys: [], noNullPrototype: true },
        ),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
    { freq: 4 },
  ),
  pod_namespace: often('x', 'y'),
  pod_identity: often('i', 'j'),
  workload_selector_labels: often<Record<string, string>>({ app: 'l' }, {}),
  workload_kind: often('Deployment', 'DaemonSet'),
  workload_name: often('w', 'v'),
  capture_level: often('high', 'low'),
  host_network: often(true, false),
  started_at: often('2026-01-01T00:00:00', '2025-12-31T00:00:00'),
})
const markDead = fc.record({ op: fc.constant('mark' as const), pod_name: fc.constantFrom('p', 'q') })
type Post = typeof post extends fc.Arbitrary<infer T> ? T : never
type Step = Post | (typeof markDead extends fc.Arbitrary<infer T> ? T : never)
/** The steps of a round are sent at once, at most one for each pod, so that one statement writes them together. */
const round: fc.Arbitrary<Step[]> = fc.uniqueArray(
  fc.oneof({ weight: 6, arbitrary: post }, { weight: 1, arbitrary: markDead }),
  {
    selector: (step) => step.pod_name,
    minLength: 1,
    maxLength: 2,
  },
)

/** Sent first in each round: its statement runs alone, and the steps of the round wait and are written together. */
const FILLER: Post = {
  ...{
    op: 'post',
    pod_name: 'filler',
    pod_ip: '10.0.0.3',
    pod_ips: [],
    time_stamp: '2026-01-01T00:00:00',
    node_name: 'n',
    is_dead: false,
  },
  ...{
    pod_obj: null,
    pod_namespace: null,
    pod_identity: null,
    workload_selector_labels: null,
    workload_kind: null,
    workload_name: null,
  },
  ...{ capture_level: null, host_network: null, started_at: null },
}

// ---- The model: docs/contract.md#pods -------------------------------------------------------------------------------

type Row = Record<string, unknown>
const OPTIONAL = [
  ...[
    'pod_namespace',
    'pod_obj',
    'pod_identity',
    'workload_selector_labels',
    'workload_kind',
    'workload_name',
    'capture_level',
  ],
  ...['host_network', 'started_at'],
]

const uidOf = (manifest: unknown): string | null => {
  const uid = (manifest as Post['pod_obj'])?.metadata?.uid
  return typeof uid === 'string' && uid !== '' ? uid : null
}

/** The record that the post makes when no row is stored. */
function alone({ op: _, pod_ips, ...sent }: Post): Row {
  return {
    ...sent,
    pod_ips: [sent.pod_ip, ...pod_ips],
    host_network: sent.host_network ?? (sent.pod_obj === null ? null : false),
  }
}

/** What is stored after a step. */
function after(row: Row | undefined, step: Step): Row | undefined {
  if (step.op === 'mark') return row && { ...row, is_dead: true }
  const posted = alone(step)
  const [stored, sent] = [uidOf(row?.pod_obj), uidOf(step.pod_obj)]
  if (row === undefined || (stored !== null && sent !== null && stored !== sent)) return posted
  return { ...posted, ...Object.fromEntries(OPTIONAL.map((key) => [key, posted[key] ?? row[key]])) }
}

async function take(step: Step): Promise<void> {
  const { op, ...body } = step
  const answer = await app.post(op === 'post' ? '/pod/spec' : '/pod/mark_dead', body)
  assert.equal(answer.status, 200, answer.text)
}

const read = async (name: string): Promise<Row | undefined> => {
  const { status, json } = await app.get(`/pod/name/${name}`)
  return status === 404 ? undefined : json
}

test('property: after any posts a pod is as in the model: null keeps the stored value, another uid keeps nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 8 }), async (rounds) => {
      await app.sql`truncate pod, pod_address`
      const model = new Map<string, Row | undefined>()
      for (const steps of rounds) {
        await Promise.all([take(FILLER), ...steps.map(take)])
        for (const step of steps) model.set(step.pod_name, after(model.get(step.pod_name), step))
        for (const name of ['p', 'q']) assert.deepEqual(await read(name), model.get(name))
      }
      assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
      for (const { pod_name, pod_uid } of await app.sql`select pod_name, pod_uid from pod where pod_name <> 'filler'`)
        assert.equal(pod_uid, uidOf(model.get(pod_name)!.pod_obj))
    }),
    { numRuns: depth(18, 150) },
  )
})
