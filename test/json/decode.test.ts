import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { decode } from '../../lib/json/sliced.ts'
import { depth } from '../support/depth.ts'
import { turnsOf } from '../support/turns.ts'

const MIB = 1024 * 1024

test('a text decodes as a whole, whichever of its characters are split between two parts', async () => {
  const characters = fc.constantFrom('x', 'é', '漢', '\u{1f418}')
  const around = fc.array(characters, { minLength: 1, maxLength: 5 }).map((some) => some.join(''))
  await fc.assert(
    fc.asyncProperty(around, around, fc.nat(12), async (one, other, before) => {
      const filling = 'y'.repeat(MIB - 16 + before)
      const text = filling + one + filling.slice(0, -2 * before) + other
      assert.equal(await decode(Buffer.from(text)), text)
    }),
    { numRuns: depth(5, 60) },
  )
})

test('one byte less or more than a part, and no bytes', async () => {
  for (const text of ['', 'é', ...[-1, 0, 1, MIB - 1, MIB, MIB + 1].map((more) => `é${'x'.repeat(MIB - 2 + more)}`)])
    assert.equal(await decode(Buffer.from(text)), text)
})

test('long texts are decoded in slices with other work between them; short ones at once', async () => {
  assert.ok((await turnsOf(decode(Buffer.from('x漢é'.repeat(depth(4, 8) * MIB))))) > 1)
  assert.equal(await turnsOf(decode(Buffer.from('x'.repeat(16 * MIB)))), 0)
})
