import type { MiddlewareHandler } from 'hono'
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import type { Env } from './route.ts'

/** The body of a refusal of the routes of profiles: clients read the code. */
export const CodedError = z
  .strictObject({ error: z.string().describe('A code; stable.'), message: z.string() })
  .meta({ id: 'CodedError' })

/** An answer whose body is a `CodedError`. */
export const coded = (status: number, code: string, message: string) => new HttpError(status, message, {}, code)

/** Makes `CodedError`s with the code `bad_request` of the 400s of a route. */
export const codedErrors: MiddlewareHandler<Env> = (c, next) => {
  c.set('hasCodedErrors', true)
  return next()
}

/** For `also` of a route with `codedErrors`. */
export const BAD_REQUEST = {
  400: { description: 'A parameter breaks a rule: `bad_request`. The message names both.', answer: CodedError },
}
