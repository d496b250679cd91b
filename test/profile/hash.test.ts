import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalJson, fnv1a64, hashSnapshot } from '../../lib/profile/versions/hash.ts'
import { depth } from '../support/depth.ts'
import { snapshotOf, toDatabase } from '../support/profile-versions.ts'

const RUNS = depth(200, 5_000)

test('FNV-1a of known texts (draft-eastlake-fnv, appendix C)', () => {
  const vectors = {
    '': 'cbf29ce484222325',
    a: 'af63dc4c8601ec8c',
    b: 'af63df4c8601f1a5',
    foo: 'dcb27518fed9d577',
    foobar: '85944171f73967e8',
    'chongo was here!\n': '46810940eff5f915',
  }
  for (const [text, hash] of Object.entries(vectors)) assert.equal(fnv1a64(text), hash, text)
})

test('a hash is over the bytes of UTF-8, and as 64-bit arithmetic makes it', () => {
  const expected = (text: string) =>
    [...Buffer.from(text)]
      .reduce((hash, byte) => BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n)
      .toString(16)
      .padStart(16, '0')
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => assert.equal(fnv1a64(text), expected(text))),
    { numRuns: RUNS },
  )
})

test('equal values have one text, whatever the order of their keys', () => {
  assert.equal(
    canonicalJson({ b: [{ d: 1, c: null }], 10: 'x', 9: true, a: { ä: '"', Z: [] } }),
    '{"10":"x","9":true,"a":{"Z":[],"ä":"\\""},"b":[{"c":null,"d":1}]}',
  )
  const reversed = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(reversed)
      : value !== null && typeof value === 'object'
        ? JSON.parse(
            `{${Object.entries(value)
              .reverse()
              .map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(reversed(v))}`)}}`,
          )
        : value
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value)
      assert.equal(canonicalJson(reversed(value)), text)
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)))
    }),
    { numRuns: RUNS },
  )
})

test('the content hash is over the whole snapshot, and each dimension has one of its own', () => {
  const { snapshotText, contentHash, dimensionHashes } = hashSnapshot(snapshotOf())
  assert.deepEqual(JSON.parse(snapshotText), snapshotOf())
  assert.equal(contentHash, `fnv1a64:${fnv1a64(snapshotText)}`)
  assert.match(contentHash, /^fnv1a64:[0-9a-f]{16}$/)
  for (const [dimension, hash] of Object.entries(dimensionHashes))
    assert.equal(hash, `fnv1a64:${fnv1a64(canonicalJson(snapshotOf()[dimension as 'network']))}`)
  assert.deepEqual(Object.keys(dimensionHashes), ['network', 'syscalls', 'podSecurity', 'images'])

  const other = hashSnapshot(snapshotOf({ network: { rules: [toDatabase, { ...toDatabase, port: null }] } }))
  assert.notEqual(other.contentHash, contentHash)
  assert.notEqual(other.dimensionHashes.network, dimensionHashes.network)
  assert.equal(other.dimensionHashes.images, dimensionHashes.images)
})
