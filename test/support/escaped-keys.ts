/**
 * V8 12.8 and later misreads escaped keys after a key with a backslash (nodejs/node#63785), so JSON.parse is no
 * reference for such texts.
 */
const BACKSLASH_IN_KEY = /"(?:[^"\\]|\\.)*\\\\(?:[^"\\]|\\.)*"\s*:/

/** Whether `JSON.parse` reads a text correctly in every version of Node. */
export const isReadRight = (text: string): boolean => !BACKSLASH_IN_KEY.test(text)
