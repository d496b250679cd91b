const isFull = process.env.TEST_DEPTH === 'full'

/**
 * How much of something a test tries: `small` in every run, `full` with `TEST_DEPTH=full`, as before a release.
 * Rather one case of each kind in `small` than many of one.
 */
export const depth = <T>(small: T, full: T): T => (isFull ? full : small)

/** Why a test is skipped that takes long, and whose subject others cover in part: `{ skip: onlyFull }`. */
export const onlyFull = depth<string | false>('only with TEST_DEPTH=full', false)
