/** The places of documents in files agree with what the broker counts. */

import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_POLICIES_BYTES } from '../../lib/limits/limits.ts'
import { parsePolicies } from '../../lib/policies/parse.ts'
import {
  countDocuments,
  joined,
  MAX_BODY_BYTES,
  placed,
  placeOf,
} from '../../wrangler-free-deploy/cli/policy/documents.ts'
import { DENY } from './texts.ts'

const JSON_DENY = JSON.stringify(
  { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'j' }, spec: { podSelector: {} } },
  null,
  '\t',
)

/** Texts of files, with the number of their documents with content. */
const FILES: readonly (readonly [text: string, documents: number])[] = [
  ['', 0],
  ['# nothing\n', 0],
  ['---\n', 0],
  ['null', 0],
  ['--- ~\n--- null # none\n', 0],
  [DENY, 1],
  [DENY.trimEnd(), 1],
  [`---\n${DENY}---\n`, 1],
  [`--- # first\n${DENY}...\n# between\n---\n---\n${DENY}`, 2],
  [`${DENY}...\n${DENY}`, 2],
  [DENY.replaceAll('\n', '\r\n'), 1],
  [`${DENY}---\n${DENY}`.replaceAll('\n', '\r'), 2],
  [`${DENY}# --- no marker\n#---\n`, 1],
  [JSON_DENY, 1],
  [`${JSON_DENY}\n---\n${JSON_DENY}`, 2],
]

test('documents are counted as the broker does', async () => {
  for (const [text, documents] of FILES) {
    assert.equal(countDocuments(text), documents, text)
    // A policy at the end makes the broker count those before it.
    const policies = await parsePolicies(
      joined([
        { name: 'a', text },
        { name: 'b', text: DENY },
      ]).text,
      'yaml',
    )
    assert.equal(policies.at(-1)!.document, documents + 1, text)
  }
})

test('each refusal of any file after any other is placed in that file', async () => {
  const wrong = `${DENY}---\n${DENY.replace('{}}', '{x: 1}}')}`
  const broken = `${DENY}---\n\n\nkind: [\n`
  for (const [text] of FILES) {
    const refusalOf = async (last: string) => {
      const documents = joined([
        { name: 'first.yaml', text },
        { name: 'last.yaml', text: last },
        { name: 'after.yaml', text: DENY },
      ])
      const error = await parsePolicies(documents.text, 'yaml').then(
        () => assert.fail('taken'),
        (error: Error) => error,
      )
      return placed(documents, error.message)
    }
    assert.match(await refusalOf(wrong), /^last\.yaml: document 2: spec\.podSelector\.x: /, text)
    assert.match(await refusalOf(broken), /^last\.yaml: document 2: line [89]: invalid YAML: /, text)
  }
})

test('a document of the body is found in its file', () => {
  const documents = joined([
    { name: 'a', text: `${DENY}---\n${DENY}` },
    { name: 'none', text: '' },
    { name: 'b', text: DENY },
  ])
  assert.deepEqual(
    [1, 2, 3].map((document) => placeOf(documents, document)),
    [
      { name: 'a', document: 1 },
      { name: 'a', document: 2 },
      { name: 'b', document: 1 },
    ],
  )
})

test('other words of the broker stay as they are; the bound is its own', () => {
  const documents = joined([{ name: 'a', text: DENY }])
  for (const text of ['expected at least one policy', 'refused: document 1: x'])
    assert.equal(placed(documents, text), text)
  assert.equal(MAX_BODY_BYTES, MAX_POLICIES_BYTES)
})
