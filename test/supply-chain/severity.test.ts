import assert from 'node:assert/strict'
import test from 'node:test'
import { SEVERITIES, severities } from '../../lib/supply-chain/severity.ts'

const ALL = [0, 1, 2, 3, 4, 5]

test('a list of severities becomes their numbers, the worst first, without repeats', () => {
  assert.deepEqual(SEVERITIES, ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'])
  for (const [sent, wanted] of [
    ['CRITICAL', [0]],
    ['low,HIGH', [1, 3]],
    [' Unknown , none ,,none', [4, 5]],
    ['HIGH,high,High', [1]],
    ['UNKNOWN,NONE,LOW,MEDIUM,HIGH,CRITICAL', ALL],
  ] as const)
    assert.deepEqual(severities.parse(sent), wanted, sent)
})

test('a missing, blank or commas-only list means all severities', () => {
  for (const sent of [undefined, '', ' ', ',', ' , ']) assert.deepEqual(severities.parse(sent), ALL)
})

test('an unknown name, or U+0000, is refused and named', () => {
  for (const [sent, said] of [
    ['SEVERE', '"SEVERE" is not one of CRITICAL, HIGH, MEDIUM, LOW, NONE, UNKNOWN'],
    ['HIGH,severe', '"SEVERE" is not one of CRITICAL, HIGH, MEDIUM, LOW, NONE, UNKNOWN'],
    ['0', '"0" is not one of CRITICAL, HIGH, MEDIUM, LOW, NONE, UNKNOWN'],
    ['HIGH LOW', '"HIGH LOW" is not one of CRITICAL, HIGH, MEDIUM, LOW, NONE, UNKNOWN'],
    ['HIGH\0', 'U+0000 is not allowed'],
  ])
    assert.equal(severities.safeParse(sent).error?.issues[0]?.message, said)
})
