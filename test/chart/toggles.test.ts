/**
 * Every value that is a switch is in the toggles, which scripts/chart-check.sh renders and validates with the schemas
 * of Kubernetes.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { at, chartValues, readSchema, schemaAt } from '../../scripts/chart-values.ts'
import { assertEach } from '../support/assert-each.ts'

const FOLDER = new URL('toggles/', import.meta.url)
const toggles = readdirSync(FOLDER).map((name) => load(readFileSync(new URL(name, FOLDER), 'utf8')))
const root = readSchema()

/** Passed on unchanged, so one choice is enough. */
const HANDED_ON = ['broker.logLevel', 'frontend.logLevel']

const fallbacks = new Map(chartValues().map(({ path, fallback }) => [path, fallback]))
const isEmpty = (value: unknown) => ['""', '[]', '{}'].includes(JSON.stringify(value))

test('every choice of every switch is rendered, and every value that is empty by default is also rendered with content', () =>
  assertEach(fallbacks.keys(), (path) => {
    const fallback = fallbacks.get(path)
    const given = toggles.map((toggle) => at(toggle, path)).filter((value) => value !== undefined)
    const schema = schemaAt(path, root)
    const choices = schema.type === 'boolean' ? [true, false] : HANDED_ON.includes(path) ? undefined : schema.enum
    const missing = choices?.filter((choice) => choice !== fallback && !given.includes(choice as never))
    if (missing) assert.deepEqual(missing, [])
    else if (isEmpty(fallback)) assert.ok(given.some((value) => !isEmpty(value)))
  }))
