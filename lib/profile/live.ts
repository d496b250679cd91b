/**
 * SQL: whether a pod of the workload that the row `t` names is alive. A pod that was posted without its workload is one
 * of its own. Each part is a scalar subquery, so that PostgreSQL looks up the pods of one workload in an index for each
 * row of a page; with `exists` it may read all live pods instead.
 */
export const isLive = (t: string): string => `
  (coalesce((select true from pod p
             where p.pod_namespace = ${t}.pod_namespace and p.workload_kind = ${t}.workload_kind
               and p.workload_name = ${t}.workload_name and not p.is_dead
             limit 1), false)
   or ${t}.workload_kind = 'Pod' and coalesce((select true from pod p
             where p.pod_name = ${t}.workload_name and p.pod_namespace = ${t}.pod_namespace
               and not is_owned(p.workload_kind, p.workload_name) and not p.is_dead
             limit 1), false))`
