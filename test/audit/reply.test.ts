import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BadReply, readCause, readVerdicts } from '../../lib/audit/reply.ts'

const result = (fields: object = {}) => ({
  policyNamespace: 'shop',
  policyName: 'web',
  policyUID: 'u-1',
  policyGeneration: 3,
  direction: 'Egress',
  verdict: 'WouldDeny',
  reason: 'no rule matched',
  ...fields,
})
const read = (...results: unknown[]) => readVerdicts(JSON.stringify({ results }))

test('a verdict has the stored fields of its result', () => {
  assert.deepEqual(read(result()), [
    {
      policy_uid: 'u-1',
      policy_namespace: 'shop',
      policy_name: 'web',
      direction: 'Egress',
      verdict: 'WouldDeny',
      reason: 'no rule matched',
    },
  ])
})

test('the reason is empty for Allow, and if it is not a string', () => {
  assert.equal(read(result({ verdict: 'Allow' }))[0]!.reason, '')
  for (const reason of [undefined, null, 7, {}]) assert.equal(read(result({ reason }))[0]!.reason, '')
})

test('a reason is cut at 4096 characters and loses characters that the database cannot store', () => {
  assert.equal(read(result({ reason: 'r'.repeat(5_000) }))[0]!.reason.length, 4_096)
  assert.equal(read(result({ reason: 'a\0b\ud800c' }))[0]!.reason, 'ab\ufffdc')
})

test('an absent uid, and the namespace of a cluster-wide policy, are empty', () => {
  for (const none of [undefined, null]) {
    const [one] = read(result({ policyUID: none, policyNamespace: none }))
    assert.deepEqual([one!.policy_uid, one!.policy_namespace], ['', ''])
  }
})

test('NotApplicable and unknown verdicts are left out', () => {
  const verdicts = ['NotApplicable', 'Maybe', '', null, 7, 'allow'].map((verdict) => result({ verdict }))
  assert.deepEqual(read(...verdicts, result({ verdict: 'Allow' })).length, 1)
})

test('missing, null and empty results give no verdicts', () => {
  for (const text of ['{}', '{"results":null}', '{"results":[]}']) assert.deepEqual(readVerdicts(text), [])
})

for (const text of [
  ...[
    '',
    'not json',
    '{"results":',
    '7',
    'null',
    '[]',
    '"results"',
    '{"results":{}}',
    '{"results":[7]}',
    '{"results":[null]}',
  ],
  ...[
    { direction: 'egress' },
    { direction: null },
    { policyName: undefined },
    { policyName: 7 },
    { policyName: 'p'.repeat(254) },
  ].map((fields) => JSON.stringify({ results: [result(fields)] })),
  JSON.stringify({ results: [result({ policyUID: 'a\0b' })] }),
])
  test(`${text.slice(0, 60)} is not a reply`, () => assert.throws(() => readVerdicts(text), BadReply))

test('the cause of a drop is one of three values', () => {
  for (const cause of ['no-policy', 'policy-governs', 'unknown'])
    assert.equal(readCause(JSON.stringify({ cause })), cause)
  for (const text of ['{}', 'null', '7', '{"cause":null}', '{"cause":"other"}', '[]'])
    assert.equal(readCause(text), null)
  assert.throws(() => readCause('not json'), BadReply)
})

test('property: any text is parsed or refused with BadReply', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      try {
        readVerdicts(text)
      } catch (error) {
        assert.ok(error instanceof BadReply)
      }
    }),
    { numRuns: 1_000 },
  )
})
