import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { Repository } from '../../lib/admission/coverage.ts'
import { namesOf } from '../../lib/admission/name.ts'
import type { Group } from '../../lib/admission/plan.ts'
import { anyCharacter } from '../support/any-character.ts'
import { RUNS } from '../support/runs.ts'

const group = (...names: string[]): Group => ({
  repositories: names.map((name) => new Repository(name)),
  authorities: [],
  predicate: null,
})
const attested = (...names: string[]): Group => ({ ...group(...names), predicate: 'https://slsa.dev/provenance/v1' })
const nameOf = (...names: string[]) => namesOf([group(...names)], '', null)[0]!

test('a policy is named after the last segment of its first repository', () => {
  for (const [repository, start] of [
    ['registry.test/team/app', 'kguardian-signed-app-'],
    ['app', 'kguardian-signed-app-'],
    ['registry.test/Shop_App.2', 'kguardian-signed-shop-app-2-'],
    ['registry.test/-app-', 'kguardian-signed-app-'],
    ['registry.test/__', 'kguardian-signed-'],
    ['registry.test/', 'kguardian-signed-'],
    [`registry.test/${'a'.repeat(100)}`, `kguardian-signed-${'a'.repeat(31)}-`],
    [`registry.test/${'a'.repeat(30)}.${'b'.repeat(9)}`, `kguardian-signed-${'a'.repeat(30)}-`],
  ] as const) {
    const name = nameOf(repository)
    assert.ok(name.startsWith(start), name)
    assert.match(name.slice(start.length), /^[0-9a-f]{8}$/, name)
  }
})

test('a name is shortened only where a suffix is appended', () => {
  const long = `registry.test/${'a'.repeat(100)}`
  assert.deepEqual(
    namesOf([group(long), attested(`${long}b`)], '-provenance', null).map((name) => name.length),
    [48 + 1 + 8, 63 - '-provenance'.length],
  )
})

test('the name depends on all repositories and is stable', () => {
  assert.equal(nameOf('r/a', 'r/b'), nameOf('r/a', 'r/b'))
  assert.notEqual(nameOf('r/a', 'r/b'), nameOf('r/a'))
  assert.notEqual(nameOf('r/a', 'r/b'), nameOf('r/a', 'r/c'))
  assert.equal(nameOf('registry.test/team/app'), 'kguardian-signed-app-60ba4bd0')
})

test('two namespaces and the cluster have three names for the same repositories', () => {
  const names = [null, 'shop', 'pay', 'r/b'].map((namespace) => namesOf([group('r/a')], '', namespace)[0]!)
  assert.equal(new Set(names).size, 4)
  assert.notEqual(names[3], nameOf('r/a', 'r/b'))
})

test('names with their suffix are DNS labels, and no two are equal', () => {
  const segment = fc.oneof(
    fc.string(),
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: fc.constantFrom(...'-_.aA1'), maxLength: 80 }),
  )
  fc.assert(
    fc.property(
      fc.array(segment, { minLength: 1, maxLength: 5 }),
      fc.constantFrom('', '-provenance'),
      (segments, suffix) => {
        const names = namesOf(
          [...segments, ...segments].map((one) => group(`registry.test/${one}`)),
          suffix,
          null,
        )
        for (const name of names) assert.match(name + suffix, /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
        assert.equal(new Set(names).size, names.length)
        assert.deepEqual(
          namesOf(
            [...segments, ...segments].map((one) => group(`registry.test/${one}`)),
            suffix,
            null,
          ),
          names,
        )
      },
    ),
    { numRuns: RUNS },
  )
})
