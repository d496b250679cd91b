import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const reporter = new URL('../../scripts/failures.mjs', import.meta.url).href

/** Runs Node on these test files; returns its output and exit code. */
async function run(files: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'failures-'))
  try {
    for (const [name, text] of Object.entries(files))
      writeFileSync(
        join(folder, name),
        `import assert from 'node:assert'\nimport { describe, test } from 'node:test'\n${text}`,
      )
    // The environment of an enclosing test run would change the output.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const args = ['--test', '--test-reporter', reporter, '--test-reporter-destination', 'stdout', ...Object.keys(files)]
    const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    let printed = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      printed += text
    })
    const [code] = await once(child, 'close')
    const [, list = '', closing] = /^([\s\S]*)^[#ℹ] tests \d+\n([\s\S]*)$/m.exec(printed) ?? []
    return { code, list: list.split('\nfailed:\n')[1]?.trimEnd().split('\n'), closing }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('failed tests are listed before the closing lines, each once with its file and first message', async () => {
  const { code, list, closing } = await run({
    'a.test.mjs': `
      test('good', () => {})
      test.todo('not yet', () => assert.fail('nobody minds'))
      describe('whole', () => {
        describe('part', () => test('bad', () => { throw new Error('first line\\nsecond line\\nthird\\nfourth') }))
        test('slow', { timeout: 50 }, () => new Promise((resolve) => setTimeout(resolve, 2_000)))
      })`,
    'b.test.mjs': `test('unequal', async () => assert.strictEqual(503, 200))`,
    'c.test.mjs': `throw new TypeError('it did not load')`,
  })
  assert.equal(code, 1)
  const [bad, slow, unequal, unloaded, ...more] = [...list!].sort((a, b) =>
    (/\((\w)/.exec(a)?.[1] ?? '') < (/\((\w)/.exec(b)?.[1] ?? '') ? -1 : 1,
  )
  assert.deepEqual(more, [])
  assert.equal(bad, '✖ bad (a.test.mjs): first line second line third')
  assert.equal(slow, '✖ slow (a.test.mjs): test timed out after 50ms')
  assert.match(unequal!, /^✖ unequal \(b\.test\.mjs\): Expected values to be strictly equal: 503 !== 200/)
  assert.match(unloaded!, /^✖ .*c\.test\.mjs.*: test failed$/)
  assert.match(closing!, /^[#ℹ] fail [34]$/m)
})

test('no list is printed when all tests pass', async () => {
  const { code, list, closing } = await run({ 'a.test.mjs': `test('good', () => {})` })
  assert.deepEqual([code, list], [0, undefined])
  assert.match(closing!, /^[#ℹ] fail 0$/m)
})
