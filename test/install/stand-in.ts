/**
 * Replaces `docker` in docs/install.md and docs/operations.md without containers. Services are processes from the
 * sources, with the settings of compose.yaml, and PostgreSQL is that of the machine. Commands and options that the
 * pages do not use are refused.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { get } from '../support/broker.ts'
import { program } from '../support/program.ts'
import { until } from '../support/until.ts'
import { COMPOSE_FILE, readCompose, type Service } from './compose.ts'
import { exec, pairs, parseDockerfile } from './dockerfile.ts'
import type { SystemPostgres } from './system-postgres.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The program `docker`: it asks the server below which program to run with its standard streams, or how to exit. */
const PROGRAM = `#!${process.execPath}
const { spawnSync } = require('node:child_process')
fetch(process.env.STAND_IN, { method: 'POST', body: JSON.stringify({ args: process.argv.slice(2), file: process.env.COMPOSE_FILE }) })
  .then((answer) => answer.json())
  .then(({ program, env, error, output = '' }) => {
    process.stderr.write(error ?? '')
    process.stdout.write(output)
    if (!program) return process.exit(error ? 1 : 0)
    const { status } = spawnSync(program[0], program.slice(1), { stdio: 'inherit', env: { PATH: process.env.PATH, ...env }, cwd: ${JSON.stringify(ROOT)} })
    process.exit(status ?? 1)
  })
`

const atEnd: (() => Promise<void>)[] = []
// Registered here, since a hook inside another hook would stop it with that one.
after(() => Promise.all(atEnd.map((end) => end())))

interface Answer {
  program?: readonly string[]
  env?: Readonly<Record<string, string>>
  error?: string
  output?: string
}

interface Running {
  readonly child: ChildProcess
  readonly env: string
  readonly exited: Promise<unknown>
}

export interface StandIn {
  /** For the shell: the path of `docker` and its settings. */
  readonly env: NodeJS.ProcessEnv
  /** Running services by name. */
  readonly running: ReadonlyMap<string, unknown>
}

export interface StandInOptions {
  /** An empty folder for our files. */
  folder: string
  /** The checkout that the page is run in; its `.env` is read at each command. */
  checkout: string
  postgres: SystemPostgres
  /** Maps a port on the page to a free port. */
  portOf: (published: number) => number
  /** The environment for compose.yaml besides that file. */
  environment: Readonly<Record<string, string>>
}

