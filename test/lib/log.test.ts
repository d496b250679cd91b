import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { bundled } from './bundled.ts'

const MODULE = bundled(new URL('../../lib/observability/log.ts', import.meta.url))

/**
 * At exit a process gives its reader two seconds, which a busy machine may use up; a reader this quick had them in
 * full.
 */
const QUICK_MS = 1_500
const ATTEMPTS = 10

/**
 * A process of its own that logs, since the tests are about what reaches stdout and when. It can report progress by
 * `process.send`.
 */
function logging(script: string, level = 'info'): ChildProcess {
  const source = `${MODULE}
    const log = createLog({ logLevel: '${level}' })
    ${script}`
  return spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  })
}

async function linesOf(child: ChildProcess): Promise<Record<string, unknown>[]> {
  let text = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  await once(child, 'close')
  assert.equal(child.exitCode, 0)
  assert.ok(text === '' || text.endsWith('\n'))
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

test('a line is JSON with level, time and message', async () => {
  const [line, ...rest] = await linesOf(logging(`log.info({ route: '/pod/info', status: 200 }, 'request')`))
  assert.deepEqual(rest, [])
  assert.deepEqual(Object.keys(line!), ['level', 'time', 'route', 'status', 'msg'])
  assert.equal(line!.level, 'info')
  assert.ok(Math.abs(Date.now() - Date.parse(String(line!.time))) < 60_000)
})

test('the level comes from the configuration', async () => {
  const script = `for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal']) log[level](level)`
  const levels = async (level: string) => (await linesOf(logging(script, level))).map((line) => line.msg)
  const [all, warn, silent] = await Promise.all([levels('trace'), levels('warn'), levels('silent')])
  assert.deepEqual(all, ['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
  assert.deepEqual(warn, ['warn', 'error', 'fatal'])
  assert.deepEqual(silent, [])
})

test('authorization never appears', async () => {
  const lines = await linesOf(
    logging(`const secret = 'Bearer tok-secret'
      for (const headers of [{ authorization: secret }, { Authorization: secret }]) {
        log.info(headers, 'bare'); log.info({ headers }, 'map'); log.info({ req: { headers } }, 'req'); log.info({ request: { headers } }, 'request')
        log.child({ headers }).info('child')
      }`),
  )
  assert.equal(lines.length, 10)
  assert.ok(!JSON.stringify(lines).includes('tok-secret'))
})

test('database errors are logged without the values of the statement', async () => {
  const lines = await linesOf(
    logging(`const fail = (code, message) => log.error({ err: Object.assign(new Error(message), {
        name: 'PostgresError', code, severity: 'ERROR', routine: 'r', constraint_name: 'pod_pkey', detail: 'Key (x)=(sesame)', where: 'sesame',
        query: 'select sesame', parameters: ['sesame'] }) })
      fail('23505', 'duplicate sesame'); fail('22P02', 'invalid input "sesame"'); fail('P0001', 'sesame'); fail('42P01', 'relation "pod" does not exist')
      log.error({ err: new TypeError('plain') })
      const inner = Object.assign(new Error('sesame'), { name: 'PostgresError', code: '22001' })
      log.error({ err: new Error('outer', { cause: inner }) }, 'wrapped'); log.error(inner); log.error({ err: inner }, 'told')`),
  )
  assert.ok(!JSON.stringify(lines).includes('sesame'))
  const errors = lines.map((line) => line.err as Record<string, string>)
  assert.deepEqual(
    errors.map((err) => err.code),
    ['23505', '22P02', 'P0001', '42P01', undefined, undefined, '22001', '22001'],
  )
  assert.equal(errors[0]!.constraint_name, 'pod_pkey')
  assert.equal(errors[3]!.message, 'relation "pod" does not exist')
  assert.equal(errors[4]!.message, 'plain')
  assert.equal(errors[5]!.message, 'outer')
  assert.equal((errors[5]!.cause as unknown as { code: string }).code, '22001')
  assert.deepEqual(
    lines.map((line) => line.msg),
    [
      'database error',
      'database error',
      'database error',
      'relation "pod" does not exist',
      'plain',
      'wrapped',
      'database error',
      'told',
    ],
  )
  assert.ok(errors.every((err) => err.stack!.includes('at ')))
})

test('a single line is written without delay, and the log does not keep the process alive', async () => {
  const child = logging(`log.info('first'); process.stdin.resume()`)
  const closed = linesOf(logging(`log.info('alone')`))
  await once(child.stdout!, 'data')
  assert.equal(child.exitCode, null, 'the line came with the end of the process only')
  const isOver = once(child, 'close')
  child.stdin!.end()
  await isOver
  assert.equal((await closed).length, 1)
})

for (const [how, ending] of [
  ['process.exit', 'process.exit(0)'],
  ['its end', ''],
  ['an uncaught error', `process.on('uncaughtException', () => process.exit(0)); throw new Error('x')`],
]) {
  test(`nothing is lost or torn at ${how} while the reader is slow`, async () => {
    const read = async () => {
      const child = logging(`for (let n = 0; n < 10000; n++) {
          log.info({ n }, 'x'.repeat(100))
          if (n % 500 === 0) await new Promise(setImmediate)
        }
        process.send('logged')
        ${ending}`)
      await once(child, 'message')
      const beganAt = Date.now()
      const numbers = await linesOf(child).then(
        (lines) => lines.map((line) => line.n),
        (error: Error) => error,
      )
      return { numbers, wasQuick: Date.now() - beganAt < QUICK_MS }
    }
    const all = Array.from({ length: 10_000 }, (_, n) => n)
    let last = await read()
    for (let attempt = 1; attempt < ATTEMPTS && !last.wasQuick; attempt++) last = await read()
    assert.deepEqual(last.numbers, all)
  })
}

test('a reader that stalls does not block the process, and the lines that it loses are counted', async () => {
  const child = logging(`let n = 0
    const ticks = setInterval(() => {
      for (let i = 0; i < 1000; i++) log.info({ n: n++ }, 'x'.repeat(1000))
      if (n === 20000) { clearInterval(ticks); process.send('logged') }
    }, 5)
    process.stdin.on('end', () => log.info({ n }, 'end')).resume()`)
  // Arrives only if logging does not wait for the reader.
  await once(child, 'message')
  const read = linesOf(child)
  let text = ''
  child.stdout!.on('data', (chunk) => {
    text = text.slice(-100) + chunk
    if (text.includes('were dropped')) child.stdin!.end()
  })
  const lines = await read
  const end = lines.find((line) => line.msg === 'end') as { n: number }
  const lost = lines.reduce((sum, line) => sum + ((line.lines as number) ?? 0), 0)
  assert.ok(lost > 0)
  assert.equal(lines.filter((line) => typeof line.n === 'number' && line.msg !== 'end').length + lost, end.n)
})

test('a reader that has gone does not delay the exit of the process', { timeout: 900_000 }, async () => {
  const child = logging(`setTimeout(() => { log.info('late'); process.exit(0) }, 1000)`)
  child.stdout!.destroy()
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
})
