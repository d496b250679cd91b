import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseInstant, parseNaive, parseRfc3339 } from '../../lib/time/timestamp.ts'
import { anyCharacter } from '../support/any-character.ts'

const naive: [input: string, output: string][] = [
  ['2025-03-01T10:00:00', '2025-03-01T10:00:00'],
  ['2025-03-01T10:00:00.5', '2025-03-01T10:00:00.500'],
  ['2025-03-01T10:00:00.05', '2025-03-01T10:00:00.050'],
  ['2025-03-01T10:00:00.120', '2025-03-01T10:00:00.120'],
  ['2025-03-01T10:00:00.123', '2025-03-01T10:00:00.123'],
  ['2025-03-01T10:00:00.1234', '2025-03-01T10:00:00.123400'],
  ['2025-03-01T10:00:00.12345', '2025-03-01T10:00:00.123450'],
  ['2025-03-01T10:00:00.123456', '2025-03-01T10:00:00.123456'],
  ['2025-03-01T10:00:00.123000', '2025-03-01T10:00:00.123'],
  ['2025-03-01T10:00:00.123000999', '2025-03-01T10:00:00.123'],
  ['2025-03-01T10:00:00.1234567', '2025-03-01T10:00:00.123456'],
  ['2025-03-01T10:00:00.123456789', '2025-03-01T10:00:00.123456'],
  ['2025-03-01T10:00:00.999999999', '2025-03-01T10:00:00.999999'],
  ['2025-03-01T10:00:00.0', '2025-03-01T10:00:00'],
  ['2025-03-01T10:00:00.000000', '2025-03-01T10:00:00'],
  ['2025-03-01T10:00:00.000000001', '2025-03-01T10:00:00'],
  ['2025-03-01T10:00:00.000001', '2025-03-01T10:00:00.000001'],
  ['0001-01-01T00:00:00', '0001-01-01T00:00:00'],
  ['9999-12-31T23:59:59.999999', '9999-12-31T23:59:59.999999'],
  ['2024-02-29T00:00:00', '2024-02-29T00:00:00'],
  ['2000-02-29T00:00:00', '2000-02-29T00:00:00'],
]

for (const [input, output] of naive) {
  test(`naive ${input} is ${output}`, () => {
    assert.equal(parseNaive(input), output)
    assert.equal(parseRfc3339(input), null)
    assert.equal(parseInstant(input), output)
  })
}

// biome-ignore format: a list
const nonsense = [
  '', 'now', '1740823200', '2025-03-01', '2025-03-01T10:00', '2025-03-01T10:00:0', '2025-3-1T10:00:00', '25-03-01T10:00:00', '02025-03-01T10:00:00',
  '+2025-03-01T10:00:00', '-025-03-01T10:00:00', '2025-03-01T10:00:00.', '2025-03-01T10:00:00,5', '2025-03-01T10:00:00.1234567890', '2025-03-01T10:00:00.5x',
  '2025-03-01T10:00:00.-5', '0000-01-01T00:00:00', '2025-00-01T00:00:00', '2025-13-01T00:00:00', '2025-01-00T00:00:00', '2025-01-32T00:00:00',
  '2025-04-31T00:00:00', '2025-02-29T00:00:00', '2100-02-29T00:00:00', '1900-02-29T00:00:00', '2024-02-30T00:00:00', '2025-03-01T24:00:00',
  '2025-03-01T10:60:00', '2016-12-31T23:59:60', '2025/03/01T10:00:00', '2025-03-01T10.00.00', '2025-03-01_10:00:00', ' 2025-03-01T10:00:00',
  '2025-03-01T10:00:00 ', '2025-03-01T10:00:00\n', '2025-03-01T10:00:00\u0000', '2025-03-01T1 :00:00', '２025-03-01T10:00:00', `2025-03-01T10:00:00.${'0'.repeat(100_000)}`,
]

for (const input of nonsense) {
  test(`${JSON.stringify(input.slice(0, 40))} is refused, with a zone too`, () => {
    assert.equal(parseNaive(input), null)
    assert.equal(parseRfc3339(input), null)
    assert.equal(parseRfc3339(`${input}Z`), null)
    assert.equal(parseInstant(input), null)
  })
}

