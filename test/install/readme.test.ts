/** Runs README.md and docs/tour.md; each file in examples/ is posted by one of them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { blocksOf } from './document.ts'
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

test('README.md posts data with the present time, since old data is deleted', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'broker-readme-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const sent = join(folder, 'sent')
  writeFileSync(join(folder, 'curl'), `#!/bin/sh\ncase "$*" in *@-*) cat >> '${sent}';; esac\n`, { mode: 0o755 })
  const script = blocksOf(read('README.md'))
    .filter(({ tags }) => tags.includes('run'))
    .map(({ text }) => text)
    .join('\n')
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` }
  spawnSync('bash', ['-c', script], { cwd: fileURLToPath(ROOT), env })
  const times = [...readFileSync(sent, 'utf8').matchAll(/"time_stamp":\s*"([^"]+)"/g)].map(([, time]) =>
    Date.parse(`${time!.replace(/Z$/, '')}Z`),
  )
  assert.equal(times.length, 3)
  for (const time of times) assert.ok(Math.abs(Date.now() - time) < 60_000, new Date(time).toISOString())
})
