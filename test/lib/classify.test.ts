/**
 * How errors of the driver, a socket or the server are classified. What a migration does with them is in
 * migrate.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify, DatabaseBusy, DatabaseRefused, DatabaseUnavailable, isNoConnection } from '../../lib/db/errors.ts'

const answer = (severity: string, code: string) => Object.assign(new Error('told'), { severity, code })
const failed = (code: string, syscall: string) => Object.assign(new Error(`${syscall} ${code}`), { code, syscall })

const ERRORS: readonly [string, Error, typeof DatabaseBusy | typeof DatabaseUnavailable | null, string][] = [
  ['a lock timeout', answer('ERROR', '55P03'), DatabaseBusy, '55P03'],
  ['a statement timeout', answer('ERROR', '57014'), DatabaseBusy, '57014'],
  ['a lost connection', answer('ERROR', '08006'), DatabaseUnavailable, '08006'],
  ['a server without room', answer('ERROR', '53300'), DatabaseUnavailable, '53300'],
  ['a full disk', answer('ERROR', '53100'), DatabaseRefused, '53100'],
  ['a missing privilege', answer('ERROR', '42501'), DatabaseRefused, '42501'],
  ['a session that ends, whatever its code', answer('FATAL', '42501'), DatabaseUnavailable, '42501'],
  ['a session that ends in a conflict', answer('FATAL', '40001'), DatabaseUnavailable, '40001'],
  ['a unix socket that is not there', failed('ENOENT', 'connect'), DatabaseUnavailable, 'ENOENT'],
  ['a name without an address', failed('EAI_AGAIN', 'getaddrinfo'), DatabaseUnavailable, 'EAI_AGAIN'],
  [
    'a network that several addresses lack',
    new AggregateError([failed('ENETUNREACH', 'connect')]),
    DatabaseUnavailable,
    'ENETUNREACH',
  ],
  [
    'a driver that is closed',
    Object.assign(new Error('write'), { code: 'CONNECTION_ENDED' }),
    DatabaseUnavailable,
    'CONNECTION_ENDED',
  ],
  ['a duplicate key', answer('ERROR', '23505'), null, '23505'],
  ['several errors, none of a connection', new AggregateError([new TypeError('told')]), null, ''],
  ['no errors at all', new AggregateError([]), null, ''],
  ['a programming error', new TypeError('told'), null, ''],
]

for (const [what, error, kind, code] of ERRORS) {
  test(`${what} is ${kind?.name ?? 'left as it is'}`, () => {
    const problem = classify(error)
    if (kind === null) assert.equal(problem, error)
    else {
      assert.equal(problem.constructor, kind)
      assert.equal((problem as DatabaseUnavailable).code, code)
      if (kind !== DatabaseRefused) assert.match(problem.message, /told|write|connect|getaddrinfo/)
    }
    assert.equal(isNoConnection(problem), kind === DatabaseUnavailable)
    assert.equal(classify(problem), problem)
  })
}
