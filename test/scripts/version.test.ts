/** All stated versions equal that of package.json, and `npm version` changes all of them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { packageVersion, released, statedVersions } from '../../scripts/release/version.ts'
import { onlyFull } from '../support/depth.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const version = packageVersion()

test('every stated version is that of package.json; `npm version` writes them', () => {
  const stated = statedVersions()
  assert.ok(stated.length >= 5)
  for (const one of stated) assert.deepEqual(one, { path: one.path, version })
  const locked = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  assert.deepEqual([locked.version, locked.packages[''].version], [version, version])
})

test('the newest section of the changelog is of this version, or does not exist yet', () => {
  const text = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
  const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading!)
  assert.equal(headings.shift(), '[Unreleased]')
  if (headings.length > 0)
    assert.match(headings[0]!, new RegExp(`^\\[${version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d\\d-\\d\\d$`))
})

test('a release gives the section its name and date, once', () => {
  const before = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n'
  const after = released(before, '1.2.3', '2026-01-02')
  assert.equal(after, '# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n\n### Added\n\n- A thing.\n')
  assert.throws(() => released(after, '1.2.3', '2026-01-03'), /has 1\.2\.3 already/)
  assert.throws(() => released('# Changelog\n', '1.2.3', '2026-01-02'), /has no/)
})

test('`npm version` on a copy changes every place and openapi.json in one tagged commit', { skip: onlyFull }, (t) => {
  const copy = mkdtempSync(join(tmpdir(), 'version-'))
  t.after(() => rmSync(copy, { recursive: true, force: true }))
  const identity = Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap((who) => [
      [`GIT_${who}_NAME`, 'test'],
      [`GIT_${who}_EMAIL`, 'test@example.test'],
    ]),
  )
  const run = (command: string, ...words: string[]) => {
    const { status, stdout, stderr } = spawnSync(command, words, {
      cwd: copy,
      env: { ...process.env, ...identity },
      encoding: 'utf8',
    })
    assert.equal(status, 0, `${command} ${words.join(' ')}: ${stdout}${stderr}`)
    return stdout
  }
  const tracked = spawnSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
    .stdout.split('\0')
    .filter(Boolean)
  for (const path of tracked) cpSync(join(ROOT, path), join(copy, path), { recursive: dirname(path) !== '.' })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  run('git', 'init', '--quiet')
  run('git', 'add', '--', ...tracked)
  run('git', 'commit', '--quiet', '--message', 'before')

  run('npm', 'version', '97.8.6-rc.1')

  const changed = run('git', 'show', '--name-only', '--format=%D', 'HEAD').split('\n').filter(Boolean)
  assert.match(changed.shift()!, /tag: v97\.8\.6-rc\.1/)
  const stated = new Set(statedVersions().map(({ path }) => path))
  assert.deepEqual(
    changed.sort(),
    [...stated, 'CHANGELOG.md', 'openapi.json', 'package-lock.json', 'package.json'].sort(),
  )
  assert.equal(run('git', 'status', '--porcelain', '--untracked-files=no'), '')
  const text = (path: string) => readFileSync(join(copy, path), 'utf8')
  assert.equal(JSON.parse(text('openapi.json')).info.version, '97.8.6-rc.1')
  assert.match(text('CHANGELOG.md'), /^## \[97\.8\.6-rc\.1\] - /m)
  const check = `
    import { statedVersions } from './scripts/release/version.ts'
    process.stdout.write([...new Set(statedVersions().map(({ version }) => version))].join())`
  assert.equal(run(process.execPath, '--import', 'tsx', '--input-type=module', '--eval', check), '97.8.6-rc.1')
})
