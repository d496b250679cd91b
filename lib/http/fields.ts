import { z } from 'zod'
import { parseNaive } from '../net/timestamp.ts'

/**
 * Characters a field may have. Indexed text must stay below a third of a page (2,704 bytes) whichever way it is combined;
 * 253 is the longest name in Kubernetes.
 */
export const MAX_NAME_CHARS = 253
export const MAX_ADDRESS_CHARS = 128
export const MAX_WORD_CHARS = 64
export const MAX_ID_CHARS = 128

export const name = z.string().max(MAX_NAME_CHARS)
export const address = z.string().max(MAX_ADDRESS_CHARS)
export const word = z.string().max(MAX_WORD_CHARS)
export const id = z.string().max(MAX_ID_CHARS)

export const NAIVE_TIME_RULE = 'expected YYYY-MM-DDTHH:MM:SS with up to nine fraction digits and no zone'

/** A naive UTC time as agents write it, in its canonical form with at most microseconds (interop-core 1.0). */
export const naiveTime = z.string().transform((text, c) => {
  const time = parseNaive(text)
  if (time !== null) return time
  c.addIssue({ code: 'custom', message: NAIVE_TIME_RULE })
  return z.NEVER
})

/** A query parameter `limit`: any integer, moved into 1..`max`. */
export const pageLimit = (rows: number, max: number) =>
  z
    .string()
    .regex(/^[+-]?\d+$/, 'expected an integer')
    .transform((text) => Math.min(Math.max(Number(text), 1), max))
    .default(rows)

/** A path parameter: whatever the path holds, but U+0000, which no stored text can equal. */
export const pathText = z.string().refine((text) => !text.includes('\0'), 'U+0000 is not allowed')
