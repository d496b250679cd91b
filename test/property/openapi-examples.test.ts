/** A value of a parameter that is generated from the OpenAPI document is not refused. */
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
const token = TOKENS.BROKER_TOKEN_READ
/** Fixed values for rules about several parameters, which no schema expresses. */
const WITH: Record<string, Record<string, string>> = {
  '/components': { name: 'log4j' },
  '/compute/contention': { namespace: 'shop' },
  '/attestations/policy': { mode: 'audit' },
  '/flows': { since: '', until: '', follow: 'false', resume: '', after: '' },
  '/flows/edges': { since: '', until: '', after: '' },
  '/workloads/{namespace}/{kind}/{name}/profile/diff': { to: '' },
  '/workloads/{namespace}/{kind}/{name}/diff': { from: '', to: '' },
  '/changes': { since: '' },
}

for (const [path, { get }] of Object.entries(document.paths)) {
  const parameters = ((get as Json)?.parameters ?? []) as Json[]
  if (parameters.length === 0) continue
  test(`GET ${path}: no value that the document allows is refused`, async () => {
    const fields = Object.fromEntries(
      parameters.map(({ name, required, schema }) => [
        name,
        required ? valuesOf(schema) : fc.option(valuesOf(schema), { nil: undefined }),
      ]),
    )
    await fc.assert(
      fc.asyncProperty(fc.record(fields) as fc.Arbitrary<Record<string, unknown>>, async (values) => {
        const query = new URLSearchParams()
        let target = path
        for (const { name, in: place } of parameters) {
          const value = WITH[path]?.[name] ?? values[name]
          if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(String(value)))
          else if (Array.isArray(value)) for (const one of value) query.append(name, String(one))
          else if (value !== undefined) query.set(name, String(value))
        }
        // URL parsers remove a path segment of one or two dots.
        if (/\/\.{1,2}(\/|$)/.test(target)) return
        const { status, text } = await app.get(`${target}?${query}`, { token })
        assert.ok(![400, 422].includes(status), `${target}?${query}: ${status} ${text}`)
      }),
      { numRuns: RUNS },
    )
  })
}
