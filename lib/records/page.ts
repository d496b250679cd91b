/** A page of a list. */
export interface Page<Cursor> {
  /** Its records as JSON objects joined with commas, without the brackets of an array. */
  json: Buffer
  /** The same within the brackets, on the same memory, where there was room for them. */
  array?: Buffer
  count: number
  /** Where it ended, for the page that follows; null when none does. */
  last: Cursor | null
}
