/** Refusals that the routes about profiles share. */
import assert from 'node:assert/strict'
import type { WorkloadKey } from '../../lib/profile/built.ts'
import type { Answer } from '../support/app.ts'

/** A refusal whose body is JSON with exactly a code and a message. */
export function assertCoded(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual(Object.keys(answer.json), ['error', 'message'])
  assert.equal(answer.json.error, code)
  assert.ok(answer.json.message.length > 0)
}

/** 400 that names the parameter. */
export function assertBadRequest(answer: Answer, name: string): void {
  assertCoded(answer, 400, 'bad_request')
  assert.ok(answer.json.message.includes(`${name}: `), answer.text)
}

const of = (namespace: string, kind: string, name: string): WorkloadKey => ({ namespace, kind, name })
const LONG = 'é'.repeat(127)

/** Paths with a part that is blank, longer than 253 bytes, or has a slash in it. */
export const BAD_PATHS: readonly (readonly [key: WorkloadKey, part: string])[] = [
  [of(' ', 'K', 'n'), 'namespace'],
  [of('n', '\t', 'n'), 'kind'],
  [of('n', 'K', '  '), 'name'],
  [of(LONG, 'K', 'n'), 'namespace'],
  [of('n', LONG, 'n'), 'kind'],
  [of('n', 'K', LONG), 'name'],
  [of('n', 'K', 'a\0'), 'name'],
  [of('a/b', 'K', 'n'), 'namespace'],
  [of('n', '/', 'n'), 'kind'],
  [of('n', 'K', 'n/'), 'name'],
]
