/** Runs README.md and docs/tour.md; each file in examples/ is posted by one of them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { walk } from './walk.ts'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8')
const FIRST_SCREEN_LINES = 24

walk('README.md')
walk('docs/tour.md')

test('the commands that start and test are on the first screen of README.md', () => {
  const screen = read('README.md').split('\n').slice(0, FIRST_SCREEN_LINES).join('\n')
  for (const command of ['npm ci && npm start', 'npm ci && npm test']) assert.ok(screen.includes(command), command)
})

test('every example is posted', () => {
  const pages = ['README.md', 'docs/tour.md'].map(read).join('\n')
  for (const name of readdirSync(new URL('examples/', ROOT))) assert.match(pages, new RegExp(`\\b${name}\\b`), name)
})
