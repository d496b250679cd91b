/** The stream of an export stays YAML that gives exactly its objects, whatever names and contents are in it. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { loadConfig } from '../../lib/config/index.ts'
import type { Database } from '../../lib/db/index.ts'
import {
  type Available,
  type ExportDocument,
  isAvailable,
  MODES,
  missing,
  objectDocument,
  type Source,
} from '../../lib/profile/export/document.ts'
import { annotated, objectName, openingOf, yamlText } from '../../lib/profile/export/provenance.ts'
import { securityContextPatch } from '../../lib/profile/export/security-context.ts'
import { yamlStream } from '../../lib/profile/export/stream.ts'
import { commentedOut, withEscapes } from '../../lib/text/commented-out.ts'
import { anyCharacter } from '../support/any-character.ts'
import { depth } from '../support/depth.ts'
import { readPolicies } from '../support/policies.ts'
import { judgedContainer, profileOf, recommendation } from '../support/profiles.ts'

const RUNS = depth(50, 5_000)
const DIGEST = `sha256:${'ab'.repeat(32)}`
/** The lines that parsers of YAML 1.1 see. */
const LINES = /\r\n|[\n\r\u0085\u2028\u2029]/

/** Texts with everything that could end a line, begin a document or change a type. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...['\n', '\r', '\r\n', '\u0085', '\u2028', '\u2029', '\t', '\u0007', '\u007f', '\u009f', '\ufeff'],
      ),
      fc.constantFrom(
        ...['---\n', '\n---\n', '\n...\n', '\nkind: Pod\n', '- ', '# ', ': ', '"', "'", '\\', '%YAML 1.1'],
      ),
      fc.constantFrom(
        ...['true', 'no', '~', '1e3', '0x_', '&a', '*a', '!!str', '{', '}', ']', '|', '>', '@', '`', '\u202e'],
      ),
      fc.string({ unit: anyCharacter, maxLength: 5 }),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => parts.join('').replaceAll('\0', ''))

const key = fc.record({ namespace: hostile, kind: hostile, name: hostile })

function sourceOf(of: Source['key'], mode: Source['mode'], yaml: string, caveat: string): Source {
  const podSecurity = {
    containers: [judgedContainer('main', DIGEST)],
    recommendation: recommendation(yaml, [caveat]),
  }
  const config = loadConfig({})
  // Nothing here reads the database.
  return { ...profileOf(of, { podSecurity }), db: {} as Database, config, key: of, mode }
}

function sbomOf(source: Source, text: string): Available {
  const image = { containers: [text], digest: DIGEST, imageRef: text, source: 'registry', sbomTrust: null }
  return {
    ...{ artifact: 'sbom', fileName: 'sbom.cdx.json', apiVersion: null, kind: null, contentType: 'application/json' },
    image: { ...image, scannedAt: null, components: 1 },
    content: `${withEscapes(JSON.stringify({ components: [{ name: text }], of: source.key }))}\n`,
    applyWith: text,
    title: `SBOM ${text}`,
  }
}

test('any names and contents give a stream that parsers read alike, with exactly the objects', () => {
  fc.assert(
    fc.property(
      ...[key, fc.constantFrom(...MODES), hostile, hostile, fc.array(hostile, { maxLength: 3 })],
      (of, mode, yaml, text, objects) => {
        const source = sourceOf(of, mode, yaml, text)
        const made = objects.map((value) =>
          annotated(
            source,
            {
              ...{
                apiVersion: 'v1',
                kind: 'ConfigMap',
                metadata: { namespace: of.namespace, labels: { [value]: value } },
              },
              spec: { [value]: [value, { names: [of.kind, of.name] }] },
            },
            { name: objectName(source) },
          ),
        )
        const documents: ExportDocument[] = [
          ...made.map((one) =>
            objectDocument('networkpolicy', one, openingOf(source, 'networkpolicy', mode) + yamlText(one)),
          ),
          securityContextPatch(source),
          sbomOf(source, text),
          missing('vex', text),
        ]
        const stream = yamlStream(source, documents, true)
        assert.deepEqual(readPolicies(stream), JSON.parse(JSON.stringify(made)))
        const last = made.at(-1)
        const after = stream.slice(last ? stream.lastIndexOf(yamlText(last)) + yamlText(last).length : 0)
        for (const line of after.split(LINES).slice(0, -1)) assert.ok(line.startsWith('#'), JSON.stringify(line))
        const [name] = documents
          .filter(isAvailable)
          .flatMap(({ content }) => content.match(/"name":"(?:[^"\\]|\\.)*"/) ?? [])
        assert.deepEqual(JSON.parse(`{${name}}`).name, text)
      },
    ),
    { numRuns: RUNS },
  )
})

test('a text as comments is the same JSON, and has a # in front of each line of any parser', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const json = JSON.stringify([text], null, 1)
      const commented = commentedOut(json)
      for (const line of commented.split(LINES).slice(0, -1)) assert.ok(line.startsWith('#'))
      assert.deepEqual(JSON.parse(commented.replace(/^# ?/gm, '')), [text])
    }),
    { numRuns: RUNS },
  )
})

test('line ends that only YAML 1.1 knows are JSON escapes', () => {
  assert.equal(commentedOut('a\u0085b\u2028c\u2029d\r\ne\rf\n\n'), '# a\\u0085b\\u2028c\\u2029d\n# e\n# f\n#\n#\n')
  assert.equal(withEscapes('\u{e0001}\t\n'), '\\udb40\\udc01\t\n')
})

test('names of objects are DNS labels of at most 253 characters, whatever the workload is called', () => {
  const nameOf = (name: string) =>
    objectName({ config: loadConfig({}), key: { namespace: 'shop', kind: 'Deployment', name } })
  assert.equal(nameOf('Web.API_1'), 'web-api-1-telemetry')
  assert.equal(nameOf('-web-'), 'web--telemetry')
  assert.equal(nameOf('x'.repeat(253)), 'x'.repeat(253))
  assert.equal(nameOf('-'.repeat(253)), 'telemetry')
  fc.assert(
    fc.property(hostile, (name) => {
      assert.match(nameOf(name), /^[a-z0-9]([a-z0-9-]{0,251}[a-z0-9])?$/)
    }),
    { numRuns: RUNS },
  )
})

test('the command of a patch has each name as one word', () => {
  const commandOf = (of: Source['key']) => {
    const document = securityContextPatch(sourceOf(of, 'audit', 'spec: {}', ''))
    assert.ok(isAvailable(document))
    return document.applyWith
  }
  assert.equal(
    commandOf({ namespace: 'a b', kind: 'StatefulSet', name: `it's; rm\n-rf` }),
    `kubectl patch statefulset 'it'\\''s; rm -rf' -n 'a b' --type strategic --patch-file securitycontext.patch.yaml`,
  )
  assert.match(commandOf({ namespace: 'shop', kind: 'Pod', name: 'web' }), /cannot be patched: create it anew/)
})

test('without a container, or without anything to patch, there is no patch', () => {
  const of = { namespace: 'shop', kind: 'Deployment', name: 'web' }
  const source = sourceOf(of, 'audit', 'spec: {}', '')
  const { profile } = source
  const withPodSecurity = (fields: object): Source => ({
    ...source,
    profile: {
      ...profile,
      dimensions: { ...profile.dimensions, podSecurity: { ...profile.dimensions.podSecurity, ...fields } },
    },
  })
  const reasonOf = (fields: object) => {
    const document = securityContextPatch(withPodSecurity(fields))
    return isAvailable(document) ? null : document.reason
  }
  assert.equal(reasonOf({}), null)
  assert.match(reasonOf({ containers: [] })!, /no container of the workload is known/)
  assert.match(reasonOf({ recommendation: null })!, /nothing to patch/)
})
