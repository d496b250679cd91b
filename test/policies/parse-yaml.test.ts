import assert from 'node:assert/strict'
import test from 'node:test'
import { loadAll } from 'js-yaml'
import { HttpError } from '../../lib/errors.ts'
import { Slice } from '../../lib/event-loop/slices.ts'
import { parseYaml } from '../../lib/policies/parse/yaml.ts'
import { resolvePlain } from '../../lib/policies/parse/yaml-scalars.ts'
import { parsePolicies } from '../../lib/policies/parse.ts'
import { assertEach } from '../support/assert-each.ts'

const read = (text: string) => parseYaml(text, new Slice())
/** Without the missing prototypes. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

async function refusal(text: string): Promise<string> {
  const error = await read(text).then(
    () => assert.fail('not refused'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof HttpError, String(error))
  assert.equal(error.status, 400, error.message)
  return error.message
}

const head = (name: string) =>
  `apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: ${name}}\nspec:\n  podSelector: {}\n`

test('documents without content are skipped and not counted', async () => {
  const text = `# first\n---\n# nothing\n---\n--- # a\n${head('a')}...\n---\n~\n---\n${head('b')}---\n`
  const policies = await parsePolicies(text, 'yaml')
  assert.deepEqual(
    policies.map(({ name, document }) => [name, document]),
    [
      ['a', 1],
      ['b', 2],
    ],
  )
  const bad = `---\n---\n${head('a')}---\n${head('b')}  egres: []\n`
  await assert.rejects(parsePolicies(bad, 'yaml'), /document 2: spec\.egres: unknown field/)
  for (const empty of ['', '\n', '# only a comment', '---\n---\n', '---\nnull\n']) {
    await assert.rejects(parsePolicies(empty, 'yaml'), { status: 400, message: 'expected at least one policy' })
  }
})

test('reads what js-yaml reads', async () => {
  const texts = [
    'a: b\n',
    'a:\n- b\n- c: d\n  e: [f, {g: h}]\n- - i\n',
    'a: |\n  x\n  ---y\n  --- z\nb: >-\n  x\n  y\n',
    "\"a\\tb\": 'it''s'\n",
    'a: "x\n  y"\n',
    '? a\n: b\n',
    'a: &x {b: c}\nd: *x\n',
    'a: &x b\nc: [*x, *x]\n',
    '\ufeffa: b\n',
    'a: b\r\nc: d\r\n---\r\ne: f\r\n',
    'a: ---\n',
    'a: --- b\n---- c: d\n',
    '- a: b\n  c: d\n-\n- 1\n',
    '"\\ud83d\\ude00": é\n',
  ]
  await assertEach(texts, async (text) => assert.deepEqual(plain(await read(text)), plain(loadAll(text))))
})

test('plain scalars as kubectl reads them', async () => {
  const rows: [string, unknown][] = [
    ...['y', 'Y', 'yes', 'YES', 'on', 'On', 'true', 'True'].map((text): [string, unknown] => [text, true]),
    ...['n', 'N', 'no', 'No', 'off', 'OFF', 'false', 'FALSE'].map((text): [string, unknown] => [text, false]),
    ...['', '~', 'null', 'Null', 'NULL'].map((text): [string, unknown] => [text, null]),
    ...['yEs', 'oN', 'nUll', 'a', '1.2.3.4', '10.0.0.0/8', '1-2', '12:30', '0x', '0o8', '1e', '2026-01-01', '-'].map(
      (text): [string, unknown] => [text, text],
    ),
    ['80', 80],
    ['+8', 8],
    ['-8', -8],
    ['1_000', 1000],
    ['010', 8],
    ['0o10', 8],
    ['-0x1F', -31],
    ['0b11', 3],
    ['08', 8],
    ['1e3', 1000],
    ['.5', 0.5],
    ['1.', 1],
    ['-.inf', Number.NEGATIVE_INFINITY],
    ['.INF', Number.POSITIVE_INFINITY],
    ['.nan', Number.NaN],
  ]
  await assertEach(rows, ([text, value]) => assert.deepEqual(resolvePlain(text), value, text))
  assert.deepEqual(plain(await read('[y, "y", \'no\', 1, "1"]')), [[true, 'y', 'no', 1, '1']])
  assert.deepEqual(plain(await read('{yes: a, 1: b, "on": c}')), [{ true: 'a', 1: 'b', on: 'c' }])
})

test('a label that is a word of YAML 1.1 is no string', async () => {
  const labelled = (value: string) =>
    `${head('a').replace('podSelector: {}', `podSelector: {matchLabels: {a: ${value}}}`)}`
  for (const value of ['yes', 'n', '1', 'null']) {
    await assert.rejects(parsePolicies(labelled(value), 'yaml'), /spec\.podSelector\.matchLabels\.a: expected a string/)
  }
  assert.equal((await parsePolicies(labelled('"yes"'), 'yaml')).length, 1)
})

test('what is not supported, with its line', () =>
  assertEach(
    [
      ['a: 1\nb: 2\na: 3', 'document 1: line 3: expected each key once: "a" is there twice'],
      ['a: 1\n---\nb: {c: 1, c: 2}', 'document 2: line 3: expected each key once: "c" is there twice'],
      ['on: 1\ntrue: 2', 'document 1: line 2: expected each key once: "true" is there twice'],
      ['a: !!str b', 'document 1: line 1: tags (!) are not supported'],
      ['\na: !x [b]', 'document 1: line 2: tags (!) are not supported'],
      ['!!map {a: b}', 'document 1: line 1: tags (!) are not supported'],
      ['a: &x {b: c}\nd:\n  <<: *x', 'document 1: line 3: merge keys (<<) are not supported'],
      ['a: &x [*x]', 'document 1: line 1: the alias *x is inside of what it stands for'],
      ['a: *x', 'document 1: line 1: the alias *x has no anchor'],
      ['a: &x b\n---\nc: *x', 'document 2: line 3: the alias *x has no anchor'],
      ['%YAML 1.1\n---\na: b', 'document 1: line 1: directives (%) are not supported'],
      ['[a]: b', 'document 1: line 1: expected a key that is a string'],
      ['{a: b}: c', 'document 1: line 1: expected a key that is a string'],
      ['~: a', 'document 1: line 1: expected a key that is a string'],
      ['a: "\\0"', 'document 1: line 1: U+0000 and half a surrogate pair are not allowed'],
      ['a: "\\ud800"', 'document 1: line 1: U+0000 and half a surrogate pair are not allowed'],
      ['a: b\nc: \0', 'document 1: line 2: invalid YAML: null byte is not allowed in input'],
      ['a: b\n\nc: [', 'document 1: line 3: invalid YAML: unexpected end of the stream within a flow collection'],
      ['a: b\n\tc: d', 'document 1: line 2: invalid YAML: tab characters must not be used in indentation'],
    ] as const,
    async ([text, message]) => assert.equal(await refusal(text), message),
  ))

const MIB = 1024 * 1024
const fill = (text: string, length = MIB) => text.repeat(Math.floor(length / text.length))

function numbered(line: (i: number) => string): string {
  const lines: string[] = []
  for (let i = 0, chars = 0; chars < MIB - 100; i++) {
    lines.push(line(i))
    chars += lines.at(-1)!.length
  }
  return lines.join('')
}

/** Nine levels of nine aliases each. */
const laughs = Array.from('abcdefghi', (name, i) => {
  const members = Array(9).fill(i === 0 ? 'x' : `*${'abcdefghi'[i - 1]}`)
  return `${name}: &${name} [${members.join(', ')}]\n`
}).join('')

