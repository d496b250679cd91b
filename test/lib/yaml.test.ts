import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { oneLine } from '../../lib/text/one-line.ts'
import { comment, type Manifest, quoted, yamlOf } from '../../lib/text/yaml.ts'
import { anyCharacter } from '../support/any-character.ts'
import { readPolicies } from '../support/policies.ts'
import { RUNS } from '../support/runs.ts'

/** Text that parsers read differently, that ends a line, or that cannot stand unquoted. */
const ODD = [
  ...[
    '',
    ' ',
    'y',
    'n',
    'Y',
    'N',
    'yes',
    'no',
    'on',
    'off',
    'On',
    'OFF',
    'true',
    'False',
    'TRUE',
    'null',
    'Null',
    '~',
    '=',
    '<<',
    '-',
    '--',
  ],
  ...[
    '---',
    '...',
    '0',
    '-0',
    '+1',
    '017',
    '0o17',
    '0x1f',
    '0b11',
    '1_000',
    '1e3',
    'e1',
    'E-5',
    'e+10',
    '1.',
    '.5',
    '685.230_15e+03',
    '._',
    '0x_',
    '_1',
    '08',
  ],
  ...[
    '.inf',
    '-.INF',
    '.NaN',
    '190:20:30',
    '12:30:45',
    '1:20',
    '2001-01-01',
    '2001-12-14t21:59:43.10-05:00',
    '2001-12-14 21:59:43.10 -5',
  ],
  ...[
    ' a',
    'a ',
    '\ta',
    'a\t',
    'a\tb',
    '#',
    '# a',
    'a #b',
    'a#b',
    'a: b',
    'a:',
    ':a',
    ': a',
    '- a',
    '-a',
    '? a',
    '?',
    '&a',
    '*a',
    '!a',
    '!!str a',
  ],
  ...[
    '|',
    '>',
    '| a',
    '%a',
    '@a',
    '`a',
    '"',
    "'",
    '"a"',
    "'a'",
    'a"b',
    "a'b",
    '\\',
    '\\n',
    '[a',
    '{a',
    'a]',
    ',',
    'a, b',
    '{}',
    '[]',
  ],
  ...[
    '\0',
    '\x07',
    '\x1b[0m',
    '\x7f',
    '\u0085',
    'a\u0085b',
    '\u009f',
    '\u00a0',
    'a\u2028b',
    '\u2029',
    '\ufeff',
    '\ufeffa',
    'a\u202eb',
    '\u2066',
    '\u200f',
  ],
  ...['\ufffe', '\uffff', '\ud800', 'a\udc00', '\u{1f600}', '\u{10ffff}', '\u3000', 'é', 'e\u0301'],
  ...[
    'a\nb',
    'a\nb\n',
    'a\n\nb\n\n',
    '\n',
    '\n\na',
    ' a\nb',
    'a \nb',
    'a\n b\n',
    'a\n---\nb\n',
    '---\na',
    'a\n# b',
    'a\n...\n',
    '\ta\nb',
    'a\r\nb\r\n',
    'a\rb',
  ],
  ...[
    '-----BEGIN PUBLIC KEY-----\nabc=\n-----END PUBLIC KEY-----\n',
    '-----BEGIN PUBLIC KEY-----\r\nabc=\r\n-----END PUBLIC KEY-----',
    'x'.repeat(5_000),
  ],
  ...[
    `${'word '.repeat(400)}`,
    'https://ci.test/a?b=c&d#e',
    'a@refs/tags/v1',
    'sha256:abc',
    '^https://x\\.y/.+$',
    '!has(images.a) || b',
  ],
]

const manifest = (value: string): Manifest => ({
  apiVersion: 'a/v1',
  kind: 'Kind',
  metadata: { name: value, annotations: { 'x.y/z': value } },
  spec: {
    plain: value,
    list: [value, value],
    deep: [{ a: value, b: { c: [{ d: value }] } }],
    flag: false,
    empty: [''],
  },
})

const textOf = (one: Manifest) => [...yamlOf(one)].join('')

/** Asserts that every parser reads what was written. */
function assertRead(one: Manifest): void {
  const text = textOf(one)
  assert.deepEqual(readPolicies(text), [one], text)
  assert.ok(text.endsWith('\n'))
}

