/** After a key with a backslash V8 12.8 and later read others wrongly that are escaped (nodejs/node#63785): parsing all is no measure then. */
const BACKSLASH_IN_KEY = /"(?:[^"\\]|\\.)*\\\\(?:[^"\\]|\\.)*"\s*:/

/** Whether `JSON.parse` of any Node may be trusted with a text. */
export const isReadRight = (text: string): boolean => !BACKSLASH_IN_KEY.test(text)
