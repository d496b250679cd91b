import assert from 'node:assert/strict'
import test from 'node:test'
import { imagesOf, optionText } from '../../../wrangler-free-deploy/console/pages/workload/images.ts'
import { cardsOf, tabOfFinding } from '../../../wrangler-free-deploy/console/pages/workload/overview/facts.ts'
import {
  causeText,
  notEvaluatedText,
  type Profile,
  placeText,
} from '../../../wrangler-free-deploy/console/pages/workload/words.ts'
import { findingsText } from '../../../wrangler-free-deploy/console/pages/workloads/words.ts'
import { verdictWord } from '../../../wrangler-free-deploy/console/parts/finding-words.ts'
import { reasonText } from '../../../wrangler-free-deploy/console/parts/reason-words.ts'

const none = { level: 'none', fraction: null, observedSince: null, note: '' } as const
const side = { peers: 0, external: 0, ports: [] }
const unknown = { status: 'unknown', coverage: none, reasons: [{ code: 'x', message: 'Nothing was seen' }] } as const

/** A profile without any data. */
const BLANK = {
  drift: { items: [], evaluated: [], notEvaluated: [], baselines: { export: null, securityContext: null } },
  dimensions: {
    network: {
      ...unknown,
      ...{ summary: { ingress: side, egress: side }, truncated: false, policy: { audit: null, enforced: null } },
    },
    syscalls: { ...unknown, observed: null, capture: null, cr: null, denials: null },
    podSecurity: { ...unknown, level: null, levelConfidence: null, unevaluatedChecks: [] },
    images: { ...unknown, containers: [], vulnerabilities: null, supplyChain: null },
    compute: { ...unknown, containers: [], truncated: false },
  },
} as unknown as Profile

const cardOf = (profile: Profile, name: string) => cardsOf(profile).find((one) => one.name === name)!

test('an unknown profile has no facts that look good', () => {
  for (const name of ['network', 'syscalls', 'podSecurity', 'compute']) {
    const { facts, state, reasons } = cardOf(BLANK, name)
    assert.deepEqual([facts, state, reasons], [[], 'unknown', ['Nothing was seen']], name)
  }
  const { facts } = cardOf(BLANK, 'images')
  assert.deepEqual(facts, [
    '0 containers, 0 running images',
    'vulnerabilities are not known: no report answers for a running image',
  ])
})

test('the absence of drift is good only if every check was evaluated', () => {
  assert.deepEqual([cardOf(BLANK, 'drift').state, cardOf(BLANK, 'drift').tone], ['none', 'good'])
  const notEvaluated = [{ type: 'unshippedExecutable', container: 'web', reason: 'no_inventory' }] as const
  const drift = cardOf({ ...BLANK, drift: { ...BLANK.drift, notEvaluated: [...notEvaluated] } }, 'drift')
  assert.deepEqual([drift.state, drift.tone], ['unknown', 'plain'])
  assert.match(drift.reasons[0]!, /no agent has ever watched it$/)
})

test('findings lead to the tab with their rows', () => {
  assert.equal(tabOfFinding({ dimension: 'images', id: 'images.vulnerabilities.high' }), 'vulnerabilities')
  assert.equal(tabOfFinding({ dimension: 'images', id: 'images.signature' }), 'trust')
  assert.equal(tabOfFinding({ dimension: 'drift', id: 'drift.unshippedExecutable/web' }), 'runtime')
  assert.equal(tabOfFinding({ dimension: 'podSecurity', id: 'podSecurity.privileged/web' }), '')
})

test('reasons and causes have words, and an unknown one is shown as it is', () => {
  assert.match(reasonText('capture_gap'), /without a gap/)
  assert.equal(reasonText('some_new_reason'), 'some new reason')
  assert.equal(causeText({ cause: 'never_watched' }), 'nobody ever watched it')
  assert.equal(causeText({ cause: 'some_new_cause' as never }), 'some new cause')
  assert.equal(placeText({ podName: 'web-1', nodeName: 'node-1' }), 'pod web-1, node node-1')
  assert.equal(placeText({ podName: null, nodeName: null }), '')
  assert.equal(notEvaluatedText('tagMoved', 'no_inventory'), reasonText('no_inventory'))
})

test('never checked is not unsigned', () => {
  assert.equal(verdictWord(null).word, 'not checked')
  assert.equal(verdictWord('unsigned').word, 'unsigned')
})

test('each image once, those that run first', () => {
  const image = (digest: string, imageRef: string) => ({ digest, imageRef })
  const containers = [
    { name: 'web', running: [image('sha256:b', 'web:2')], previous: [image('sha256:a', 'web:1')] },
    { name: 'init', running: [], previous: [image('sha256:b', '')] },
  ]
  const { dimensions } = BLANK
  const found = imagesOf({
    ...BLANK,
    dimensions: { ...dimensions, images: { ...dimensions.images, containers: containers as never } },
  })
  assert.deepEqual(
    found.map(({ digest, isRunning, containers: names }) => [digest, isRunning, names]),
    [
      ['sha256:b', true, ['web', 'init']],
      ['sha256:a', false, ['web']],
    ],
  )
  assert.equal(optionText(found[1]!), 'web: web:1 (earlier)')
})

test('counts of findings', () => {
  const counts = { critical: 1, high: 0, medium: 3, low: 9, info: 0 }
  assert.equal(findingsText(counts), '1 critical, 3 medium')
  assert.equal(findingsText(counts, 1), '1 critical')
  assert.equal(findingsText({ ...counts, critical: 0, medium: 0 }), 'none above low')
  assert.equal(findingsText(null), '?')
})
