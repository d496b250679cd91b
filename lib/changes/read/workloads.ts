/** The relations that all reads of workloads of a namespace begin with (docs/contract.md#changes). */

/** A workload of the namespace that is asked about. */
export interface WorkloadName {
  readonly kind: string
  readonly name: string
}

/** The facts of some workloads, in the order in which they were asked for. */
export type OfEach<T> = readonly T[]

/**
 * SQL: `workloads` with the number, kind and name of each. The relation `asked` has the JSON `workloads` of
 * `workloadsJson`.
 */
export const WORKLOADS = `
  workloads as materialized (
    select k.n, k.kind collate "C" as kind, k.name collate "C" as name
    from asked a cross join json_to_recordset(a.workloads) k(n integer, kind text, name text))`

export const workloadsJson = (workloads: readonly WorkloadName[]): string =>
  JSON.stringify(workloads.map(({ kind, name }, n) => ({ n, kind, name })))

/** SQL: whether a row of a table that has the names of its workload is of the workload `k`. */
export const isOf = (row: string) =>
  `${row}.pod_namespace = a.namespace and ${row}.workload_kind = k.kind and ${row}.workload_name = k.name`

/** The rows of each workload; `empty` where there is none. */
export function ofEach<R extends { readonly n: number }, T>(
  workloads: readonly WorkloadName[],
  rows: readonly R[],
  take: (row: R) => T,
  empty: () => T,
): T[] {
  const byNumber = new Map(rows.map((row) => [row.n, row]))
  return workloads.map((_, n) => {
    const row = byNumber.get(n)
    return row === undefined ? empty() : take(row)
  })
}
