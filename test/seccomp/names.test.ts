import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import fc from 'fast-check'
import { ExportQuery, isDnsName, suggestedName } from '../../lib/seccomp/index.ts'
import { anyCharacter } from '../support/any-character.ts'

const suggested = (kind: string, name: string) => suggestedName({ namespace: 'shop', kind, name })

test('the suggested name is kind and name, with hyphens for characters that names of resources cannot have', () => {
  for (const [kind, name, expected] of [
    ['Deployment', 'web', 'deployment-web'],
    ['StatefulSet', 'My_App.v2', 'statefulset-my-app.v2'],
    ['.Job', 'a-', 'job-a'],
    ['Job', 'a--b', 'job-a--b'],
    ['Job', '\u{1f600}x', 'job--x'],
    ['Job', 'a/b', 'job-a-b'],
    ['-', '.', 'seccomp-profile'],
    ['\u00e9', '\u00e9', 'seccomp-profile'],
    ['Job', 'x'.repeat(253), `job-${'x'.repeat(249)}`],
    ['Job', `${'x'.repeat(248)}-y`, `job-${'x'.repeat(248)}`],
  ] as const)
    assert.equal(suggested(kind, name), expected)
})

test('the suggested name has no empty label, and none that begins or ends with a hyphen', () => {
  for (const [name, expected] of [
    ['a..b', 'job-a.b'],
    ['a.-b', 'job-a.b'],
    ['a-.b', 'job-a.b'],
    ['a-.-.b', 'job-a.b'],
    ['a.\u00e9.b', 'job-a.b'],
  ] as const)
    assert.equal(suggested('Job', name), expected)
})

test('with any workload name, an export accepts the suggested name, which follows the rule unless the export would refuse that', () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'B', '1', '-', '.', '_', '/', '\u0130', '\u{1f600}'), maxLength: 12 }),
    fc.string({ unit: fc.constantFrom('a', '-', '.'), minLength: 240, maxLength: 253 }),
    fc.string({ unit: anyCharacter, maxLength: 20 }),
  )
  fc.assert(
    fc.property(text, text, (kind, name) => {
      const one = suggested(kind, name)
      assert.ok(isDnsName(one), one)
      const plain = `${kind}-${name}`
        .toLowerCase()
        .replace(/[^a-z0-9.-]/gu, '-')
        .slice(0, 253)
      if (isDnsName(plain)) assert.equal(one, plain)
    }),
    { numRuns: 1_000 },
  )
})

test('the document describes how the name of an export is made', () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
  const { parameters } = paths['/seccomp/profiles/{namespace}/{kind}/{name}/export'].get
  const { schema } = parameters.find((one: { name: string; in: string }) => one.name === 'name' && one.in === 'query')
  for (const name of ['', ' ', 'a', 'a.b-c', 'a..b', 'a.-b', '-a', 'a.', 'A', 'a'.repeat(253), 'a'.repeat(254)]) {
    const isSaid = new RegExp(schema.pattern, 'u').test(name) && name.length <= schema.maxLength
    assert.equal(ExportQuery.safeParse({ name }).success, isSaid, name)
  }
})
