import assert from 'node:assert/strict'
import { isIPv4, isIPv6 } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalAddress } from '../../lib/net/address.ts'
import { anyCharacter } from '../support/any-character.ts'

const table: [input: string, output: string][] = [
  ['2001:DB8::1', '2001:db8::1'],
  ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['2001:db8::1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
  ['1::', '1::'],
  ['1:2:3:4:5:6::', '1:2:3:4:5:6::'],
  ['::', '::'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['::1', '::1'],
  ['0:0::1', '::1'],
  ['fe80::1', 'fe80::1'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
  ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ['1:2:3:4:5::1.2.3.4', '1:2:3:4:5:0:102:304'],
]

for (const [input, output] of table) {
  test(`IPv6 ${input} is written ${output}`, () => assert.equal(canonicalAddress(input), output))
}

for (const input of [
  '::ffff:10.0.0.1',
  '::FFFF:10.0.0.1',
  '::ffff:a00:1',
  '0:0:0:0:0:ffff:0a00:0001',
  '0::ffff:10.0.0.1',
  '0000:0000:0000:0000:0000:FFFF:10.0.0.1',
]) {
  test(`IPv4-mapped ${input} is un-mapped`, () => assert.equal(canonicalAddress(input), '10.0.0.1'))
}

test('the longest spelling of an address, of 45 characters, is read', () => {
  assert.equal(canonicalAddress('0000:0000:0000:0000:0000:ffff:192.168.100.100'), '192.168.100.100')
  assert.equal(canonicalAddress('0064:FF9B:0001:0000:0000:0000:192.168.100.100'), '64:ff9b:1::c0a8:6464')
})

test('the whole range of mapped addresses is un-mapped', () => {
  assert.equal(canonicalAddress('::ffff:255.255.255.255'), '255.255.255.255')
  assert.equal(canonicalAddress('::ffff:0.0.0.0'), '0.0.0.0')
  assert.equal(canonicalAddress('::ffff:0:0'), '0.0.0.0')
})

test('IPv4-compatible and other embedded quads stay IPv6 in hex groups', () => {
  assert.equal(canonicalAddress('::10.0.0.1'), '::a00:1')
  assert.equal(canonicalAddress('::0.0.0.1'), '::1')
  assert.equal(canonicalAddress('::fffe:10.0.0.1'), '::fffe:a00:1')
  assert.equal(canonicalAddress('::ffff:0:10.0.0.1'), '::ffff:0:a00:1')
  assert.equal(canonicalAddress('1::ffff:10.0.0.1'), '1::ffff:a00:1')
})

// biome-ignore format: a list
const unchanged = [
  '', ' ', 'None', '10.0.0.1', '0.0.0.0', '255.255.255.255', '10.0.0.256', '010.0.0.1', '10.0.0', '10.0.0.1.2', '10.0.0.1/32', ' 10.0.0.1',
  'FE80::1%eth0', 'FE80::1%', 'FD00::/8', ' FD00::1', 'FD00::1 ', '[FD00::1]', ':', ':::', '::::', ':1', ':A::', '1:', '1::2::3', 'A:::1', 'FD00:::1',
  '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8:', ':1:2:3:4:5:6:7:8', '1:2:3:4::5:6:7:8', '1:2:3:4:5:6:7:8::', '1:2:3:4:5:6:7:8::9', '::1:2:3:4:5:6:7:8',
  '12345::', 'ABCDE::1', '00001::', 'G::', '::-1', '::+1', '0X1::', '::FFFF:10.0.0.256', '::FFFF:010.0.0.1', '::FFFF:10.0.0', '::FFFF:10.0.0.1.1',
  '::FFFF:10.0.0.1:1', '::FFFF:10.0.0.', '::FFFF:.0.0.1', '::FFFF:A.0.0.1', '::FFFF:1A.0.0.1', '1.2.3.4::', '1.2.3.4:A::', '1:2:3:4:5:6:7:1.2.3.4',
  '::2:3:4:5:6:7:1.2.3.4', '1:2:3:4:5:1.2.3.4', '::FFFF:10.0.0.1 ', '::FFFF:1000.0.0.1', 'FD00::1\u0000', 'ＦD::1', 'not:an:address', '10.0.0.1:80',
  `FD00::${'0'.repeat(100_000)}1`, 'A'.repeat(100_000),
]

for (const input of unchanged) {
  test(`${JSON.stringify(input.slice(0, 40))} is left unchanged`, () => assert.equal(canonicalAddress(input), input))
}

/** The form that the URL parser gives an address, as an independent reference. */
function oracle(text: string): string | null {
  if (text.includes('%') || !isIPv6(text)) return null
  const { hostname } = new URL(`http://[${text}]`)
  const canonical = hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical)
  if (!mapped) return canonical
  const [high, low] = [Number.parseInt(mapped[1]!, 16), Number.parseInt(mapped[2]!, 16)]
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

const group = fc.oneof(
  { weight: 2, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.constant(0xffff) },
  { weight: 2, arbitrary: fc.nat(0xffff) },
)
const spelledGroup = fc
  .tuple(group, fc.boolean(), fc.boolean())
  .map(([value, upper, padded]) =>
    (padded ? value.toString(16).padStart(4, '0') : value.toString(16))[upper ? 'toUpperCase' : 'toLowerCase'](),
  )

test('property: any IPv6 address reads as a URL reads it', () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => assert.equal(canonicalAddress(text), oracle(text) ?? text)),
    { numRuns: 2_000 },
  )
})

test('property: every zero pattern and spelling of eight groups reads as a URL reads it', () => {
  fc.assert(
    fc.property(fc.array(spelledGroup, { minLength: 8, maxLength: 8 }), (spelled) => {
      const text = spelled.join(':')
      assert.equal(canonicalAddress(text), oracle(text))
    }),
    { numRuns: 2_000 },
  )
})

test('property: address-like noise reads as a URL reads it or is unchanged', () => {
  const piece = fc.constantFrom(
    '0',
    '1',
    'f',
    'F',
    'ffff',
    '::',
    ':',
    '.',
    '1.2.3.4',
    '255',
    '256',
    '00',
    '01',
    'g',
    '10000',
    ' ',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 16 }), (pieces) => {
      const text = pieces.join('')
      assert.equal(canonicalAddress(text), oracle(text) ?? text)
    }),
    { numRuns: 20_000 },
  )
})

test('property: IPv4 and its mapped forms become one text', () => {
  fc.assert(
    fc.property(fc.ipV4(), (text) => {
      fc.pre(isIPv4(text))
      assert.equal(canonicalAddress(text), text)
      assert.equal(canonicalAddress(`::ffff:${text}`), text)
    }),
  )
})

test('property: the canonical form is stable, and no text makes the function throw', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV6(), fc.string({ unit: anyCharacter })), (text) => {
      const once = canonicalAddress(text)
      assert.equal(canonicalAddress(once), once)
    }),
  )
})
