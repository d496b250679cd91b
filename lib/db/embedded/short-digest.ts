import { createHash } from 'node:crypto'

const DIGITS = 16

/** Hex digits of a SHA-256, for a name that says what it stands for: every process makes the same one of the same text. */
export const shortDigest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, DIGITS)
