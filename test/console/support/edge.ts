/** Runs the compiled edge proxy with the console as a process, for tests in a browser. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const SERVER = 'dist/wrangler-free-deploy/edge/server.js'

const running = new Set<ChildProcess>()
const killAll = () => {
  for (const child of running) child.kill('SIGKILL')
}
process.on('exit', killAll)
// Registered here, since a hook inside a test would end the proxy with that test.
after(killAll)

/** Starts it with this token on a free loopback port, and returns its URL. It ends with the test file. */
export async function startConsoleEdge(brokerUrl: string, token: string): Promise<string> {
  const child = spawn(process.execPath, [SERVER], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...{ PATH: process.env.PATH, NODE_ENV: 'development', LOG_LEVEL: 'info', CONSOLE: 'true' },
      ...{ BROKER_URL: brokerUrl, BROKER_TOKEN_READ: token },
      ...{ LISTEN_ADDR: '127.0.0.1:0', ADMIN_ADDR: '127.0.0.1:0' },
    },
  })
  running.add(child)
  const exited = once(child, 'exit').then(() => void running.delete(child))
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('"listening"')) resolve((JSON.parse(line) as { edge: string }).edge)
    })
    void exited.then(() => reject(new Error('the edge proxy ended early')))
  })
}
