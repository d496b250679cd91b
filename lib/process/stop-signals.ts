/** Thrown at what is under way when the process is told to stop. */
export class Stopped extends Error {
  constructor(signal: string) {
    super(`stopped by ${signal}`)
    this.name = 'Stopped'
  }
}

export interface StopSignals {
  /** Aborted with a `Stopped` by the first SIGTERM or SIGINT. The second ends the process at once, with exit code 1. */
  readonly aborted: AbortSignal
  /** What the work resolves to, unless the signal comes first: then it is left to itself. */
  race<T>(work: Promise<T>): Promise<T>
}

/** The scripts of package.json that become the program itself. */
const NPM_SCRIPTS = ['start', 'migrate']
/** Ctrl-C reaches all of a terminal's group, and npm hands it on to its script: the same signal again within this is the same Ctrl-C. */
const NPM_ECHO_MS = 500

/** Without this a signal ends the process where it stands, and what it has started by then is left behind. */
export function watchStopSignals(onStop: (signal: string) => void): StopSignals {
  const abort = new AbortController()
  const aborted = abort.signal
  const echoMs = NPM_SCRIPTS.includes(process.env.npm_lifecycle_event ?? '') ? NPM_ECHO_MS : 0
  let first: { signal: string; at: number } | undefined
  const heard = (signal: string) => {
    if (first !== undefined) {
      if (signal === first.signal && performance.now() - first.at < echoMs) return
      process.exit(1)
    }
    first = { signal, at: performance.now() }
    onStop(signal)
    abort.abort(new Stopped(signal))
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, heard)
  const told = new Promise<never>((_, reject) => aborted.addEventListener('abort', () => reject(aborted.reason)))
  told.catch(() => {}) // nobody may be racing then
  return { aborted, race: (work) => Promise.race([told, work]) }
}
