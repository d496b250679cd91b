import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hunksOf, type LineDiff, lineDiff } from '../../../wrangler-free-deploy/console/pages/policy/text/line-diff.ts'
import { faultOf, lineFinder, lineOfFault } from '../../../wrangler-free-deploy/console/pages/policy/text/place.ts'
import { remarksOf } from '../../../wrangler-free-deploy/console/pages/policy/text/remarks.ts'

const SIGNS = { same: ' ', gone: '-', new: '+' }
const shown = ({ rows }: LineDiff) => rows.map(({ kind, text }) => `${SIGNS[kind]}${text}`)

describe('the difference by lines', () => {
  it('has no change between equal texts', () => {
    const diff = lineDiff('a\nb\n', 'a\nb\n')
    assert.deepEqual([diff.gone, diff.added, diff.isExact], [0, 0, true])
    assert.deepEqual(shown(diff), [' a', ' b', ' '])
  })

  it('finds changed, added and removed lines, with their numbers in both texts', () => {
    const diff = lineDiff('a\nb\nc\nd\ne', 'a\nB\nc\nd\nx\ne\nf')
    assert.deepEqual(shown(diff), [' a', '-b', '+B', ' c', ' d', '+x', ' e', '+f'])
    assert.deepEqual(diff.rows[2], { kind: 'new', oldLine: null, newLine: 2, text: 'B' })
    assert.deepEqual(diff.rows[6], { kind: 'same', oldLine: 5, newLine: 6, text: 'e' })
  })

  it('is as short as possible, and contains both texts', () => {
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return Math.floor((seed / 2 ** 31) * below)
    }
    for (let i = 0; i < 500; i++) {
      const [before, after] = [random(9), random(9)].map((length) =>
        Array.from({ length }, () => 'abc'[random(3)]).join('\n'),
      ) as [string, string]
      const { rows, gone, added } = lineDiff(before, after)
      const side = (left: string) => rows.filter(({ kind }) => kind !== left).map(({ text }) => text)
      assert.equal(side('new').join('\n'), before)
      assert.equal(side('gone').join('\n'), after)
      assert.equal(gone + added, distance(before.split('\n'), after.split('\n')), `${before} -> ${after}`)
    }
  })

  it('handles Windows line endings', () => {
    assert.equal(lineDiff('a\r\nb', 'a\nb').gone, 0)
  })

  it('gives up on texts that have little in common, in bounded time', () => {
    const lines = (word: string) => Array.from({ length: 20_000 }, (_, i) => `${word} ${i}`).join('\n')
    const startedAt = performance.now()
    const diff = lineDiff(`same\n${lines('old')}\nsame`, `same\n${lines('new')}\nsame`)
    assert.equal(diff.isExact, false)
    assert.deepEqual([diff.gone, diff.added], [20_000, 20_000])
    assert.ok(performance.now() - startedAt < 2_000)
  })

  it('shows the lines around changes, and counts the rest', () => {
    const before = Array.from({ length: 20 }, (_, i) => `${i}`)
    const after = before.with(10, 'x')
    const hunks = hunksOf(lineDiff(before.join('\n'), after.join('\n')).rows, 2)
    assert.deepEqual(
      hunks.map((one) => ('skipped' in one ? one.skipped : `${SIGNS[one.kind]}${one.text}`)),
      [8, ' 8', ' 9', '-10', '+x', ' 11', ' 12', 7],
    )
  })
})

/** The length of a shortest edit script, computed from the longest common subsequence. */
function distance(old: readonly string[], now: readonly string[]): number {
  const table = Array.from({ length: old.length + 1 }, () => new Array<number>(now.length + 1).fill(0))
  for (let x = 1; x <= old.length; x++)
    for (let y = 1; y <= now.length; y++)
      table[x]![y] =
        old[x - 1] === now[y - 1] ? table[x - 1]![y - 1]! + 1 : Math.max(table[x - 1]![y]!, table[x]![y - 1]!)
  return old.length + now.length - 2 * table[old.length]![now.length]!
}

const TEXT = `# A comment: of nobody
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: api
  annotations:
    'a/b': "c"
spec:
  podSelector: {matchLabels: {app: api}}
  ingress:
    - from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: web
        - ipBlock:
            cidr: '10.0.0.0/8'
      ports:
        - protocol: TCP
          port: 8080
    -
      ports:
      - port: 53
        protocol: UDP
---
# Nothing but a comment: not a document.
---
null
--- # The second one.
kind: List
items:
- kind: NetworkPolicy
  spec:
    egress: []
- spec: {}
`
const LINES = TEXT.split('\n')
const lineOf = lineFinder(TEXT)
const lineText = (document: number, path: string) => LINES[(lineOf(document, path) ?? 0) - 1]?.trim()

