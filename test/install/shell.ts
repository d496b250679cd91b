/** One shell that runs block after block, like a reader of a page. It ends with the test file. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { after } from 'node:test'

const shells = new Set<() => void>()

after(() => {
  for (const end of shells) end()
})

export interface Shell {
  /** Returns the output of the block. Rejects with stderr and stdout when a command fails. */
  run(text: string): Promise<string>
}

export function startShell(cwd: string, env: NodeJS.ProcessEnv): Shell {
  const child = spawn('bash', ['-euo', 'pipefail'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
  const end = () => void child.kill('SIGKILL')
  shells.add(end)
  let stdout = ''
  let stderr = ''
  let hasExited = false
  let onNews = () => {}
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk
    onNews()
  })
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk
  })
  child.on('close', () => {
    hasExited = true
    shells.delete(end)
    onNews()
  })
  return {
    run(text) {
      const mark = randomUUID()
      stdout = ''
      stderr = ''
      // The shell reads the blocks from its input, so commands must not.
      child.stdin.write(`{\n${text}\n} < /dev/null\nprintf %s ${mark}\n`)
      return new Promise((resolve, reject) => {
        onNews = () => {
          if (stdout.endsWith(mark)) resolve(stdout.slice(0, -mark.length))
          else if (hasExited) reject(new Error(`a command failed: ${stderr}\n${stdout}`))
        }
        onNews()
      })
    },
  }
}