const zoned: [input: string, output: string][] = [
  ['2025-03-01T10:00:00Z', '2025-03-01T10:00:00'],
  ['2025-03-01t10:00:00z', '2025-03-01T10:00:00'],
  ['2025-03-01 10:00:00Z', '2025-03-01T10:00:00'],
  ['2025-03-01T10:00:00+00:00', '2025-03-01T10:00:00'],
  ['2025-03-01T10:00:00-00:00', '2025-03-01T10:00:00'],
  ['2025-03-01T10:00:00.5Z', '2025-03-01T10:00:00.500'],
  ['2025-03-01T10:00:00.123456789+02:00', '2025-03-01T08:00:00.123456'],
  ['2025-03-01T10:00:00.1234-02:30', '2025-03-01T12:30:00.123400'],
  ['2025-03-01T01:00:00+02:00', '2025-02-28T23:00:00'],
  ['2024-03-01T01:00:00+02:00', '2024-02-29T23:00:00'],
  ['2025-01-01T00:00:00+00:01', '2024-12-31T23:59:00'],
  ['2025-05-01T00:00:00+01:00', '2025-04-30T23:00:00'],
  ['2025-02-28T23:30:00-01:00', '2025-03-01T00:30:00'],
  ['2024-02-28T23:30:00-01:00', '2024-02-29T00:30:00'],
  ['2024-12-31T23:59:59-00:01', '2025-01-01T00:00:59'],
  ['2025-03-01T23:59:59+23:59', '2025-03-01T00:00:59'],
  ['2025-03-01T00:00:00-23:59', '2025-03-01T23:59:00'],
  ['0001-01-01T01:00:00+01:00', '0001-01-01T00:00:00'],
  ['9999-12-31T22:59:59-01:00', '9999-12-31T23:59:59'],
]

for (const [input, output] of zoned) {
  test(`RFC 3339 ${input} is ${output}`, () => {
    assert.equal(parseRfc3339(input), output)
    assert.equal(parseInstant(input), output)
    assert.equal(parseNaive(input), null)
  })
}

// biome-ignore format: a list
const badZones = [
  '2025-03-01T10:00:00+2:00', '2025-03-01T10:00:00+0200', '2025-03-01T10:00:00+02', '2025-03-01T10:00:00+24:00', '2025-03-01T10:00:00+01:60',
  '2025-03-01T10:00:00 02:00', '2025-03-01T10:00:00UTC', '2025-03-01T10:00:00ZZ', '2025-03-01T10:00:00 Z', '2025-03-01T10:00:00.Z', '2025-03-01T10:00:00+',
  '2025-03-01T10:00:00+02:0x', '2025-03-01T10:00:00+02-00', '2025-03-01T10:00:00\u221202:00', '2025-03-01  10:00:00Z', '2025-03-01T10:00Z',
  '0001-01-01T00:59:59+01:00', '9999-12-31T23:00:00-01:00', '2025-03-01T10:00:00.1234567890Z', '2025-03-01\u001410:00:00Z',
]

for (const input of badZones) {
  test(`${JSON.stringify(input)} is refused`, () => {
    assert.equal(parseRfc3339(input), null)
    assert.equal(parseInstant(input), null)
  })
}

test('a naive time must have the separator T', () => {
  assert.equal(parseNaive('2025-03-01 10:00:00'), null)
  assert.equal(parseNaive('2025-03-01t10:00:00'), null)
})

const earliest = new Date('0001-01-03T00:00:00Z')
const latest = new Date('9999-12-29T00:00:00Z')

test('property: zoned times agree with Date', () => {
  fc.assert(
    fc.property(
      fc.date({ min: earliest, max: latest, noInvalidDate: true }),
      fc.integer({ min: -(24 * 60 - 1), max: 24 * 60 - 1 }),
      (date, offsetMinutes) => {
        const local = new Date(date.getTime() + offsetMinutes * 60_000).toISOString().slice(0, -1)
        const size = Math.abs(offsetMinutes)
        const hh = String(Math.floor(size / 60)).padStart(2, '0')
        const mm = String(size % 60).padStart(2, '0')
        const expected = date.toISOString().slice(0, -1).replace('.000', '')
        assert.equal(parseRfc3339(`${local}${offsetMinutes < 0 ? '-' : '+'}${hh}:${mm}`), expected)
      },
    ),
    { numRuns: 5_000 },
  )
})

test('property: the calendar agrees with Date, month by month', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 9999 }),
      fc.integer({ min: 0, max: 13 }),
      fc.integer({ min: 0, max: 32 }),
      (year, month, day) => {
        const date = `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
        const at = new Date(`${date}T00:00:00Z`)
        const exists = year > 0 && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(date)
        assert.equal(parseNaive(`${date}T12:34:56`), exists ? `${date}T12:34:56` : null)
      },
    ),
    { numRuns: 20_000 },
  )
})

test('property: the canonical form is a fixed point and keeps the microseconds', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 9 }), (digits) => {
      const canonical = parseNaive(`2025-03-01T10:00:00.${digits}`)
      assert.ok(canonical)
      assert.equal(parseNaive(canonical), canonical)
      assert.match(canonical, /^2025-03-01T10:00:00(\.\d{3}){0,1}(\d{3})?$/)
      const fraction = canonical.slice(20)
      assert.equal(Number(fraction.padEnd(6, '0')), Number(digits.slice(0, 6).padEnd(6, '0')))
      assert.ok(!fraction.endsWith('000'))
    }),
  )
})

test('property: no text makes it throw', () => {
  fc.assert(fc.property(fc.string({ unit: anyCharacter }), (text) => void parseInstant(text)))
})
