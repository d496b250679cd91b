/** From the bytes of a payload to what the database is given: inflated, judged, cleaned, merged and hashed. */
import type { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { describeIssue } from '../http/request/issues.ts'
import { deserializeError } from '../json/parse.ts'
import type { Header } from './header.ts'
import { inflate } from './inflate.ts'
import { partsOf } from './json-parts.ts'

/** Where a page belongs in its set; `index` counts from 0. */
export interface Page {
  readonly set_id: string
  readonly index: number
  readonly total: number
}

/** What the database is given of a payload. */
export interface Prepared {
  readonly header: Header
  /** Null for what is whole. */
  readonly page: Page | null
  /** A JSON array of rows, as text. */
  readonly rows: string
  /** Times that were sent and could not be read. */
  readonly unreadableTimes: number
  /** False where the list is null or left out, which counts as empty. */
  readonly hasList: boolean
}

interface Rows<Element> {
  /** 422 for a row that cannot be kept; `where` is its place in the payload. */
  add(element: Element, where: string): void
  finish(): ListedRows
}

interface ListedRows {
  /** A JSON array. */
  readonly rows: string
  /** Tells the list as it was sent from any other. */
  readonly hash: string
  readonly unreadableTimes: number
}

/** One of the two payloads: its schema, the list in it, and what becomes of it. */
export interface PayloadKind<Whole extends z.ZodType, Element extends z.ZodType> {
  readonly schema: Whole
  /** The key of the list that makes it large. */
  readonly listKey: string
  readonly element: Element
  readonly maxElements: number
  createRows(): Rows<z.output<Element>>
  /** Judges what is left to judge, in the order that clients know; `rows` throws for the first row that could not be kept. */
  finish(posted: z.output<Whole>, facts: Facts): Omit<Prepared, 'hasList'>
}

interface Facts {
  readonly digest: string
  /** Unix time in milliseconds. */
  readonly now: number
  readonly itemCount: number
  readonly rows: () => ListedRows
}

/** A body as it was sent. */
export interface SentPayload {
  readonly bytes: Buffer
  readonly isPacked: boolean
  /** Of the path. */
  readonly digest: string
  readonly maxInflatedBytes: number
  readonly now: number
}

/**
 * Reads a payload. HttpError: 400 for what is not gzip, not JSON or of another type, 413 for what there is too much of, 422 for what breaks
 * the contract. Types are judged before anything else (interop-supply-chain S27).
 */
export function preparePayload<Whole extends z.ZodType, Element extends z.ZodType>(
  kind: PayloadKind<Whole, Element>,
  { bytes, isPacked, digest, maxInflatedBytes, now }: SentPayload,
): Prepared {
  const { listKey, maxElements } = kind
  const parts = partsOf(isPacked ? inflate(bytes, maxInflatedBytes) : bytes, listKey, maxElements)
  const posted = judged(kind.schema, parts.rest, [])
  const rows = kind.createRows()
  let refusal: HttpError | null = null
  for (let i = 0; i < parts.length; i++) {
    const element = judged(kind.element, parts.element(i), [listKey, i])
    if (refusal === null) refusal = refusalOf(() => rows.add(element, `${listKey}[${i}]`))
  }
  const prepared = kind.finish(posted, {
    digest,
    now,
    itemCount: parts.length,
    rows: () => {
      if (refusal !== null) throw refusal
      return rows.finish()
    },
  })
  return { ...prepared, hasList: Array.isArray((parts.rest as Record<string, unknown>)[listKey]) }
}

/** How `work` refuses; null when it does not. */
function refusalOf(work: () => void): HttpError | null {
  try {
    work()
    return null
  } catch (error) {
    if (error instanceof HttpError) return error
    throw error
  }
}

function judged<S extends z.ZodType>(schema: S, value: unknown, path: readonly PropertyKey[]): z.output<S> {
  const { data, error } = schema.safeParse(value)
  if (!error) return data as z.output<S>
  const { path: below, message } = error.issues[0]!
  throw deserializeError(describeIssue({ path: [...path, ...below], message }))
}
