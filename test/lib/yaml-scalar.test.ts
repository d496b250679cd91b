import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { load } from 'js-yaml'
import { yamlScalar } from '../../lib/text/yaml-scalar.ts'
import { anyCharacter } from '../support/any-character.ts'
import { depth } from '../support/depth.ts'

const SPECIAL = [
  ...['', ' ', 'y', 'N', 'yes', 'OFF', 'true', 'Null', '~', '0', '017', '1e3', 'e1', 'E5', 'e-1', '0x1f', '1_0', '.5'],
  ...['2001-01-01', '12:30', '-', '- a', '---', '# a', 'a #b', 'a: b', 'a:', '{a}', '[a]', '*a', '&a', '!a', '|', '>'],
  ...["'", '"', '\\', 'a\nb', 'a\r\nb', 'a\tb', 'a\u0085b', 'a\u2028b', '\ufeffa', 'a\u0000b', '\u{e0001}', '\ud800'],
]

test('any text is one line that parsers read as that text', () => {
  const check = (text: string) => {
    const scalar = yamlScalar(text)
    assert.doesNotMatch(scalar, /[\p{Cc}\u2028\u2029\ufeff]/u)
    assert.deepEqual(load(`- name: ${scalar}\n`), [{ name: text }], JSON.stringify(text))
  }
  for (const text of SPECIAL) check(text)
  fc.assert(fc.property(fc.string({ unit: anyCharacter }), check), { numRuns: depth(200, 5_000) })
})

test('only texts that no parser takes for anything else are plain', () => {
  for (const text of SPECIAL) assert.match(yamlScalar(text), /^"/, JSON.stringify(text))
  for (const text of ['app', 'node-exporter', 'Web2', 'never', 'e', 'e-x', 'exporter'])
    assert.equal(yamlScalar(text), text)
})
