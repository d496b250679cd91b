import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finding } from '../../lib/profile/finding.ts'
import type { DriftItem } from '../../lib/profile/record/drift.ts'
import type { Images } from '../../lib/profile/record/images.ts'
import { summaryOf } from '../../lib/profile/versions/index.ts'
import { digestOf } from '../support/images.ts'
import { profileOf } from '../support/profile-versions.ts'

const texts = { title: 't', detail: 'd' }
const image = (name: string) => ({
  ...{ digest: digestOf(name), imageRef: 'r', state: 'running' as const, stateReason: null, ranAsInit: false },
  ...{ lastPodName: null, firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-01T00:00:00Z' },
})
const container = (name: string, running: string[], previous: string[] = []) => ({
  ...{ name, kind: 'regular' as const, mixedDigests: running.length > 1, stale: false },
  ...{ running: running.map(image), previous: previous.map(image) },
})
const withImages = (changes: Partial<Images>) => {
  const { dimensions } = profileOf()
  return profileOf({ dimensions: { ...dimensions, images: { ...dimensions.images, ...changes } } })
}
const imagesOf = (changes: Partial<Images>) => summaryOf(withImages(changes)).dimensions.images

test('a profile in short: every key, sorted', () => {
  assert.equal(
    JSON.stringify(summaryOf(profileOf())),
    JSON.stringify({
      dimensions: {
        compute: { status: 'unknown' },
        images: { mixedDigests: null, runningDigests: null, signature: null, status: 'unknown' },
        network: { status: 'unknown' },
        podSecurity: { level: 'baseline', levelConfidence: 'upper_bound', status: 'warn' },
        syscalls: { status: 'unknown' },
      },
      drift: { byType: {}, count: 0 },
      findingCounts: { critical: 0, high: 0, medium: 0, low: 0, info: 0 },
      posture: { coverage: 0.25, status: 'warn', unknownDimensions: ['network', 'syscalls', 'images'] },
    }),
  )
})

test('running digests count once over all containers; previous ones do not count', () => {
  const shown = imagesOf({ containers: [container('a', ['1', '2'], ['3']), container('b', ['2']), container('c', [])] })
  assert.deepEqual(shown, { mixedDigests: true, runningDigests: 2, signature: null, status: 'unknown' })
  const ended = imagesOf({ containers: [container('a', [], ['1'])] })
  assert.deepEqual(ended, { mixedDigests: false, runningDigests: 0, signature: null, status: 'unknown' })
})

test('the signature is the worst verdict', () => {
  const supplyChain = {
    ...{ status: 'configured' as const, verdict: 'key_signed' as const, reason: null, container: null, digest: null },
    ...{ signers: [], checkedAt: null, imageTrust: null, digests: [], truncated: false },
    counts: { verified: 0, keySigned: 1, unsigned: 0, invalid: 0, unknown: 0, notChecked: 0 },
  }
  assert.equal(imagesOf({ containers: [container('a', ['1'])], supplyChain }).signature, 'key_signed')
})

test('findings are counted by severity, those of drift included, and drift by type', () => {
  const item = (type: DriftItem['type']): DriftItem => ({
    ...{ type, findingId: `drift.${type}/a`, severity: 'medium', container: 'a' },
    detail: { imageRef: 'r', digests: [], since: '2026-01-01T00:00:00Z' },
  })
  const { drift } = profileOf()
  const { findingCounts, drift: counted } = summaryOf(
    profileOf({
      findings: [
        finding('podSecurity', 'a', 'high', texts),
        finding('podSecurity', 'b', 'high', texts),
        finding('images', 'c', 'low', texts),
        finding('drift', 'tagMoved', 'medium', texts, 'a'),
      ],
      drift: { ...drift, items: [item('tagMoved'), item('tagMoved'), item('securityContextRegression')] },
    }),
  )
  assert.deepEqual(findingCounts, { critical: 0, high: 2, medium: 1, low: 1, info: 0 })
  assert.deepEqual(counted, { byType: { tagMoved: 2, securityContextRegression: 1 }, count: 3 })
})

test('a level that is not known stays null', () => {
  const { dimensions } = profileOf()
  const podSecurity = { ...dimensions.podSecurity, status: 'unknown' as const, level: null, levelConfidence: null }
  assert.deepEqual(summaryOf(profileOf({ dimensions: { ...dimensions, podSecurity } })).dimensions.podSecurity, {
    ...{ level: null, levelConfidence: null, status: 'unknown' },
  })
})
