/**
 * Turns the bytes of a payload into the parameters of the database statement: inflates, validates, cleans, merges and
 * hashes.
 */
import type { z } from 'zod'
import { HttpError } from '../errors.ts'
import { describeIssue } from '../http/request/issues.ts'
import { deserializeError } from '../json/parse.ts'
import type { Header } from './header.ts'
import { inflate } from './inflate.ts'
import { partsOf } from './json-parts.ts'

/** The position of a page in its set; `index` counts from 0. */
export interface Page {
  readonly set_id: string
  readonly index: number
  readonly total: number
}

/** The parameters of the database statement for a payload. */
export interface Prepared {
  readonly header: Header
  /** Null for a payload that is not paged. */
  readonly page: Page | null
  /** A JSON array of rows, as text. */
  readonly rows: string
  /** Number of times that were sent and could not be read. */
  readonly unreadableTimes: number
  /** False if the list is null or absent, which counts as empty. */
  readonly hasList: boolean
}

interface Rows<Element> {
  /** @throws HttpError 422 for a row that cannot be stored; `where` is its path in the payload */
  add(element: Element, where: string): void
  finish(): ListedRows
}

interface ListedRows {
  /** A JSON array. */
  readonly rows: string
  /** A hash of the list as it was sent, so that an unchanged one is recognised. */
  readonly hash: string
  readonly unreadableTimes: number
}

/** One of the two kinds of payload: its schema, its list, and how its rows are made. */
export interface PayloadKind<Whole extends z.ZodType, Element extends z.ZodType> {
  readonly schema: Whole
  /** The key of the list that makes it large. */
  readonly listKey: string
  readonly element: Element
  readonly maxElements: number
  createRows(): Rows<z.output<Element>>
  /** Validates the rest, in the fixed order of the refusals; `rows` throws for the first row that cannot be stored. */
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
  /** From the path of the request. */
  readonly digest: string
  readonly maxInflatedBytes: number
  readonly now: number
}

/**
 * Reads a payload. Types are validated before everything else (docs/contract.md#errors).
 * @throws HttpError 400 for a body that is not gzip, not JSON or has a field of the wrong type; 413 above a limit; 422
 * for values that the contract does not allow
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

/** The HttpError that `work` throws; null if it throws none. */
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
