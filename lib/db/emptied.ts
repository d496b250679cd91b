/** What a query of the driver holds for as long as it is alive itself. */
export interface DriverQuery {
  args: unknown
  options: unknown
  parameters: unknown
  string: unknown
  signature: unknown
}

/**
 * The rows, taken out of a query that is done. It outlives its use: `this.resolve = (x) => …` in the driver's constructor is an
 * assignment of a function to a property, which V8 allocates among the old objects, and a dead old object keeps what it leads to
 * alive until the next full collection. Values, texts and rows are not to wait for that.
 */
export function emptied(query: DriverQuery, result: unknown[]): unknown[] {
  query.args = query.options = query.parameters = query.string = query.signature = null
  return result.splice(0)
}
