const isFull = process.env.TEST_DEPTH === 'full'

/**
 * The size of a test: `small` in every run, `full` with `TEST_DEPTH=full`, as before a release.
 * `small` should have one case of each kind rather than many of one.
 */
export const depth = <T>(small: T, full: T): T => (isFull ? full : small)

/** Skips a long test whose subject other tests cover in part: `{ skip: onlyFull }`. */
export const onlyFull = depth<string | false>('only with TEST_DEPTH=full', false)
