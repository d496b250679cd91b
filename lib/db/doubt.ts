/**
 * Statements in doubt: the connection was lost after the statement was sent and before its answer came, so that it may have been
 * carried out all the same. The next attempt is told so; when there is none, the error tells.
 */
const inDoubt = new WeakSet<Error>()

export function markInDoubt(error: Error): Error {
  inDoubt.add(error)
  return error
}

/** Whether the statement that failed so, or an earlier attempt of it, may have been carried out. */
export const isInDoubt = (error: unknown) => error instanceof Error && inDoubt.has(error)