describe('the line of a path', () => {
  for (const [document, path, line] of [
    [1, '', 'apiVersion: networking.k8s.io/v1'],
    [1, 'kind', 'kind: NetworkPolicy'],
    [1, 'metadata.annotations["a/b"]', `'a/b': "c"`],
    [1, 'spec.ingress[0]', '- from:'],
    [1, 'spec.ingress[0].from[0].podSelector.matchLabels["app.kubernetes.io/name"]', 'app.kubernetes.io/name: web'],
    [1, 'spec.ingress[0].from[1].ipBlock.cidr', `cidr: '10.0.0.0/8'`],
    [1, 'spec.ingress[0].ports[0].port', 'port: 8080'],
    [1, 'spec.ingress[1].ports[0].port', '- port: 53'],
    [1, 'spec.ingress[1].ports[0].protocol', 'protocol: UDP'],
    [1, 'spec.podSelector.matchLabels.app', 'podSelector: {matchLabels: {app: api}}'],
    [1, 'spec.ingress[7].ports', 'ingress:'],
    [2, 'items[0].spec.egress', 'egress: []'],
    [2, 'items[1].spec', '- spec: {}'],
  ] as const)
    it(`${document}: ${path || 'the document'}`, () => assert.equal(lineText(document, path), line))

  it('is null if there is no such document', () => assert.equal(lineOf(3, 'spec'), null))
})

describe('a refusal of the broker', () => {
  it('names a line', () => {
    const fault = faultOf('document 1: line 3: invalid YAML: bad indentation')
    assert.deepEqual(fault, { document: 1, line: 3, path: null, rule: 'invalid YAML: bad indentation' })
    assert.equal(lineOfFault(TEXT, fault), 3)
    assert.equal(lineOfFault('a', fault), 1)
  })

  it('names a field', () => {
    const fault = faultOf('document 1: spec.ingress[0].ports[0].port: expected a port, 1 to 65535')
    assert.equal(fault.path, 'spec.ingress[0].ports[0].port')
    assert.equal(fault.rule, 'expected a port, 1 to 65535')
    assert.equal(LINES[lineOfFault(TEXT, fault)! - 1]!.trim(), 'port: 8080')
  })

  it('names a quoted field', () => {
    const { path } = faultOf('document 1: metadata.annotations["a/\\"b: c"]: expected a string')
    assert.equal(path, 'metadata.annotations["a/\\"b: c"]')
  })

  it('names a document', () => {
    const fault = faultOf('document 2: expected spec or specs')
    assert.deepEqual([fault.path, fault.rule], [null, 'expected spec or specs'])
    assert.equal(LINES[lineOfFault(TEXT, fault)! - 1], 'kind: List')
  })

  it('names no place', () => {
    const fault = faultOf('expected at least one policy')
    assert.deepEqual(fault, { document: null, line: null, path: null, rule: 'expected at least one policy' })
    assert.equal(lineOfFault(TEXT, fault), null)
  })
})

describe('remarks in comments', () => {
  it('are found with their kind and line', () => {
    const text = [
      '# LEFT OUT, and cut off by this policy: orders/Pod/x',
      'kind: NetworkPolicy',
      '---',
      '# Network policy of the connections that were observed.',
      '# NOTE: LEFT OUT: egress to 10.0.0.1',
      '# NOTE: 30 external addresses became 4 networks',
      '# WARNING: a node is silent.',
      '# NOTE: dropped, so not allowed: shop/Deployment/web to 10.0.0.2 on "443"/"TCP"',
      '# NOTE: dropped at times, but allowed: shop/Deployment/web to 10.0.0.3 on "443"/"TCP"',
      '# identity: issuer https://a, subject b',
      '# not covered: registry/x (unsigned)',
      '# # CAVEAT: agents do not report volumes',
      '  # NOTE: not at the beginning of a line',
    ].join('\n')
    assert.deepEqual(
      remarksOf(text).map(({ kind, line, text }) => [kind, line, text]),
      [
        ['leftOut', 1, 'LEFT OUT, and cut off by this policy: orders/Pod/x'],
        ['leftOut', 5, 'LEFT OUT: egress to 10.0.0.1'],
        ['note', 6, '30 external addresses became 4 networks'],
        ['warning', 7, 'a node is silent.'],
        ['leftOut', 8, 'dropped, so not allowed: shop/Deployment/web to 10.0.0.2 on "443"/"TCP"'],
        ['note', 9, 'dropped at times, but allowed: shop/Deployment/web to 10.0.0.3 on "443"/"TCP"'],
        ['identity', 10, 'issuer https://a, subject b'],
        ['notCovered', 11, 'registry/x (unsigned)'],
        ['note', 12, 'agents do not report volumes'],
      ],
    )
  })
})
