/** A body that is generated from the OpenAPI document is not refused for its form. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { startApp, TOKENS } from '../support/app.ts'
import { document } from '../support/contract.ts'
import { depth } from '../support/depth.ts'
import { valuesOf } from '../support/schema-values.ts'

const RUNS = depth(12, 60)

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

const app = await startApp(TOKENS)
const TOKEN_OF: Record<string, string> = {
  ingest: TOKENS.BROKER_TOKEN_INGEST,
  supplychain: TOKENS.BROKER_TOKEN_SUPPLYCHAIN,
  read: TOKENS.BROKER_TOKEN_READ,
}

const PAST = '2020-01-01T00:00:00Z'
const notAhead = (time: string) => (Date.parse(time) < Date.now() ? time : PAST)

/** Sets the image and the time of a scanner's payload. */
function payload(body: Json, { digest }: Json): void {
  body.image.digest = digest
  body.scanned_at = notAhead(body.scanned_at)
}

const entry = { format: 'bundle' }
const ADDED: Record<string, Json[]> = {
  verified: [{ ...entry, verified: true, issuer: 'https://issuer.example', san: 'dev@example.org' }],
  key_signed: [{ ...entry, error: 'untrusted_key' }],
  invalid: [{ ...entry, error: 'bad_signature' }],
  unsigned: [],
  unknown: [],
}

/** Rules about several fields, or the time of the request, that no schema expresses. They change the generated body. */
const RULES: Record<string, (body: Json, path: Json) => void> = {
  // The digest is that of the path, the time is not ahead, and the signatures give the verdict.
  'POST /images/{digest}/attestation': (body, { digest }) => {
    body.digest = digest
    body.checked_at = notAhead(body.checked_at)
    const sent = body.verdict === 'unsigned' ? [] : (body.signatures ?? [])
    const unverified = sent.map((one: Json) => ({ ...one, verified: false, error: null }))
    body.signatures = [...unverified.slice(0, 31), ...(ADDED[body.verdict] ?? [])]
  },
  // The digest is that of the path, the time is not ahead, and the index of a page is below the total of its set.
  'POST /images/{digest}/sbom': (body, path) => {
    payload(body, path)
    if (body.page) body.page.index = Math.min(body.page.index, body.page.total - 1)
  },
  // The digest is that of the path, and the time is not ahead.
  'POST /images/{digest}/vulnerabilities': payload,
  // The parser knows the rest of a policy.
  'POST /networkpolicy/try': (body) => {
    for (const key of Object.keys(body)) delete body[key]
    body.apiVersion = 'networking.k8s.io/v1'
    body.kind = 'NetworkPolicy'
    body.metadata = { name: 'a' }
    body.spec = { podSelector: {}, ingress: [{}] }
  },
  // The parser knows the rest of a document.
  'POST /vex': (body) => {
    for (const key of Object.keys(body)) delete body[key]
    Object.assign(body, {
      ...{ '@context': 'https://openvex.dev/ns/v0.2.0', '@id': 'urn:a', author: 'a', version: 1 },
      ...{ timestamp: PAST, statements: [] },
    })
  },
  // The reason belongs to one decision, and the day is not past.
  'PUT /vulnerabilities/{id}/decision': (body) => {
    if (body.decision !== 'not_affected') delete body.justification
    else body.justification ??= 'component_not_present'
    if (body.until) body.until = '2999-12-31'
    if (body.scope.type === 'repository')
      body.scope.repository = ['a', ...[...body.scope.repository].slice(1)].join('').replaceAll('/', '-')
  },
  // No name is in both lists.
  'POST /seccomp/profiles/{namespace}/{kind}/{name}/export': (body) => {
    if (body.add && body.remove) body.remove = body.remove.filter((one: string) => !body.add.includes(one))
  },
}

for (const [path, item] of Object.entries(document.paths))
  for (const method of ['post', 'put']) {
    const operation = (item as Json)[method]
    if (!operation?.requestBody) continue
    const name = `${method.toUpperCase()} ${path}`
    test(`${name}: no body that the document allows is refused`, async () => {
      const token = TOKEN_OF[operation['x-required-scope']]!
      const parameters = (operation.parameters ?? []) as Json[]
      const paths = fc.record(Object.fromEntries(parameters.map((one) => [one.name, valuesOf(one.schema)])))
      const bodies = valuesOf(operation.requestBody.content['application/json'].schema)
      await fc.assert(
        fc.asyncProperty(paths as fc.Arbitrary<Json>, bodies as fc.Arbitrary<Json>, async (values, body) => {
          RULES[name]?.(body, values)
          const target = path.replace(/\{(\w+)\}/g, (_, key) => encodeURIComponent(values[key]))
          // URL parsers remove a path segment of one or two dots.
          if (/\/\.{1,2}(\/|$)/.test(target)) return
          const { status, text } = await app.request(method.toUpperCase(), target, { body, token })
          assert.ok(status < 500 && ![400, 401, 403, 422].includes(status), `${status} ${text}`)
        }),
        { numRuns: RUNS, endOnFailure: true },
      )
    })
  }