test('unusual texts are read back unchanged by parsers of YAML 1.1 and 1.2', () => {
  for (const value of ODD) assertRead(manifest(value))
})

test('unusual texts in lists that are written in parts are read back unchanged', () => {
  const items = Array.from({ length: 131 }, (_, i) => ({ name: `a${i}`, value: ODD[i % ODD.length]! }))
  assertRead({ ...manifest('x'), spec: { before: 'x', items, texts: ODD, after: 'y' } })
  // Each text is also the last of a part.
  for (const value of ODD.slice(0, -6))
    assertRead({ ...manifest('x'), spec: { before: value, items: Array(51).fill({ value }), after: value } })
})

test('long texts are read back unchanged, alone and in lists', () => {
  const long = 'word: # '.repeat(20_000)
  assertRead({ ...manifest('x'), spec: { long, list: [long, 'x', long, long], deep: { a: [long] }, last: [] } })
})

test('any texts are read back unchanged', () => {
  const word = fc.constantFrom(...ODD)
  const text = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: 'grapheme' }),
    word,
    fc.array(word).map((all) => all.join('')),
    fc.array(word).map((all) => all.join('\n')),
  )
  fc.assert(
    fc.property(text, (value) => assertRead(manifest(value))),
    { numRuns: RUNS },
  )
})

test('documents follow one another', () => {
  const all = ODD.map(manifest)
  assert.deepEqual(readPolicies(all.map(textOf).join('---\n')), all)
})

test('fixed words of a policy are not quoted, and a PEM key is written as it is', () => {
  const text = textOf({
    apiVersion: 'policies.kyverno.io/v1beta1',
    kind: 'Kind',
    metadata: { name: 'n' },
    spec: { glob: 'r.test/a:*', key: { data: '-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----\n' } },
  })
  assert.equal(
    text,
    `apiVersion: policies.kyverno.io/v1beta1
kind: Kind
metadata:
  name: 'n'
spec:
  glob: r.test/a:*
  key:
    data: |
      -----BEGIN PUBLIC KEY-----
      abc
      -----END PUBLIC KEY-----
`,
  )
})

test('a comment stays one line, whatever it contains', () => {
  for (const value of ODD) {
    const text = comment(`identity: ${value}`)
    assert.match(
      text,
      /^# identity: [^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\ufffe\uffff]*\n$/u,
    )
    assert.deepEqual(readPolicies(`${text}a: 1\n`), [{ a: 1 }], text)
  }
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: anyCharacter }), fc.constantFrom(...ODD)), (value) => {
      const text = comment(value)
      assert.deepEqual([text.split(/[\n\r\u0085\u2028\u2029]/).length, text.slice(0, 2)], [2, '# '])
      assert.deepEqual(readPolicies(`${text}a: 1\n`), [{ a: 1 }])
    }),
    { numRuns: RUNS },
  )
})

test('control characters in a comment become blanks, and other characters are unchanged', () => {
  assert.equal(oneLine('a\nb\u2028c\u202ed\ufeffe\ud800f\0g'), 'a b c d e f g')
  assert.equal(oneLine('é \u{1f600} # "x": y'), 'é \u{1f600} # "x": y')
})

test('a value in a comment is quoted where it could be misread', () => {
  assert.deepEqual(['https://a.test/b@c', 'a b', 'a"b', 'a (b)'].map(quoted), [
    'https://a.test/b@c',
    '"a b"',
    '"a\\"b"',
    '"a (b)"',
  ])
  // Characters that look like a blank, or like nothing.
  for (const one of ['\u200b', '\u00a0', '\u2028', '\u2800', '\u3164', '\u115f', '\u{e0020}', '\ufe0f', '\n'])
    assert.match(quoted(`a${one}verified${one}b`), /^"a( |\\u00a0)verified( |\\u00a0)b"$/, JSON.stringify(one))
  assert.deepEqual(['', '\u200b'].map(quoted), ['""', '" "'])
  // Characters that look like others: a Cyrillic o, full-width letters.
  assert.deepEqual(['g\u043eogle', '\uff43i', '\u{1d484}'].map(quoted), [
    '"g\\u043eogle"',
    '"\\uff43i"',
    '"\\ud835\\udc84"',
  ])
})