export async function startStandIn({
  folder,
  checkout,
  postgres,
  portOf,
  environment,
}: StandInOptions): Promise<StandIn> {
  const image = parseDockerfile(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')).at(-1)!.instructions
  const textOf = (name: string) => image.find((one) => one.name === name)!.text
  const imageEnv = pairs(textOf('ENV'))
  const passwordFile = join(folder, 'postgres-password')
  writeFileSync(passwordFile, postgres.password)
  const running = new Map<string, Running>()
  const services = () => {
    const file = join(checkout, 'wrangler-free-deploy/.env')
    return readCompose({
      ...(existsSync(file) ? (parseEnv(readFileSync(file, 'utf8')) as Record<string, string>) : {}),
      ...environment,
    }).services
  }

  /** A program of the image, started from its source. */
  function programOf(args: readonly string[]): string[] {
    const [node, ...flags] = exec(textOf('ENTRYPOINT'))
    if (node !== 'node') throw new Error(`the image starts ${node}`)
    const [file, ...rest] = args.length > 0 ? args : exec(textOf('CMD'))
    const source = file!.replace(/^dist\/(.*)\.js$/, '$1.ts')
    if (source === file || !existsSync(join(ROOT, source))) throw new Error(`${file} is not built from any source`)
    return [process.execPath, ...flags, ...program(source), ...rest]
  }

  /** The environment of a service, with names and paths of containers replaced. */
  function environmentOf(
    { environment = {} }: Service,
    more: Readonly<Record<string, string>> = {},
  ): Record<string, string> {
    const env = Object.entries({ ...imageEnv, ...environment, ...more }).map(([name, value]) => [
      name,
      `${value ?? ''}`
        .replace('/secrets/postgres-password', passwordFile)
        .replace('http://broker:9090', `http://127.0.0.1:${portOf(9090)}`)
        .replace(/^postgres$/, '127.0.0.1'),
    ])
    return { ...Object.fromEntries(env), PGPORT: String(postgres.port), ADMIN_ADDR: '127.0.0.1:0' }
  }

  async function start(
    name: string,
    env: Record<string, string>,
    args: readonly string[],
    port: number,
  ): Promise<void> {
    const told = { ...env, LISTEN_ADDR: `127.0.0.1:${port}` }
    if (running.get(name)?.env === JSON.stringify(told)) return
    await stop(name)
    const [file, ...rest] = programOf(args) as [string, ...string[]]
    const child = spawn(file, rest, {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...told },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let admin: string | undefined
    let hasExited = false
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('"listening"')) admin = JSON.parse(line).admin
    })
    const exited = once(child, 'exit').then(() => {
      hasExited = true
    })
    running.set(name, { child, env: JSON.stringify(told), exited })
    await until(`${name} is healthy`, async () => hasExited || (admin && (await get(`${admin}/readyz`)).status === 200))
    if (hasExited) throw new Error(`${name} ended`)
  }

  async function stop(name: string): Promise<void> {
    const found = running.get(name)
    if (!found) return
    running.delete(name)
    found.child.kill('SIGTERM')
    await found.exited
  }

  const startService = async (name: string) => {
    const service = services()[name]!
    const published = Number(/(\d+):\d+$/.exec(service.ports![0]!)![1])
    await start(name, environmentOf(service), service.command ?? [], portOf(published))
  }

  const commands: Record<string, (words: string[]) => Promise<Answer> | Answer> = {
    async up(words) {
      take(words, ['--build', '--detach'])
      for (const name of ['broker', 'edge']) await startService(name)
      return {}
    },
    async stop(words) {
      for (const name of words) await stop(known(name))
      return {}
    },
    async start(words) {
      for (const name of words) await startService(known(name))
      return {}
    },
    exec(words) {
      if (!take(words, ['-T']).flags.has('-T')) throw new Error('a pipe is no terminal: -T')
      const [service, program, ...args] = words
      if (service !== 'postgres') throw new Error(`nothing is known of programs in ${service}`)
      return {
        program: [join(postgres.programs, program!), ...args],
        env: { PGHOST: postgres.socketFolder, PGPORT: String(postgres.port) },
      }
    },
    async run(words) {
      const { flags, values } = take(words, ['--rm', '--detach'], ['--name', '--publish', '--env'])
      const [service, ...args] = words
      const more = Object.fromEntries((values.get('--env') ?? []).map((one) => one.split('=') as [string, string]))
      const env = environmentOf(services()[known(service!)]!, more)
      if (!flags.has('--detach')) return { program: programOf(args), env }
      const [name] = values.get('--name') ?? []
      const [, port] = /^127\.0\.0\.1:(\d+):9090$/.exec(values.get('--publish')?.[0] ?? '') ?? []
      // Ports on the page were replaced by free ones before.
      await start(name!, env, args, Number(port))
      return { output: `${name}\n` }
    },
  }

  function known(name: string): string {
    if (!(name in services())) throw new Error(`there is no service ${name}`)
    return name
  }

  async function docker([first, ...words]: string[], file: string | undefined): Promise<Answer> {
    if (first === 'stop') {
      for (const name of words) {
        if (!running.has(name)) throw new Error(`there is no container ${name}`)
        await stop(name)
      }
      return { output: words.map((name) => `${name}\n`).join('') }
    }
    if (first !== 'compose') throw new Error(`docker ${first} is not known`)
    if (file !== COMPOSE_FILE) throw new Error(`no configuration file: COMPOSE_FILE is ${file}`)
    const [command, ...rest] = words
    const found = commands[command!]
    if (!found) throw new Error(`docker compose ${command} is not known`)
    return found(rest)
  }

  const server = http.createServer(async (incoming, outgoing) => {
    let body = ''
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk
    const { args, file } = JSON.parse(body) as { args: string[]; file?: string }
    const answer = await docker(args, file).catch(
      (error): Answer => ({ error: `${args.join(' ')}: ${error.message}\n` }),
    )
    outgoing.end(JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.once('exit', () => {
    for (const { child } of running.values()) child.kill('SIGKILL')
  })
  atEnd.push(async () => {
    await Promise.all([...running.keys()].map(stop))
    server.closeAllConnections()
    server.close()
  })

  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin', 'docker'), PROGRAM)
  chmodSync(join(folder, 'bin', 'docker'), 0o755)
  const { port } = server.address() as AddressInfo
  return {
    env: {
      PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
      HOME: process.env.HOME,
      STAND_IN: `http://127.0.0.1:${port}/`,
    },
    running,
  }
}

/** Removes the options from the start of `words`, and leaves the arguments. */
function take(words: string[], flags: readonly string[], values: readonly string[] = []) {
  const found = { flags: new Set<string>(), values: new Map<string, string[]>() }
  while (words[0]?.startsWith('-')) {
    const word = words.shift()!
    if (flags.includes(word)) found.flags.add(word)
    else if (values.includes(word)) found.values.set(word, [...(found.values.get(word) ?? []), words.shift()!])
    else throw new Error(`${word} is not known`)
  }
  return found
}
