import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { END, JsonScanner, QUOTE } from '../../lib/json/scanner.ts'

/** Tokens with their positions in the whole text, and its strings with their lengths. */
function tokens(chunks: readonly Buffer[]): unknown[] {
  const scanner = new JsonScanner(Buffer.alloc(0))
  const found: unknown[] = []
  let before = 0
  for (const chunk of chunks) {
    scanner.feed(chunk)
    for (let token = scanner.next(); token !== END; token = scanner.next())
      found.push([token, before + scanner.at, scanner.depth, token === QUOTE ? scanner.textTo - scanner.textFrom : 0])
    before += chunk.length
  }
  return found
}

test('property: the tokens are the same wherever the bytes are split', () => {
  const text = fc.oneof(
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc.array(fc.constantFrom('"', '\\', '[', '}', ',', ':', 'é', 'x'.repeat(50))).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 30 }), (text, lengths) => {
      const bytes = Buffer.from(text)
      const chunks: Buffer[] = []
      let at = 0
      for (const length of lengths) {
        chunks.push(bytes.subarray(at, at + length))
        at += length
      }
      chunks.push(bytes.subarray(at))
      assert.deepEqual(tokens(chunks), tokens([bytes]))
    }),
    { numRuns: 1_000 },
  )
})

test('property: the tokens of JSON are its brackets, commas, colons and strings, and every bracket is closed', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      let count = 0
      const walk = (one: unknown): void => {
        if (typeof one === 'string') count++
        if (typeof one !== 'object' || one === null) return
        const members = Object.entries(one)
        count += 2 + Math.max(0, members.length - 1) + (Array.isArray(one) ? 0 : 2 * members.length)
        for (const [, member] of members) walk(member)
      }
      const text = JSON.stringify(value)
      walk(JSON.parse(text))
      const found = tokens([Buffer.from(text)])
      assert.equal(found.length, count)
      assert.equal((found.at(-1) as number[] | undefined)?.[2] ?? 0, 0)
    }),
  )
})
