/** Exit codes of the command line. */
export const EXIT = {
  done: 0,
  /** The answer to the question is yes, such as whether policies deny something. */
  isSo: 1,
  usage: 2,
  notFound: 3,
  token: 4,
  /** The broker refuses to make something out of incomplete observations. */
  partial: 5,
  notReachable: 6,
  /** A stream or an export ended before its end, or a stream cannot go on where it stopped. */
  endedEarly: 7,
  /** A fault of this program or its surroundings, as in sysexits.h: no pipeline takes it for an answer. */
  fault: 70,
  interrupted: 130,
  /** SIGHUP: the terminal was closed. */
  hungUp: 129,
  /** SIGTERM. */
  terminated: 143,
} as const

/** An error that the user can understand without a stack. */
export class Failure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}
