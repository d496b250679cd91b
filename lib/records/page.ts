/** A page of a list. */
export interface Page<Cursor> {
  /** Its records as JSON objects joined with commas, without the brackets of an array. */
  json: Buffer
  /** The same with the brackets, on the same memory, if there was room for them. */
  array?: Buffer
  count: number
  /** The cursor for the next page; null if this is the last one. */
  last: Cursor | null
}
