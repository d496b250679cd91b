import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type Capture, LEVELS } from '../../lib/seccomp/capture.ts'
import { jsonOf, yamlTextOf } from '../../lib/seccomp/export.ts'
import { ACTIONS, type ExportOptions } from '../../lib/seccomp/export-options.ts'
import { editedNames } from '../../lib/seccomp/manifest.ts'
import { allowedOf, isSyscallName } from '../../lib/seccomp/names.ts'
import { anyCharacter } from '../support/any-character.ts'
import { readPolicies } from '../support/policies.ts'
import { RUNS } from '../support/runs.ts'

/** Texts that end a line, are words of YAML, numbers of some of its versions, or marks of its grammar. */
const ODD = [
  ...[
    'on',
    'off',
    'yes',
    'no',
    'y',
    'n',
    'true',
    'null',
    '~',
    '',
    ' ',
    'e1',
    'E-5',
    '1e3',
    '0x1f',
    '017',
    '0o17',
    '0b1',
    '1_000',
    '.inf',
    '12:30',
  ],
  ...[
    '2001-01-01',
    '435',
    'a\nspec: {}',
    'a\r\n---\nb: 1',
    '\u0085',
    'a\u2028b',
    '\u2029---',
    '\0',
    '\x1b[0m',
    '\u202e',
    '\ufeff',
    '\ud800',
  ],
  ...[
    '# a',
    'a #b',
    'a: b',
    '- a',
    '? a',
    '&a',
    '*a',
    '!!str a',
    '%a',
    '@a',
    '`a',
    '"',
    "'",
    '{',
    '[',
    '|',
    '>',
    '...',
    '---',
    '\t',
    'a\n',
  ],
  ...['x'.repeat(253), 'read', 'openat', 'Deployment', 'web', 'é', '\u{1f600}', '__proto__', 'constructor'],
]
const text = fc.oneof(
  fc.constantFrom(...ODD),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
)
const syscall = fc.stringMatching(/^[a-z][a-z0-9_]{0,5}$/)
const sorted = (names: readonly string[]) => [...new Set(names)].sort()

const capture: fc.Arbitrary<Capture> = fc
  .tuple(fc.array(fc.record({ name: text, level: fc.constantFrom(...LEVELS) }), { maxLength: 8 }), fc.nat(3))
  .map(([pods, more]) => {
    const worst = Math.max(-1, ...pods.map(({ level }) => LEVELS.indexOf(level)))
    const incomplete = pods.filter(({ level }) => level !== 'full').length
    return {
      level: LEVELS[worst] ?? 'unknown',
      complete: pods.length > 0 && incomplete === 0,
      pods,
      more: pods.length > 0 ? more : 0,
      incomplete,
    }
  })

const options: fc.Arbitrary<ExportOptions> = fc.record({
  name: fc.option(fc.constantFrom('a', 'on', '1e3', 'true', '0x1f', 'a.b-c', '017')),
  defaultAction: fc.constantFrom(...ACTIONS),
  format: fc.constant('yaml' as const),
  acknowledgePartial: fc.boolean(),
  add: fc.array(syscall, { maxLength: 4 }),
  remove: fc.array(syscall, { maxLength: 4 }),
})

const observed = fc.record({
  names: fc.array(fc.oneof(text, syscall), { maxLength: 8 }).map(sorted),
  arches: fc
    .array(fc.oneof(text, fc.constantFrom('x86_64', 'aarch64', '__proto__', 'constructor')), { maxLength: 4 })
    .map(sorted),
  hash: fc.constant('0000000000000000'),
  resetAt: fc.constant(null),
  capture,
})
const made = fc.tuple(
  fc.record({ namespace: text, kind: text, name: text }),
  observed,
  options,
  fc.constantFrom('kguardian.dev', 'on', '1.5'),
)

test('with any names every YAML parser reads the same resource as JSON', () => {
  fc.assert(
    fc.property(made, (one) => {
      // Half a surrogate pair is not text in either notation.
      fc.pre(JSON.stringify(one).isWellFormed() && !/\\ud[89a-f]/i.test(JSON.stringify(one)))
      assert.deepEqual(readPolicies(yamlTextOf(...one)), [JSON.parse(jsonOf(...one))])
    }),
    { numRuns: RUNS },
  )
})

test('with any names comments stay comments', () => {
  fc.assert(
    fc.property(made, (one) => {
      const [, { names, capture }, { add, remove }] = one
      const all = yamlTextOf(...one)
      const header = all.slice(0, all.indexOf('\napiVersion:') + 1)
      const lines = header.slice(0, -1).split(/\n|\r|\u0085|\u2028|\u2029/)
      assert.ok(
        lines.every((line) => /^# [^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]*$/u.test(line)),
        header,
      )
      const opening = (start: string) => lines.filter((line) => line.startsWith(`# ${start}`)).length
      assert.deepEqual(
        [
          opening('Workload: '),
          opening('Observed: '),
          opening('Capture: '),
          opening('Edits: '),
          opening('WARNING: '),
          opening('LEFT OUT'),
        ],
        [1, 1, 1, add.length + remove.length > 0 ? 1 : 0, capture.complete ? 0 : 3, names.every(isSyscallName) ? 0 : 1],
      )
    }),
    { numRuns: RUNS },
  )
})

test('allowed and left-out names together are all observed names', () => {
  fc.assert(
    fc.property(observed, ({ names }) => {
      const { names: allowed, leftOut } = allowedOf(names)
      assert.deepEqual([...allowed, ...leftOut].sort(), [...names].sort())
      assert.ok(allowed.every((name) => /^[a-z][a-z0-9_]{0,63}$/.test(name)))
      assert.ok(leftOut.every((name) => !/^[a-z][a-z0-9_]{0,63}$/.test(name)))
    }),
  )
  assert.deepEqual(allowedOf(['a'.repeat(64), 'a'.repeat(65), 'a\n', '435']), {
    names: ['a'.repeat(64)],
    leftOut: ['a'.repeat(65), 'a\n', '435'],
  })
})

test('edits are set operations: their order and repetition do not matter', () => {
  fc.assert(
    fc.property(fc.array(syscall).map(sorted), fc.array(syscall), fc.array(syscall), (names, add, remove) => {
      const edited = editedNames(names, { add, remove })
      assert.deepEqual(
        edited,
        sorted([...names, ...add]).filter((one) => !remove.includes(one)),
      )
      assert.deepEqual(editedNames(edited, { add: [], remove }), edited)
    }),
  )
})
