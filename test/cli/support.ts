/** The command line as a process, in front of a broker on a socket. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { close, listen } from '../../lib/http/server/listen.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { seedShop } from '../support/policy-cluster.ts'
import { program } from '../support/program.ts'

export const TOKEN = TOKENS.BROKER_TOKEN_READ
export const PROGRAM = program('wrangler-free-deploy/cli/main.ts')

/** A broker that knows the shop. */
export async function startShop() {
  const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
  await seedShop(app)
  const { server, address } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
  after(() => close(server, 1_000))
  return { ...app, url: `http://127.0.0.1:${address.port}` }
}

export interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

interface Options {
  readonly input?: string | Uint8Array
  readonly env?: NodeJS.ProcessEnv
}

/** Runs a program with these variables and no others of the machine. */
export function run(command: string, args: readonly string[], { input = '', env = {} }: Options = {}): Promise<Run> {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env } })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text
  })
  // The program may end without reading.
  child.stdin.on('error', () => {}).end(input)
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, out, err })))
}

/** Runs `ctb` with words against a server. */
export const ctbOf =
  (server: string) =>
  (words: readonly string[], { input = '', env = {} }: Options = {}): Promise<Run> =>
    run(process.execPath, [...PROGRAM, ...words], {
      input,
      env: { CTB_SERVER: server, CTB_TOKEN: TOKEN, ...env },
    })

const folder = mkdtempSync(join(tmpdir(), 'ctb-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** The path of a file that ends with the test file. */
export const pathOf = (name: string) => join(folder, name)

export function fileOf(name: string, text: string | Uint8Array, mode = 0o644): string {
  writeFileSync(pathOf(name), text, { mode })
  return pathOf(name)
}
