/** Rows by container, both in their order. */
export function byContainer<R extends { readonly container: string }>(rows: readonly R[]): Map<string, R[]> {
  const lists = new Map<string, R[]>()
  for (const row of rows) {
    const list = lists.get(row.container)
    if (list) list.push(row)
    else lists.set(row.container, [row])
  }
  return lists
}
