/** The built console: the code size of the first view, and no inline code or address of another site. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const BUILD = fileURLToPath(new URL('../../../dist/console', import.meta.url))
const ASSETS = join(BUILD, 'assets')
const MAX_FIRST_VIEW_BYTES = 60 * 1024
const skip = !existsSync(ASSETS) && 'not built: npm run build'

const text = (name: string) => readFileSync(join(ASSETS, name), 'utf8')
/** The static imports of a chunk. */
const staticImports = (name: string) =>
  [...text(name).matchAll(/from\s*["']\.\/([^"']+\.js)["']/g)].map(([, one]) => one!)
const gzipped = (name: string) => gzipSync(readFileSync(join(ASSETS, name))).length

function withImports(names: readonly string[]): Set<string> {
  const all = new Set<string>()
  const add = (name: string) => {
    if (all.has(name)) return
    all.add(name)
    if (name.endsWith('.js')) for (const one of staticImports(name)) add(one)
  }
  for (const name of names) add(name)
  return all
}

test('the code of the first view is at most 60 KiB, compressed', { skip }, (t) => {
  const html = readFileSync(join(BUILD, 'index.html'), 'utf8')
  const entry = [...html.matchAll(/\/console\/assets\/([\w.-]+)/g)].map(([, name]) => name!)
  const start = readdirSync(ASSETS).filter((name) => /^start-/.test(name))
  assert.ok(entry.length >= 2 && start.length >= 2)
  const bytes = [...withImports([...entry, ...start])].reduce((sum, name) => sum + gzipped(name), 0)
  const all = readdirSync(ASSETS).reduce((sum, name) => sum + gzipped(name), 0)
  t.diagnostic(`first view ${bytes} bytes, all pages ${all}`)
  assert.ok(bytes > 10_000 && bytes <= MAX_FIRST_VIEW_BYTES, String(bytes))
})

test('no page has inline code, or an address of another site', { skip }, () => {
  const html = readFileSync(join(BUILD, 'index.html'), 'utf8')
  assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/)
  // Names of XML namespaces are not requested.
  const known = /^https?:\/\/(www\.w3\.org\/|tanstack\.com\/|localhost|telemetry\b)/
  for (const name of readdirSync(ASSETS))
    for (const [address] of text(name).matchAll(/https?:\/\/[\w.-]+\.[a-z]{2,}[\w./-]*/g))
      assert.match(address, known, name)
})
