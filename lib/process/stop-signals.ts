/** Rejects running work when the process receives a stop signal. */
export class Stopped extends Error {
  constructor(signal: string) {
    super(`stopped by ${signal}`)
    this.name = 'Stopped'
  }
}

export interface StopSignals {
  /** Aborted with a `Stopped` by the first SIGTERM or SIGINT. The second ends the process at once, with exit code 1. */
  readonly aborted: AbortSignal
  /** Resolves as the work does, or rejects with `Stopped` when the signal comes first; the work goes on unobserved. */
  race<T>(work: Promise<T>): Promise<T>
}

/** The scripts of package.json that replace their shell by the program. */
const NPM_SCRIPTS = ['start', 'migrate']
/**
 * Ctrl-C reaches the whole process group, and npm forwards it to its script: a repeat within this time is the same key.
 */
const NPM_ECHO_MS = 500

/** Handles SIGTERM and SIGINT, whose default would end the process and leave its child processes behind. */
export function watchStopSignals(onStop: (signal: string) => void): StopSignals {
  const abort = new AbortController()
  const aborted = abort.signal
  const echoMs = NPM_SCRIPTS.includes(process.env.npm_lifecycle_event ?? '') ? NPM_ECHO_MS : 0
  let first: { signal: string; at: number } | undefined
  const onSignal = (signal: string) => {
    if (first !== undefined) {
      if (signal === first.signal && performance.now() - first.at < echoMs) return
      process.exit(1)
    }
    first = { signal, at: performance.now() }
    onStop(signal)
    abort.abort(new Stopped(signal))
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, onSignal)
  const stopped = new Promise<never>((_, reject) => aborted.addEventListener('abort', () => reject(aborted.reason)))
  stopped.catch(() => {}) // without a race nobody would handle the rejection
  return { aborted, race: (work) => Promise.race([stopped, work]) }
}
