import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalize, FlowBatch, FlowPost, flowKey, matchKeys, repeatKey } from '../../lib/traffic/flow.ts'

type Flow = ReturnType<typeof FlowPost.parse>

const SIX = ['pod_ip', 'pod_port', 'traffic_type', 'traffic_in_out_ip', 'traffic_in_out_port', 'decision'] as const

// Few values, and among them such as would run together were members just joined.
const text = fc.constantFrom('', '1', '12', '2', 'null', 'u', 't', '\u0001', ',', '","')
const member = fc.oneof({ arbitrary: text, weight: 20 }, { arbitrary: fc.constantFrom(null, undefined), weight: 1 })
const protocol = fc.constantFrom('UDP', 'TCP', 'udp', '', null, undefined)
const flow: fc.Arbitrary<Flow> = fc
  .record({ ip_protocol: protocol, ...Object.fromEntries(SIX.map((one) => [one, member])) })
  .map((members) => ({ uuid: 'u', time_stamp: '2024-05-01T10:00:00', ...members }))

/** Of the second flow, some members are those of the first: of flows made apart hardly two are equal in all. */
const pair = fc
  .tuple(flow, flow, fc.subarray(['ip_protocol', ...SIX] as const))
  .map(([a, b, shared]): [Flow, Flow] => [a, { ...b, ...Object.fromEntries(shared.map((key) => [key, a[key]])) }])

const keyOf = (one: Flow) => flowKey(one, matchKeys(one))
const isWhole = (one: Flow) => SIX.every((key) => one[key] != null)
const isEqual = (a: Flow, b: Flow, keys: readonly (typeof SIX)[number][]) =>
  keys.every((key) => a[key] != null && a[key] === b[key])
const without = (left: string) => SIX.filter((key) => key !== left)

test('flow keys are equal exactly for whole flows of the same six members and the same branch', () => {
  fc.assert(
    fc.property(pair, ([a, b]) => {
      assert.equal(keyOf(a) === null, !isWhole(a))
      const same = isWhole(a) && isEqual(a, b, SIX) && (a.ip_protocol === 'UDP') === (b.ip_protocol === 'UDP')
      assert.equal(keyOf(a) !== null && keyOf(a) === keyOf(b), same)
    }),
    { numRuns: 5_000 },
  )
})

test('repeat keys are equal exactly for the same seven members, a missing one being null', () => {
  fc.assert(
    fc.property(pair, ([a, b]) => {
      const same = (['ip_protocol', ...SIX] as const).every((key) => (a[key] ?? null) === (b[key] ?? null))
      assert.equal(repeatKey(a) === repeatKey(b), same)
    }),
    { numRuns: 5_000 },
  )
})

test('two flows share a key exactly when the members that it stands for are equal and none of them is null', () => {
  const shares = (a: string | null, b: string | null) => a !== null && a === b
  fc.assert(
    fc.property(pair, ([a, b]) => {
      const [mine, theirs] = [matchKeys(a), matchKeys(b)]
      assert.equal(shares(mine.all, theirs.all), isEqual(a, b, SIX))
      assert.equal(shares(mine.podPort, theirs.podPort), isEqual(a, b, without('traffic_in_out_port')))
      assert.equal(shares(mine.peerPort, theirs.peerPort), isEqual(a, b, without('pod_port')))
      const others = [theirs.podPort, theirs.peerPort]
      assert.ok(mine.all === null || !others.includes(mine.all))
      assert.ok(mine.podPort === null || mine.podPort !== theirs.peerPort)
    }),
    { numRuns: 5_000 },
  )
})

test('both addresses become canonical, and nothing else changes', () => {
  const one = { uuid: 'A:B', time_stamp: '2024-05-01T10:00:00', pod_name: 'FD00::1', pod_port: '::FFFF:10.0.0.1' }
  const canonical = canonicalize({ ...one, pod_ip: 'FD00:0::1', traffic_in_out_ip: '::ffff:10.0.0.1' })
  assert.deepEqual(canonical, { ...one, pod_ip: 'fd00::1', traffic_in_out_ip: '10.0.0.1' })
  for (const ip of [null, undefined, '', 'None'] as const) {
    const odd = canonicalize({ ...one, pod_ip: ip, traffic_in_out_ip: ip })
    assert.deepEqual([odd.pod_ip, odd.traffic_in_out_ip], [ip, ip])
  }
})

test('the body of one flow and that of many hold the same rules', () => {
  const value = fc.oneof(
    fc.constantFrom<unknown>(
      undefined,
      null,
      '',
      'x',
      7,
      1.5,
      true,
      [],
      {},
      'x'.repeat(64),
      'x'.repeat(65),
      'x'.repeat(129),
      'x'.repeat(254),
    ),
    fc.constant('2024-05-01T10:00:00.5'),
  )
  const keys = [
    ...SIX,
    'uuid',
    'time_stamp',
    'pod_name',
    'pod_namespace',
    'ip_protocol',
    'drop_cause',
    'syn_retries',
    'peer_kind',
    'x',
  ]
  fc.assert(
    fc.property(fc.constantFrom(...keys), value, (key, changed) => {
      const body = { uuid: 'u', time_stamp: '2024-05-01T10:00:00', pod_name: 'p', [key]: changed }
      const [single, batch] = [
        FlowPost.safeParse(body),
        FlowBatch.safeParse([{ ...body, pod_name: 'p', [key]: changed }]),
      ]
      assert.equal(single.success, batch.success)
      if (single.success) assert.deepEqual(batch.data, [single.data])
      else
        assert.deepEqual(
          batch.error!.issues.map(({ path, message }) => [path, message]),
          single.error.issues.map(({ path, message }) => [[0, ...path], message]),
        )
    }),
    { numRuns: 1_000 },
  )
})

test('a time is stored as it will be read, and unknown keys are dropped', () => {
  const parsed = FlowPost.parse({
    uuid: 'u',
    time_stamp: '2024-05-01T10:00:00.1234567',
    peer_kind: 'external',
    extra: 1,
  })
  assert.deepEqual(parsed, { uuid: 'u', time_stamp: '2024-05-01T10:00:00.123456' })
})
