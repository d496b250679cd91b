/**
 * What routes and their middleware say of themselves, for the OpenAPI document. It is kept beside them and read when
 * the document is made, never by a request.
 */
import type { z } from 'zod'
import type { Scope } from '../http/tokens.ts'

/** A body of another content type: text that is sent as it is, or JSON where the content type ends in `+json`. */
export interface TypedBody {
  readonly contentType: string
  readonly schema: z.ZodType
}

type OneBody = z.ZodType | TypedBody

/**
 * The body of an answer: JSON by its schema, all keys in wire order, one of another content type, what the caller chose
 * of several, or null for none.
 */
export type Body = OneBody | readonly OneBody[] | null

/** Headers that an answer always has, by name, each described by its schema. */
export type AnswerHeaders = Readonly<Record<string, z.ZodType>>

export interface Answer {
  readonly description: string
  readonly answer: Body
  readonly headers?: AnswerHeaders
}

/** What a route says in `route({ ... })`. */
export interface RouteDoc {
  /** What it does, in a sentence without a full stop. */
  readonly summary: string
  /** What else a client must know. Markdown. */
  readonly description?: string
  /** The body of 200. */
  readonly answer: Body
  /** Headers of 200. */
  readonly headers?: AnswerHeaders
  /**
   * Statuses that scope, validation, body, budget and database do not imply, or answer otherwise here; text alone is a
   * `text/plain` body.
   */
  readonly also?: Readonly<Record<number, string | Answer>>
  /** False where no database is asked: such a route is never 503 for it. */
  readonly database?: false
  /** The group it is listed in, where its path does not tell. */
  readonly tag?: string
}

/** What a middleware of a route declares. */
export interface Declared {
  readonly scope?: Scope
  readonly params?: z.ZodType
  readonly query?: z.ZodObject
  /** Whether a parameter that the query does not know is refused or ignored. */
  readonly unknownParameters?: 'refused' | 'ignored'
  /**
   * `description` where the usual one, of one limit on the body as sent and as unpacked, is not true; `isOptional`
   * where none is as good as `{}`.
   */
  readonly body?: {
    readonly schema: z.ZodType
    readonly maxBytes: number
    readonly description?: string
    readonly isOptional?: boolean
  }
  readonly isCharged?: true
}

const declared = new WeakMap<object, Declared>()
const documented = new WeakMap<object, RouteDoc>()

/** Notes what a middleware declares, and returns it. */
export function declare<M extends object>(middleware: M, what: Declared): M {
  declared.set(middleware, what)
  return middleware
}

/** What a middleware or handler declared: nothing, for most. */
export const declarationOf = (handler: object): Declared => declared.get(handler) ?? {}

/** Notes what a route says of itself, and returns it. */
export function document<R extends object>(route: R, doc: RouteDoc): R {
  documented.set(route, doc)
  return route
}

/** What a route said of itself, or undefined. */
export const docOf = (route: object): RouteDoc | undefined => documented.get(route)

/**
 * The JSON schema to print for a schema that zod cannot tell the truth about: one that reads text as something else, or
 * judges by code.
 */
export const documentedAs = <S extends z.ZodType>(schema: S, json: Readonly<Record<string, unknown>>): S =>
  schema.meta({ shown: json }) as S
