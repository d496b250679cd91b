import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { real, share } from '../../lib/supply-chain/fields.ts'
import { normalRepository } from '../../lib/supply-chain/repository.ts'
import { clean, cleanDistinct, cleanList } from '../../lib/supply-chain/text.ts'

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
  // Halves that what stood between them kept apart do not become a character.
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
  // What is cut ends with no blank either.
  [`${'x'.repeat(63)} yz`, 64, 'x'.repeat(63)],
  ['p'.repeat(2_000), 1024, 'p'.repeat(1024)],
]
test('text is cleaned, trimmed and cut in bytes between characters; of what is empty nothing is left', () => {
  for (const [text, maxBytes, cleaned] of CLEANED)
    assert.equal(clean(text, maxBytes), cleaned, JSON.stringify(text)?.slice(0, 80))
})

const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(' ', '\0', '\n', '\u2028', '\ud800', '\udfff', 'é', '\u{1f600}', 'a', '\u0085', '\ufeff'),
  ),
  maxLength: 60,
})

test('whatever the text: it is within its bytes, has nothing that is dropped, and is left alone the second time', () => {
  fc.assert(
    fc.property(
      fc.oneof(anyText, fc.string({ unit: 'binary', maxLength: 60 })),
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

test('text that fits loses nothing but what is dropped; text that does not is a beginning of it', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 70 }), (text, maxBytes) => {
      const whole = text.replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, '').trim()
      const cleaned = clean(text, maxBytes) ?? ''
      assert.ok(whole.startsWith(cleaned))
      if (Buffer.byteLength(whole) <= maxBytes) assert.equal(cleaned, whole)
      // No more is missing than a character and the blanks before it.
      else
        assert.ok(
          Buffer.byteLength(whole.slice(0, cleaned.length + /^\s*/.exec(whole.slice(cleaned.length))![0].length)) >
            maxBytes - 4,
        )
    }),
    { numRuns: 2_000 },
  )
})

test('of lists the first entries are kept, as sent, then what is empty is left out', () => {
  const list = ['a', ' ', 'b', 'a', 'c\u0000', 'd']
  assert.deepEqual(cleanList(list, 5, 64), ['a', 'b', 'a', 'c'])
  assert.deepEqual(cleanDistinct(list, 5, 64), ['a', 'b', 'c'])
  for (const none of [null, undefined, []]) assert.deepEqual(cleanList(none, 5, 64), [])
})

test('a number is one that a column of single precision holds, or none', () => {
  for (const value of [0, 7.5, 9.8, -1, 3.4e38]) assert.equal(real(value), value)
  for (const value of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY, 1e300, -1e300, 3.5e38])
    assert.equal(real(value), undefined)
  // PostgreSQL refuses what comes to nothing.
  for (const value of [1e-50, -1e-60, -0]) assert.equal(JSON.stringify(real(value)), '0')
})

test('a share of 1 is within 0 and 1', () => {
  for (const value of [0, 0.5, 1]) assert.equal(share(value), value)
  for (const value of [null, undefined, -0.1, 1.001, 1e300, Number.POSITIVE_INFINITY, Number.NaN])
    assert.equal(share(value), undefined)
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
  // A dot in the only segment is no registry.
  [undefined, 'my.app', 'docker.io/library/my.app'],
  ['registry.test', 'other.test/app', 'registry.test/other.test/app'],
]
test('a repository is named as the inventory names it', () => {
  for (const [registry, repository, normal] of REPOSITORIES)
    assert.equal(normalRepository(registry, repository), normal, `${registry} ${repository}`)
})
