/**
 * The declarations of routes and their middleware for the OpenAPI document. They are stored beside the handlers and
 * read when the document is made, never by a request.
 */
import type { z } from 'zod'

/** The scope that a route needs; `open` needs no token. */
export type Scope = 'open' | 'read' | 'ingest' | 'supplychain' | 'admin'

/** A body of another content type: text that is sent as it is, or JSON where the content type ends in `+json`. */
export interface TypedBody {
  readonly contentType: string
  readonly schema: z.ZodType
}

type OneBody = z.ZodType | TypedBody

/**
 * The body of an answer: JSON with all keys of its schema in wire order; a body of another content type; several, of
 * which the caller chooses one; or null for none.
 */
export type Body = OneBody | readonly OneBody[] | null

/** Headers that an answer always has, by name. */
export type AnswerHeaders = Readonly<Record<string, z.ZodType>>

export interface Answer {
  readonly description: string
  readonly answer: Body
  readonly headers?: AnswerHeaders
}

/** The documentation that a route passes to `route({ ... })`. */
export interface RouteDoc {
  /** The purpose, in one sentence without a full stop. */
  readonly summary: string
  /** Further facts for clients. Markdown. */
  readonly description?: string
  /** The body of 200. */
  readonly answer: Body
  /** Headers of 200. */
  readonly headers?: AnswerHeaders
  /**
   * Statuses that do not follow from scope, validation, body, budget and database, or that have another meaning here; a
   * plain text describes a `text/plain` body.
   */
  readonly also?: Readonly<Record<number, string | Answer>>
  /** False for a route that does not query the database, so it never answers 503 for it. */
  readonly database?: false
  /** The group of the route, where its path does not imply it. */
  readonly tag?: string
}

/** The declarations of one middleware of a route. */
export interface Declared {
  readonly scope?: Scope
  readonly params?: z.ZodType
  readonly query?: z.ZodObject
  /** Whether a query parameter that the schema does not have is refused or ignored. */
  readonly unknownParameters?: 'refused' | 'ignored'
  /**
   * `description` replaces the usual text, which states one limit for the body as sent and as unpacked. `isOptional`:
   * an absent body counts as `{}`. `contentTypes` are those that it may have, where JSON is not the only one.
   */
  readonly body?: {
    readonly schema: z.ZodType
    readonly maxBytes: number
    readonly description?: string
    readonly isOptional?: boolean
    readonly contentTypes?: readonly string[]
  }
  readonly isCharged?: true
}

const declared = new WeakMap<object, Declared>()
const documented = new WeakMap<object, RouteDoc>()

/** Stores the declarations of a middleware, and returns the middleware. */
export function declare<M extends object>(middleware: M, what: Declared): M {
  declared.set(middleware, what)
  return middleware
}

/** The declarations of a middleware or handler; empty for most. */
export const declarationOf = (handler: object): Declared => declared.get(handler) ?? {}

/** Stores the documentation of a route, and returns the route. */
export function document<R extends object>(route: R, doc: RouteDoc): R {
  documented.set(route, doc)
  return route
}

/** The documentation of a route, or undefined. */
export const docOf = (route: object): RouteDoc | undefined => documented.get(route)

/**
 * Sets the JSON schema to print for a schema that zod cannot translate: one that transforms text into something else,
 * or checks by code.
 */
export const documentedAs = <S extends z.ZodType>(schema: S, json: Readonly<Record<string, unknown>>): S =>
  schema.meta({ shown: json }) as S