const HOSTILE: Readonly<Record<string, string>> = {
  laughs,
  'aliases of one text': `a: &a b\nb: [${fill('*a,', MIB - 20)}]`,
  'aliases of a long list': `a: &a [${fill('b,', 100_000)}]\nb: [${fill('*a,', 100_000)}]`,
  'different keys': numbered((i) => `k${i}: 1\n`),
  'different keys of a flow': `{${numbered((i) => `k${i},`)}}`,
  brackets: fill('['),
  braces: fill('{a: '),
  dashes: fill('- '),
  'deep lines': Array.from({ length: 1000 }, (_, i) => `${' '.repeat(i)}a:\n`).join(''),
  'empty lists': `[${fill('[],')}]`,
  pairs: `[${fill('a: ,')}]`,
  'question marks': fill('?\n'),
  'empty documents': fill('---\n'),
  documents: fill('--- a\n'),
  'line ends': `${fill('\n')}@`,
  'byte order marks': fill('\ufeff\n'),
  directives: numbered((i) => `%TAG !a${i}! b\n`),
  tags: `a: ${fill('!a ')}`,
  'an open quote': `"${fill('a\n')}`,
  'a long tag': `a: !<${fill('%41')}> b`,
  'escapes of U+0000': `"${fill('\\0')}"`,
}

test('hostile text is refused', () =>
  assertEach(Object.entries(HOSTILE), async ([name, text]) => assert.ok(await refusal(text), name)))

test('aliases count in full, up to a limit', async () => {
  const repeated = (times: number) => `a: &a [${'b,'.repeat(1000)}]\nb: [${'*a,'.repeat(times)}]\n`
  const [value] = (await read(repeated(200))) as { a: unknown; b: unknown[] }[]
  assert.equal(value!.b.length, 200)
  assert.match(await refusal(repeated(250)), /expected at most 250000 values, repeated ones included/)
})

test('a megabyte of policies as kubectl prints them is read', async () => {
  const blocks = Array.from({ length: 60 }, (_, i) => `    - ipBlock:\n        cidr: 10.0.${i}.0/24\n`).join('')
  const one = `${head('a')}  egress:\n  - to:\n${blocks}`
  const items = `- ${one.trimEnd().replaceAll('\n', '\n  ')}\n`
  const list = `apiVersion: v1\nkind: List\nitems:\n${fill(items, MIB - 100)}`
  assert.ok((await parsePolicies(list, 'yaml')).length > 300)
  const stream = fill(`${one}---\n`)
  assert.ok((await parsePolicies(stream, 'yaml')).length > 300)
})
