/**
 * Turns the bytes of a payload into the parameters of the database statement: inflates, validates, cleans, merges and
 * hashes.
 */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { HttpError } from '../errors.ts'
import { describeIssue } from '../http/request/issues.ts'
import { deserializeError } from '../json/parse.ts'
import type { Source } from '../wire-names/index.ts'
import { checkContract, headerOf, type PostedHeader } from './header.ts'
import { inflate } from './inflate.ts'
import { partsOf } from './json-parts.ts'

/** The position of a page in its set; `index` counts from 0. */
export interface Page {
  readonly set_id: string
  readonly index: number
  readonly total: number
}

export type ReportKind = 'vulnerabilities' | 'sbom'

/** The parameters of the database statement for a payload. */
export interface Prepared {
  readonly header: ReturnType<typeof headerOf>
  /** Null for a payload that is not paged. */
  readonly page: Page | null
  /** A JSON array of rows, as text. */
  readonly rows: string
  /** Number of times that were sent and could not be read. */
  readonly unreadableTimes: number
  /** False if the list is null or absent, which counts as empty. */
  readonly hasList: boolean
}

/** Collects the rows of a payload. */
export interface PayloadRows<Element> {
  /**
   * Returns the row of an element as JSON.
   * @throws HttpError 422 for a row that cannot be stored; `where` is its path in the payload
   */
  add(element: Element, where: string): string
  /** The rows to store, as JSON. */
  toList(): readonly string[]
  readonly unreadableTimes: number
}

/** One of the two kinds of payload: its schema, its list, and how its rows are made. */
export interface PayloadSpec<Whole extends z.ZodType<PostedHeader>, Element extends z.ZodType> {
  readonly schema: Whole
  /** The key of the list that makes it large. */
  readonly listKey: string
  readonly element: Element
  readonly maxElements: number
  createRows(): PayloadRows<z.output<Element>>
  /** The fields that only this kind has. By its `hash` a list that was sent before is recognised. */
  finish(
    posted: z.output<Whole>,
    facts: { readonly source: Source; readonly hash: string },
  ): Pick<Prepared, 'page' | 'unreadableTimes'> & { readonly header: Parameters<typeof headerOf>[3] }
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
export function preparePayload<Whole extends z.ZodType<PostedHeader>, Element extends z.ZodType>(
  { schema, listKey, element, maxElements, createRows, finish }: PayloadSpec<Whole, Element>,
  { bytes, isPacked, digest, maxInflatedBytes, now }: SentPayload,
): Prepared {
  const parts = partsOf(isPacked ? inflate(bytes, maxInflatedBytes) : bytes, listKey, maxElements)
  const posted = validated(schema, parts.rest, [])
  const rows = createRows()
  const hash = createHash('sha256')
  let refusal: HttpError | null = null
  for (let i = 0; i < parts.length; i++) {
    const one = validated(element, parts.element(i), [listKey, i])
    // Rows are JSON, which contains no line feed.
    refusal ??= refusalOf(() => hash.update(rows.add(one, `${listKey}[${i}]`)).update('\n'))
  }
  const source = checkContract(posted, digest, now)
  if (refusal !== null) throw refusal
  const { header, page, unreadableTimes } = finish(posted, { source, hash: hash.digest('hex') })
  return {
    header: headerOf(posted, source, parts.length, header),
    page,
    rows: `[${rows.toList().join(',')}]`,
    unreadableTimes: unreadableTimes + rows.unreadableTimes,
    hasList: Array.isArray((parts.rest as Record<string, unknown>)[listKey]),
  }
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

function validated<S extends z.ZodType>(schema: S, value: unknown, path: readonly PropertyKey[]): z.output<S> {
  const { data, error } = schema.safeParse(value)
  if (!error) return data as z.output<S>
  const { path: below, message } = error.issues[0]!
  throw deserializeError(describeIssue({ path: [...path, ...below], message }))
}
