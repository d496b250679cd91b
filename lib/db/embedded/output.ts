import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'

const TAIL_LINES = 20
const LAST_LINES_MS = 200

/** What a server program printed, and how it ended. */
export interface Output {
  /** Its last lines, joined with ` | `. */
  tail(): string
  /** Undefined after exit code 0, else what went wrong. Never rejects. */
  ended: Promise<string | undefined>
}

/** Passes each line of stdout and stderr on and remembers the last ones for an error text. */
export function readOutput(child: ChildProcess, onLine: (line: string) => void): Output {
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      if (lines.length > TAIL_LINES) lines.shift()
      onLine(line)
    })
  }
  const ended = new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => {
      const end = () => resolve(code === 0 ? undefined : signal ? `signal ${signal}` : `exit code ${code}`)
      // The last lines say why; but backends that outlive a killed postmaster keep the pipes open.
      child.once('close', end)
      setTimeout(end, LAST_LINES_MS)
    })
  })
  return { tail: () => lines.join(' | '), ended }
}

/** Lets our process end while the child runs on. */
export function release(child: ChildProcess): void {
  child.unref()
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref()
}
