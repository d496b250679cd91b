/**
 * V8 12.8 and later misreads escaped keys after a key with a backslash (nodejs/node#63785), so JSON.parse is no
 * reference for such texts.
 */
const BACKSLASH_IN_KEY = /"(?:[^"\\]|\\.)*\\\\(?:[^"\\]|\\.)*"\s*:/

/** Whether `JSON.parse` of every version of Node reads a text correctly. */
export const isReadRight = (text: string): boolean => !BACKSLASH_IN_KEY.test(text)
