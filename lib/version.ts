/** The version of this release; a test holds it to package.json, which the image does not carry. */
export const VERSION = '0.1.0'
