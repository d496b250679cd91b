/** Parses generated policies with several parsers. */
import assert from 'node:assert/strict'
import { loadAll, YAML11_SCHEMA } from 'js-yaml'
import { parseAllDocuments } from 'yaml'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
export type Json = any

/** The documents of a text; all four parsers must agree. */
export function readPolicies(text: string): Json[] {
  const [first, ...others] = [
    loadAll(text),
    loadAll(text, { schema: YAML11_SCHEMA }),
    ...(['1.1', '1.2'] as const).map((version) => readWith(text, version)),
  ].map((documents) => documents.filter((one) => one !== null && one !== undefined))
  for (const other of others) assert.deepEqual(other, first)
  return first!
}

function readWith(text: string, version: '1.1' | '1.2'): unknown[] {
  const documents = parseAllDocuments(text, { version, logLevel: 'silent' })
  return [...documents].map((one) => {
    assert.deepEqual([one.errors, one.warnings], [[], []])
    return one.toJS({ maxAliasCount: 0 })
  })
}

/** The comments above the first document that begin with `opening`, without the comment sign. */
export const commentsOf = (text: string, opening = ''): string[] => {
  const lines = text.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('#'))
  return lines
    .slice(0, end === -1 ? lines.length : end)
    .map((line) => line.slice(2))
    .filter((line) => line.startsWith(opening))
}
