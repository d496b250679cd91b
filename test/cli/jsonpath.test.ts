import assert from 'node:assert/strict'
import test from 'node:test'
import { Failure } from '../../wrangler-free-deploy/cli/failure.ts'
import { jsonPath } from '../../wrangler-free-deploy/cli/output/jsonpath.ts'

/** The example of https://kubernetes.io/docs/reference/kubectl/jsonpath/, in short. */
const ANSWER = {
  kind: 'List',
  items: [
    { kind: 'None', metadata: { name: '127.0.0.1', labels: { 'kubernetes.io/hostname': 'a' } }, capacity: { cpu: 4 } },
    { kind: 'None', metadata: { name: '127.0.0.2' }, capacity: { cpu: 8 }, ready: true, none: null },
  ],
  users: [
    { name: 'myself', user: {} },
    { name: 'e2e', user: { username: 'admin', password: 'secret' } },
  ],
}

for (const [template, expected] of [
  ['{.kind}', 'List'],
  ['.kind', 'List'],
  ['kind', 'List'],
  ['the {.kind} has {.items[*].capacity.cpu} cores', 'the List has 4 8 cores'],
  ["{['kind']}", 'List'],
  ["{.items[0].metadata.labels['kubernetes.io/hostname']}", 'a'],
  ['{.items[0].metadata.labels.kubernetes\\.io/hostname}', 'a'],
  ['{.users[0].name}', 'myself'],
  ['{.users[-1].name}', 'e2e'],
  ['{.users[0:1].name}|{.users[1:].name}|{.users[:-1].name}', 'myself|e2e|myself'],
  ['{.items[*].metadata.name}', '127.0.0.1 127.0.0.2'],
  ['{..name}', '127.0.0.1 127.0.0.2 myself e2e'],
  ['{.users[?(@.name=="e2e")].user.password}', 'secret'],
  ["{.users[?(@.name != 'e2e')].name}", 'myself'],
  ['{.items[?(@.capacity.cpu>4)].metadata.name}', '127.0.0.2'],
  ['{.items[?(@.capacity.cpu <= 4)].metadata.name}', '127.0.0.1'],
  ['{.items[?(@.ready)].metadata.name}', '127.0.0.2'],
  ['{.items[?(@.ready==true)].metadata.name}', '127.0.0.2'],
  ['{range .items[*]}[{.metadata.name}, {.capacity.cpu}]{"\\n"}{end}', '[127.0.0.1, 4]\n[127.0.0.2, 8]\n'],
  ['{range .items[*]}{range .metadata.labels.*}{@}{end}{.capacity.cpu};{end}', 'a4;8;'],
  ['{range .users[*]}{.name}{"\\t"}{end}', 'myself\te2e\t'],
  ['{.items[*].capacity}', '{"cpu":4} {"cpu":8}'],
  ['{.items[1].none}|{.items[1].ready}', '|true'],
  ['{.nothing.at.all}|{.items[7]}|{.kind.length}', '||'],
  ['{$.kind} {@.kind}', 'List List'],
] as const)
  test(`jsonpath: ${template}`, () => assert.equal(jsonPath(template)(ANSWER), expected))

for (const [template, says] of [
  ['{.kind', 'expected a path'],
  ['{range .items[*]}{.kind}', 'expected {end}'],
  ['{end}', '`end` without `range`'],
  ['{.items[}', 'expected *, a number'],
  ['{.items[?(@.a=="x"]}', 'expected )]'],
  ['{.items[?(@.a==x)]}', 'expected a text in quotes'],
  ['}', 'expected {'],
  ['{}x{', 'expected a path'],
  ['{.a b}', 'expected a path'],
] as const)
  test(`jsonpath refused: ${template}`, () =>
    assert.throws(
      () => jsonPath(template),
      (error: Failure) => error instanceof Failure && error.exitCode === 2 && error.message.includes(says),
    ))

test('jsonpath: members of prototypes are none of the answer', () => {
  assert.equal(jsonPath('{.constructor.name}{.__proto__}{.items.length}')(ANSWER), '')
})

test('jsonpath: a long template of braces is judged at once', () => {
  for (const template of ['{'.repeat(50_000), `{${'.a'.repeat(50_000)}}`, `{.a[${'0'.repeat(50_000)}}`, '{..*}'])
    try {
      jsonPath(template)(ANSWER)
    } catch (error) {
      assert.ok(error instanceof Failure, String(error))
    }
})
