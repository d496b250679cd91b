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

/** Without this a signal ends the process where it stands, and what it has started by then is left behind. */
export function watchStopSignals(onStop: (signal: string) => void): StopSignals {
  const abort = new AbortController()
  const aborted = abort.signal
  const heard = (signal: string) => {
    if (aborted.aborted) process.exit(1)
    onStop(signal)
    abort.abort(new Stopped(signal))
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, heard)
  const told = new Promise<never>((_, reject) => aborted.addEventListener('abort', () => reject(aborted.reason)))
  told.catch(() => {}) // nobody may be racing then
  return { aborted, race: (work) => Promise.race([told, work]) }
}
