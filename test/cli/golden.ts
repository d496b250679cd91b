/**
 * What each command writes in each format, as files of test/cli/golden: a call, its exit code where it is not 0, and
 * what it wrote. `UPDATE_SNAPSHOTS=1 npm test test/cli` writes them anew; read the difference.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import type { Run } from './support.ts'

const FORMATS = ['table', 'wide', 'json', 'ndjson', 'yaml', 'csv', 'name'] as const

type Ctb = (words: readonly string[]) => Promise<Run>

/** Times, ports and whatever else each run has of its own; a time in a table keeps its width. */
const steady = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?/g, '<time>')
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '<time             >')
    .replace(/\d{4}-\d\d-\d\d/g, '<day     >')
    .replace(/\d+ day\(s\)( and \d+ hour\(s\))?/g, '<days>')
    .replace(/\/[0-9a-f]{64}\b/g, '/<hash>')
    .replace(/(staleSeconds"?: ?)\d+/g, '$1<seconds>')
    .replace(/urn:uuid:[0-9a-f-]{36}/g, 'urn:uuid:<uuid>')
    .replace(/127\.0\.0\.1:\d+/g, '<broker>')

/** A test of a command in all formats, and of further calls with their own words. */
export function golden(
  name: string,
  ctb: Ctb,
  words: readonly string[],
  more: readonly (readonly string[])[] = [],
  formats: readonly string[] = FORMATS,
) {
  goldenCalls(name, ctb, [...formats.map((format) => [...words, '-o', format]), ...more])
}

/** A test of these calls. */
export function goldenCalls(name: string, ctb: Ctb, calls: readonly (readonly string[])[]) {
  test(`${name}: what it writes`, async () => {
    const file = new URL(`golden/${name}.txt`, import.meta.url)
    const blocks: string[] = []
    for (const call of calls) {
      const { code, out, err } = await ctb(call)
      const head = `$ ctb ${call.map((word) => (/[\s*'"{}?]/.test(word) ? `'${word}'` : word)).join(' ')}`
      const said = err === '' ? '' : `${err.trimEnd().replace(/^/gm, '! ')}\n`
      blocks.push(
        `${head}${code === 0 ? '' : ` (exit code ${code})`}\n${out}${out === '' || out.endsWith('\n') ? '' : '\n'}${said}`,
      )
    }
    const text = steady(blocks.join('\n'))
    if (process.env.UPDATE_SNAPSHOTS || !existsSync(file)) writeFileSync(file, text)
    assert.equal(text, readFileSync(file, 'utf8'))
  })
}
