import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { environment, withEnvFile } from '../../lib/config/env-file.ts'

function folder(t: TestContext, text?: string): string {
  const path = mkdtempSync(join(tmpdir(), 'broker-env-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  if (text !== undefined) writeFileSync(join(path, '.env'), text)
  return path
}

test('the file adds variables that the environment lacks, and an empty variable is not overwritten', (t) => {
  const env = { LOG_LEVEL: 'warn', DATABASE_URL: '' }
  const merged = withEnvFile(env, folder(t, 'LOG_LEVEL=debug\nDATABASE_URL=postgres://file\nDATA_DIR=kept\n'))
  assert.deepEqual(merged, { LOG_LEVEL: 'warn', DATABASE_URL: '', DATA_DIR: 'kept' })
  assert.deepEqual(env, { LOG_LEVEL: 'warn', DATABASE_URL: '' }, 'and no child process inherits it')
})

test('comments, quotes, export, blanks and CRLF are parsed', (t) => {
  const text =
    '# a comment\r\nexport A=1\r\nB = "two # words"\r\nC=\'#3\' # why\r\nD=postgres://u:p@h/d?x=1#y\r\n\r\nE=\r\n'
  assert.deepEqual(withEnvFile({}, folder(t, text)), {
    A: '1',
    B: 'two # words',
    C: '#3',
    D: 'postgres://u:p@h/d?x=1',
    E: '',
  })
})

test('without a file, or with a folder of that name, only the environment counts', (t) => {
  const env = { A: '1' }
  const path = folder(t)
  assert.equal(withEnvFile(env, path), env)
  mkdirSync(join(path, '.env'))
  assert.equal(withEnvFile(env, path), env)
})

test('an unreadable file is a ConfigError with its path and the reason, and nothing else', (t) => {
  const path = join(folder(t), 'file')
  writeFileSync(path, 'A=secret')
  assert.throws(() => withEnvFile({}, path), {
    name: 'ConfigError',
    message: `${join(path, '.env')} cannot be read (ENOTDIR)`,
  })
})

test('under test the file is not read', () => {
  assert.equal(environment(), process.env)
})
