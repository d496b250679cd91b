import type { z } from 'zod'
import { describeIssue } from '../http/request/issues.ts'
import { deserializeError } from '../json/parse.ts'

/** The output of a schema for a part of a body. @throws HttpError 400 that names the field by its path in the body */
export function readOrRefuse<S extends z.ZodType>(
  schema: S,
  value: unknown,
  path: readonly (string | number)[],
): z.output<S> {
  const { data, error } = schema.safeParse(value)
  if (!error) return data as z.output<S>
  const { path: below, message } = error.issues[0]!
  throw deserializeError(describeIssue({ path: [...path, ...below], message }))
}
