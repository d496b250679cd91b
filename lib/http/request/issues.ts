import type { z } from 'zod'

export type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>

/** `[37].decision: Invalid input: expected string, received number` */
export function describeIssue({ path, message }: Issue): string {
  const where = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  return where ? `${where.replace(/^\./, '')}: ${message}` : message
}
