/** The version of this release; a test holds it to package.json, so that nothing is read at the start. */
export const VERSION = '0.1.0'
