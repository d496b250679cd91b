import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { load } from 'js-yaml'
import { parse } from 'yaml'
import { yamlOf } from '../../wrangler-free-deploy/cli/output/yaml.ts'
import { anyCharacter } from '../support/any-character.ts'

test('yaml: an answer as it is read', () => {
  const answer = {
    items: [
      { name: 'api', tags: ['v1', '1.0'], time: '2026-01-01T00:00:00', digest: 'sha256:ab', none: null, empty: [] },
      { name: 'no', text: 'a: b', inner: { one: 1.5, yes: true }, nested: [[1, [2]], {}] },
    ],
    'app.kubernetes.io/name': '',
  }
  assert.equal(
    yamlOf(answer),
    `items:
  - name: api
    tags:
      - v1
      - "1.0"
    time: "2026-01-01T00:00:00"
    digest: sha256:ab
    none: null
    empty: []
  - name: "no"
    text: "a: b"
    inner:
      one: 1.5
      "yes": true
    nested:
      - - 1
        - - 2
      - {}
app.kubernetes.io/name: ""
`,
  )
  assert.equal(yamlOf([]), '[]\n')
  assert.equal(yamlOf([1, 'x']), '- 1\n- x\n')
})

const WORDS = ['true', 'No', 'null', '~', '.inf', '.nan', '0x1', '1e3', '12:30:45', '2026-01-01', '=', '<<', '-', '- a']
const text = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    ...WORDS,
    'a:',
    ': ',
    '#',
    'a #b',
    '%',
    '@',
    '`',
    '&a',
    '*a',
    '!t',
    '|',
    '>',
    '?',
    "'",
    '"',
    '\\',
    '\n',
    '\u0085',
  ),
)

test('yaml: readers of both versions get the same value', () => {
  fc.assert(
    fc.property(
      fc.object({
        key: text,
        values: [
          text,
          fc.integer(),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
          fc.boolean(),
          fc.constant(null),
        ],
        maxDepth: 4,
      }),
      (drawn) => {
        const value = JSON.parse(JSON.stringify(drawn))
        const written = yamlOf(value)
        assert.doesNotMatch(written, /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u)
        assert.deepEqual(load(written), value)
        assert.deepEqual(parse(written), value)
      },
    ),
    { numRuns: 300 },
  )
})
