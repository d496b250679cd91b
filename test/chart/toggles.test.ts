/** Every value that switches something is among the toggles, which scripts/chart-check.sh renders and holds to the schemas of Kubernetes. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { at, chartValues, readSchema, schemaAt } from '../../scripts/chart-values.ts'
import { assertEach } from '../support/assert-each.ts'

const FOLDER = new URL('toggles/', import.meta.url)
const toggles = readdirSync(FOLDER).map((name) => load(readFileSync(new URL(name, FOLDER), 'utf8')))
const root = readSchema()

/** These are handed on as they are: one word is like the other. */
const HANDED_ON = ['broker.logLevel', 'frontend.logLevel']

const fallbacks = new Map(chartValues().map(({ path, fallback }) => [path, fallback]))
const isEmpty = (value: unknown) => ['""', '[]', '{}'].includes(JSON.stringify(value))

test('every value that switches something is rendered with each of its choices, and an empty one also when it is given', () =>
  assertEach(fallbacks.keys(), (path) => {
    const fallback = fallbacks.get(path)
    const given = toggles.map((toggle) => at(toggle, path)).filter((value) => value !== undefined)
    const schema = schemaAt(path, root)
    const choices = schema.type === 'boolean' ? [true, false] : HANDED_ON.includes(path) ? undefined : schema.enum
    const missing = choices?.filter((choice) => choice !== fallback && !given.includes(choice as never))
    if (missing) assert.deepEqual(missing, [])
    else if (isEmpty(fallback)) assert.ok(given.some((value) => !isEmpty(value)))
  }))
