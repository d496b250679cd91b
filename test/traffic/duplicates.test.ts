import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Batch, type Entry } from '../../lib/traffic/batch.ts'
import { resolveDuplicates } from '../../lib/traffic/duplicates.ts'
import { matchKeys } from '../../lib/traffic/flow.ts'

interface Sketch {
  uuid: number
  isNextDay: boolean
  podPort: string | null
  peerPort: string | null
  isUdp: boolean
  isKnown: boolean
  uuidExists: boolean
}

const port = fc.option(fc.constantFrom('0', '1', '2', '3'), { freq: 12, nil: null })
const sketch = fc.record<Sketch>({
  uuid: fc.nat(40),
  isNextDay: fc.boolean(),
  podPort: port,
  peerPort: port,
  isUdp: fc.boolean(),
  isKnown: fc.boolean(),
  uuidExists: fc.boolean(),
})
const sketches = fc.array(sketch, { maxLength: 12 })

/** All of one pair of addresses. */
function entryOf({ uuid, isNextDay, podPort, peerPort, isUdp }: Sketch): Entry {
  const members = { pod_ip: '10.0.0.1', traffic_type: 'EGRESS', traffic_in_out_ip: '10.0.0.2', decision: 'ALLOW' }
  const ports = { pod_port: podPort, traffic_in_out_port: peerPort }
  const flow = {
    uuid: `${uuid}`,
    time_stamp: `2024-05-0${isNextDay ? 2 : 1}T10:00:00`,
    ip_protocol: isUdp ? 'UDP' : 'TCP',
    ...members,
    ...ports,
  }
  return { flow, keys: matchKeys(flow) }
}

const hasUuidOf = (a: Sketch, b: Sketch) => a.uuid === b.uuid && a.isNextDay === b.isNextDay

function isDuplicate(later: Sketch, earlier: Sketch): boolean {
  const samePod = later.podPort !== null && later.podPort === earlier.podPort
  const samePeer = later.peerPort !== null && later.peerPort === earlier.peerPort
  return later.isUdp ? samePod || samePeer : samePod && samePeer
}

test('resolving duplicates equals posting one flow after the other', () => {
  fc.assert(
    fc.property(sketches, (all) => {
      const entries = all.map(entryOf)
      const sketchOf = new Map(entries.map((entry, i) => [entry, all[i]!]))
      const { accepted, known, uuidExists, suppressed } = resolveDuplicates(entries, (entry) => sketchOf.get(entry))
      const stored: Sketch[] = []
      for (const one of all) {
        const isRefused =
          one.isKnown || one.uuidExists || stored.some((other) => isDuplicate(one, other) || hasUuidOf(one, other))
        if (!isRefused) stored.push(one)
      }
      assert.deepEqual(
        accepted.map((entry) => sketchOf.get(entry)),
        stored,
      )
      assert.equal(known.length + uuidExists.length + suppressed.length + accepted.length, all.length)
      for (const { entry, by, isMatch } of suppressed) {
        assert.ok(accepted.includes(by))
        const [later, earlier] = [sketchOf.get(entry)!, sketchOf.get(by)!]
        assert.ok(isMatch ? isDuplicate(later, earlier) : hasUuidOf(later, earlier))
      }
    }),
    { numRuns: 3_000 },
  )
})

test('a batch knows which flows may be duplicates of each other', () => {
  fc.assert(
    fc.property(sketches, sketch, (all, one) => {
      const batch = new Batch<Entry>()
      for (const other of all) batch.add(entryOf(other))
      const entry = entryOf(one)
      assert.equal(
        batch.couldSuppress(entry),
        all.some((other) => isDuplicate(one, other) || other.uuid === one.uuid),
      )
      const isOvertaken = all.some((other) => other.isUdp && isDuplicate(other, one))
      assert.equal(batch.couldBeSuppressedBy(entry), isOvertaken)
      const contested = batch.contested().map((other) => batch.entries.indexOf(other))
      for (const [later, sketch] of all.entries())
        for (const [earlier, other] of all.slice(0, later).entries())
          if (isDuplicate(sketch, other) || hasUuidOf(sketch, other))
            assert.ok(
              contested.includes(later) && contested.includes(earlier),
              `${earlier} and ${later} of ${JSON.stringify(all)}`,
            )
      assert.deepEqual(
        contested,
        contested.toSorted((a, b) => a - b),
      )
    }),
    { numRuns: 3_000 },
  )
})

test('flows that could not be duplicates of each other are not contested', () => {
  const batch = new Batch<Entry>()
  const base: Sketch = {
    uuid: 0,
    isNextDay: false,
    podPort: '0',
    peerPort: '443',
    isUdp: false,
    isKnown: false,
    uuidExists: false,
  }
  for (let i = 0; i < 50; i++) batch.add(entryOf({ ...base, uuid: i, peerPort: `${i}` }))
  assert.deepEqual(batch.contested(), [])
})
