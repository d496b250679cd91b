/** kubectl as a program that ctb starts. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'

export interface ClusterFlags {
  readonly context?: string
  readonly kubeconfig?: string
  readonly brokerNamespace?: string
  readonly brokerService?: string
}

export interface Kubectl {
  /** The limit does not end it any more, and the program may end while it runs. */
  readonly goesOn: () => void
  readonly lines: Interface
  /** The exit code; null after a signal. It never rejects. */
  readonly ended: Promise<number | null>
}

/**
 * Starts kubectl in the cluster of the flags, until `limit` or the end of the program. What it says on stderr is shown.
 * @throws Failure if there is no kubectl
 */
export async function startKubectl(
  { env, say, onEnd }: CliContext,
  { context, kubeconfig }: ClusterFlags,
  words: readonly string[],
  limit: AbortSignal,
): Promise<Kubectl> {
  // kubectl, and the programs that it starts for logins, have no use for the token.
  const { CTB_TOKEN: _, KGUARDIAN_BROKER_TOKEN: __, ...rest } = env
  const cluster = [
    ...(context === undefined ? [] : [`--context=${context}`]),
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
  ]
  const child = spawn('kubectl', [...cluster, ...words], { env: rest, stdio: ['ignore', 'pipe', 'pipe'] })
  try {
    await once(child, 'spawn')
  } catch (error) {
    throw notStarted(error as NodeJS.ErrnoException)
  }
  const kill = () => void child.kill()
  onEnd(kill)
  limit.addEventListener('abort', kill)
  if (limit.aborted) kill()
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  createInterface({ input: child.stderr }).on('line', (line) => {
    const text = wordsOf(line)
    if (text !== null) say(`kubectl: ${text}`)
  })
  const goesOn = () => {
    limit.removeEventListener('abort', kill)
    for (const one of [child, child.stdout, child.stderr] as { unref(): void }[]) one.unref()
  }
  return { goesOn, lines: createInterface({ input: child.stdout }), ended }
}

function notStarted({ code, message }: NodeJS.ErrnoException): Failure {
  const reason = code === 'ENOENT' ? 'it was not found in PATH' : message
  return new Failure(
    `kubectl cannot be started: ${reason}. ` +
      'Install it (https://kubernetes.io/docs/tasks/tools/), or name the broker with --server',
    EXIT.notReachable,
  )
}

/** Lines of its log lose their head; those of its retries say what its last line says again. */
function wordsOf(line: string): string | null {
  if (line.trim() === '' || /^E\d{4} .* memcache\.go:/.test(line)) return null
  return line.replace(/^[EWIF]\d{4} [\d:.]+ +\d+ \S+\] /, '')
}
