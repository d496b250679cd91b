const isFull = process.env.TEST_DEPTH === 'full'

/**
 * How much of something a test tries: `small` in every run, `full` with `TEST_DEPTH=full`, as before a release.
 * Rather one case of each kind in `small` than many of one.
 */
export const depth = <T>(small: T, full: T): T => (isFull ? full : small)
