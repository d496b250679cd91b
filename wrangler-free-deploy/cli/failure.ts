/** Exit codes of the command line. 1 is the answer to a question, such as whether policies deny something. */
export const EXIT = {
  done: 0,
  isSo: 1,
  usage: 2,
  notFound: 3,
  token: 4,
  partial: 5,
  notReachable: 6,
} as const

/** An error that the user can understand without a stack. */
export class Failure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}
