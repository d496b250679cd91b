/** Posture, controls and readiness from the dimensions of a profile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readinessOf } from '../../lib/profile/controls.ts'
import { finding } from '../../lib/profile/finding.ts'
import { type Dimensions, inOrder, postureOf } from '../../lib/profile/posture.ts'
import { CORE_DIMENSIONS, type Finding, SEVERITIES, STATUSES, type Status } from '../../lib/profile/record/common.ts'
import { depth } from '../support/depth.ts'
import { profileOf } from '../support/profiles.ts'

type Statuses = Record<keyof Dimensions, Status>
const OK: Statuses = { network: 'ok', syscalls: 'ok', podSecurity: 'ok', images: 'ok', compute: 'ok' }
const { dimensions: EMPTY } = profileOf({ namespace: 'n', kind: 'k', name: 'w' }).profile

/** Dimensions with these statuses and a reason each. */
const dimensions = (statuses: Partial<Statuses> = {}): Dimensions =>
  Object.fromEntries(
    Object.entries({ ...OK, ...statuses }).map(([name, status]) => [
      name,
      { ...EMPTY[name as keyof Dimensions], status, reasons: [{ code: 'c', message: `reason of ${name}` }] },
    ]),
  ) as unknown as Dimensions
const found = (dimension: Finding['dimension'], severity: Finding['severity'], title: string) =>
  finding(dimension, title, severity, { title, detail: '' })

test('the worst known status decides, ok needs all to be known, and neither compute nor drift counts', () => {
  const status = fc.constantFrom(...STATUSES)
  fc.assert(
    fc.property(
      fc.record({ network: status, syscalls: status, podSecurity: status, images: status, compute: status }),
      (all) => {
        const { status: posture, coverage, unknownDimensions, reasons } = postureOf(dimensions(all), [])
        const core = CORE_DIMENSIONS.map((name) => all[name])
        const isAny = (one: Status) => core.includes(one)
        const expected = isAny('risk') ? 'risk' : isAny('warn') ? 'warn' : isAny('unknown') ? 'unknown' : 'ok'
        assert.equal(posture, expected)
        assert.deepEqual(
          unknownDimensions,
          CORE_DIMENSIONS.filter((name) => all[name] === 'unknown'),
        )
        assert.equal(coverage, (4 - unknownDimensions.length) / 4)
        assert.deepEqual(
          reasons.map((one) => [one.dimension, one.status]),
          CORE_DIMENSIONS.filter((name) => all[name] !== 'ok').map((name) => [name, all[name]]),
        )
      },
    ),
    { numRuns: depth(200, 10_000) },
  )
})

test('the message is the first finding of medium or worse, else the first reason; of pod security always a reason', () => {
  const findings = inOrder([
    found('network', 'medium', 'b of network'),
    found('network', 'high', 'worst of network'),
    found('podSecurity', 'high', 'privileged'),
    found('syscalls', 'low', 'only low'),
    found('images', 'critical', 'while unknown'),
  ])
  const { reasons } = postureOf(
    dimensions({ network: 'risk', syscalls: 'warn', podSecurity: 'risk', images: 'unknown' }),
    findings,
  )
  assert.deepEqual(
    reasons.map(({ message }) => message),
    ['worst of network', 'reason of syscalls', 'reason of podSecurity', 'reason of images'],
  )
})

test('findings are sorted by severity, then by id', () => {
  const findings = SEVERITIES.flatMap((severity) => [found('network', severity, 'b'), found('compute', severity, 'a')])
  assert.deepEqual(
    inOrder([...findings].reverse()).map(({ severity, id }) => `${severity} ${id}`),
    SEVERITIES.flatMap((severity) => [`${severity} compute.a`, `${severity} network.b`]),
  )
})

test('traffic counts as observed a day after the first flow', () => {
  const now = Date.parse('2026-01-02T00:00:00Z')
  const observed = (observedSince: string | null) => {
    const all = dimensions()
    const coverage = { ...all.network.coverage, observedSince }
    return readinessOf({ ...all, network: { ...all.network, coverage } }, null, now)[0]!.ok
  }
  assert.equal(observed(null), false)
  assert.equal(observed('2026-01-01T00:00:00.001Z'), false)
  assert.equal(observed('2026-01-01T00:00:00Z'), true)
})
