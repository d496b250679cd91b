/** How the chart reads memory limits in different notations. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { render, skip } from '../support/helm.ts'
import { container, environment, manifestsOf } from './rendered.ts'

if (skip) test('memory limits in every spelling', { skip }, () => {})

const spellings = [
  ['1Gi', 1024],
  ['1.5Gi', 1536],
  ['256Mi', 256],
  ['300000Ki', 292],
  ['1Ti', 1_048_576],
  ['2G', 1907],
  ['512M', 488],
  ['300000k', 286],
  ['1T', 953_674],
  ['1e9', 953],
  ['1610612736', 1536],
  [1_610_612_736, 1536],
] as const
for (const [limit, mebibytes] of skip ? [] : spellings) {
  test(`a limit of ${JSON.stringify(limit)} is ${mebibytes} MiB, and the heap gets 60 % of it`, () => {
    const manifests = manifestsOf(render({ 'broker.resources.limits.memory': limit })!)
    const broker = manifests.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'kguardian-broker',
    )!
    assert.equal(environment(broker).BROKER_MEMORY_LIMIT_MB, String(mebibytes))
    assert.equal(container(broker).command.at(-1), `--max-old-space-size=${Math.floor((mebibytes * 60) / 100)}`)
  })
}

for (const limit of skip ? [] : ['1 Gi', '-1Gi', '1gi', '1GiB', 'Gi', '255Mi', '268435455']) {
  test(`a limit of ${JSON.stringify(limit)} is refused`, () => {
    assert.equal(render({ 'broker.resources.limits.memory': limit, 'broker.replicas': 1 }), null)
  })
}
