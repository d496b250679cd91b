import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { optionalReal, optionalShare } from '../../lib/supply-chain/fields.ts'
import { normalRepository } from '../../lib/supply-chain/repository.ts'
import { clean, cleanDistinct, cleanList } from '../../lib/supply-chain/text.ts'
import { anyCharacter } from '../support/any-character.ts'

const CLEANED: [text: string | null | undefined, maxBytes: number, cleaned: string | undefined][] = [
  ['plain', 64, 'plain'],
  ['  around \t\n', 64, 'around'],
  ['in  side', 64, 'in  side'],
  [' CVE-1\u0000 ', 64, 'CVE-1'],
  ['\u0000 x \u0000', 64, 'x'],
  ['a\u0000b\u0007c\u001fd\u007fe\u0080f\u009fg', 64, 'abcdefg'],
  ['one\ntwo\r\n\tthree', 64, 'onetwothree'],
  ['1\u2028.0\u2029', 64, '1.0'],
  ['\ud800x\udc00', 64, 'x'],
  ['\udc00\ud800', 64, undefined],
  // Halves of surrogate pairs do not join when the text between them is removed.
  ['\ud83d\u0000\ude00', 64, undefined],
  ['\ud83d\ude00', 64, '\u{1f600}'],
  ['\u00a0x\ufeff', 64, 'x'],
  ['\u202eabc', 64, '\u202eabc'],
  ['', 64, undefined],
  [' \t\u0001', 64, undefined],
  [null, 64, undefined],
  [undefined, 64, undefined],
  ['x'.repeat(65), 64, 'x'.repeat(64)],
  ['x'.repeat(64), 64, 'x'.repeat(64)],
  ['é'.repeat(33), 64, 'é'.repeat(32)],
  [`x${'é'.repeat(32)}`, 64, `x${'é'.repeat(31)}`],
  [`${'x'.repeat(61)}\u{1f600}`, 64, 'x'.repeat(61)],
  [`${'x'.repeat(60)}\u{1f600}y`, 64, `${'x'.repeat(60)}\u{1f600}`],
  [`${'x'.repeat(62)}€`, 64, 'x'.repeat(62)],
  // A cut text does not end with a blank either.
  [`${'x'.repeat(63)} yz`, 64, 'x'.repeat(63)],
  ['p'.repeat(2_000), 1024, 'p'.repeat(1024)],
]
test('text is cleaned, trimmed and cut in bytes between characters; an empty rest is absent', () => {
  for (const [text, maxBytes, cleaned] of CLEANED)
    assert.equal(clean(text, maxBytes), cleaned, JSON.stringify(text)?.slice(0, 80))
})

const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(' ', '\0', '\n', '\u2028', '\ud800', '\udfff', 'é', '\u{1f600}', 'a', '\u0085', '\ufeff'),
  ),
  maxLength: 60,
})

test('property: cleaned text fits its bytes, has no dropped character, and cleaning it again changes nothing', () => {
  fc.assert(
    fc.property(
      fc.oneof(anyText, fc.string({ unit: anyCharacter, maxLength: 60 })),
      fc.integer({ min: 1, max: 70 }),
      (text, maxBytes) => {
        const cleaned = clean(text, maxBytes)
        if (cleaned === undefined) return
        assert.ok(cleaned.length > 0)
        assert.ok(Buffer.byteLength(cleaned) <= maxBytes)
        assert.ok(cleaned.isWellFormed())
        assert.doesNotMatch(cleaned, /[\p{Cc}\u2028\u2029]/u)
        assert.equal(cleaned.trim(), cleaned)
        assert.equal(clean(cleaned, maxBytes), cleaned)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('property: short text loses only dropped characters; long text becomes a prefix', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 70 }), (text, maxBytes) => {
      const whole = text.replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, '').trim()
      const cleaned = clean(text, maxBytes) ?? ''
      assert.ok(whole.startsWith(cleaned))
      if (Buffer.byteLength(whole) <= maxBytes) assert.equal(cleaned, whole)
      // At most one character and the blanks before it are missing.
      else
        assert.ok(
          Buffer.byteLength(whole.slice(0, cleaned.length + /^\s*/.exec(whole.slice(cleaned.length))![0].length)) >
            maxBytes - 4,
        )
    }),
    { numRuns: 2_000 },
  )
})

test('the first entries of lists are kept, as sent; then empty ones are left out', () => {
  const list = ['a', ' ', 'b', 'a', 'c\u0000', 'd']
  assert.deepEqual(cleanList(list, 5, 64), ['a', 'b', 'a', 'c'])
  assert.deepEqual(cleanDistinct(list, 5, 64), ['a', 'b', 'c'])
  for (const none of [null, undefined, []]) assert.deepEqual(cleanList(none, 5, 64), [])
})

test('a number fits a single-precision column, or is absent', () => {
  for (const value of [0, 7.5, 9.8, -1, 3.4e38]) assert.equal(optionalReal.parse(value), value)
  for (const value of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY, 1e300, -1e300, 3.5e38])
    assert.equal(optionalReal.parse(value), undefined)
  // PostgreSQL refuses numbers that underflow.
  for (const value of [1e-50, -1e-60, -0]) assert.equal(JSON.stringify(optionalReal.parse(value)), '0')
})

test('a share is a number from 0 to 1', () => {
  for (const value of [0, 0.5, 1]) assert.equal(optionalShare.parse(value), value)
  for (const value of [null, undefined, -0.1, 1.001, 1e300, Number.POSITIVE_INFINITY, Number.NaN])
    assert.equal(optionalShare.parse(value), undefined)
})

const REPOSITORIES: [registry: string | undefined, repository: string | undefined, normal: string | undefined][] = [
  [undefined, undefined, undefined],
  ['registry.test', undefined, undefined],
  ['registry.test', '/', undefined],
  ['registry.test', 'team/app', 'registry.test/team/app'],
  ['/Registry.TEST/', '/team/app/', 'registry.test/team/app'],
  ['registry.test:5000', 'app', 'registry.test:5000/app'],
  [undefined, 'nginx', 'docker.io/library/nginx'],
  [undefined, 'team/app', 'docker.io/team/app'],
  ['', 'nginx', 'docker.io/library/nginx'],
  ['docker.io', 'nginx', 'docker.io/library/nginx'],
  ['docker.io', 'library/nginx', 'docker.io/library/nginx'],
  ['index.docker.io', 'team/app', 'docker.io/team/app'],
  ['Registry-1.Docker.IO', 'nginx', 'docker.io/library/nginx'],
  [undefined, 'docker.io/nginx', 'docker.io/library/nginx'],
  [undefined, 'index.docker.io/library/nginx', 'docker.io/library/nginx'],
  [undefined, 'GHCR.io/Team/app', 'ghcr.io/Team/app'],
  [undefined, 'host:5000/app', 'host:5000/app'],
  [undefined, 'localhost/app', 'localhost/app'],
  [undefined, 'host/app', 'docker.io/host/app'],
  // A dot in the only segment does not make it a registry.
  [undefined, 'my.app', 'docker.io/library/my.app'],
  ['registry.test', 'other.test/app', 'registry.test/other.test/app'],
]
test('a repository has the name of the inventory', () => {
  for (const [registry, repository, normal] of REPOSITORIES)
    assert.equal(normalRepository(registry, repository), normal, `${registry} ${repository}`)
})
