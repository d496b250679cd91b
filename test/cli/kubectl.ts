/** A program in the place of kubectl: it knows Services, and forwards ports to an address of this machine. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileOf, pathOf } from './support.ts'

const PROGRAM = `#!${process.execPath}
const { appendFileSync } = require('node:fs')
const net = require('node:net')
const words = process.argv.slice(2)
const { KUBECTL_LOG, KUBECTL_SERVICES, KUBECTL_TARGET, KUBECTL_FAULT } = process.env
appendFileSync(KUBECTL_LOG, JSON.stringify({ pid: process.pid, words, env: process.env }) + '\\n')
if (KUBECTL_FAULT !== undefined) {
  process.stderr.write(KUBECTL_FAULT)
  process.exitCode = 1
} else if (words.includes('get')) {
  process.stdout.write(KUBECTL_SERVICES)
} else {
  const server = net.createServer((client) => {
    const target = net.connect(KUBECTL_TARGET, '127.0.0.1')
    for (const [one, other] of [[client, target], [target, client]]) one.on('error', () => other.destroy()).pipe(other)
    console.log('Handling connection for ' + server.address().port)
  })
  server.listen(0, '127.0.0.1', () => console.log('Forwarding from 127.0.0.1:' + server.address().port + ' -> 9090'))
}
`

export interface Started {
  readonly pid: number
  readonly words: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

interface Options {
  /** Lines of namespace and name. */
  readonly services?: string
  /** Its text on stderr before it fails. */
  readonly fault?: string
}

let count = 0

/** The variables with which ctb finds it instead of kubectl, and what was started of it. */
export function standIn(target: string, { services = 'telemetry telemetry-broker\n', fault }: Options = {}) {
  const program = pathOf(join('kubectl-bin', 'kubectl'))
  mkdirSync(dirname(program), { recursive: true })
  fileOf(join('kubectl-bin', 'kubectl'), PROGRAM, 0o755)
  const log = fileOf(`kubectl-${++count}.log`, '')
  const env: NodeJS.ProcessEnv = {
    ...{ PATH: `${dirname(program)}:${process.env.PATH}`, KUBECTL_LOG: log, KUBECTL_SERVICES: services },
    ...{ KUBECTL_TARGET: new URL(target).port, CTB_SERVER: '', ...(fault !== undefined && { KUBECTL_FAULT: fault }) },
  }
  const started = (): Started[] =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  return { env, started }
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // It has ended, and its exit code was not read yet.
    return !/\) Z /.test(existsSync('/proc/self/stat') ? readFileSync(`/proc/${pid}/stat`, 'utf8') : '')
  } catch {
    return false
  }
}
