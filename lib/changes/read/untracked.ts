/** The parts of a workload, as SQL expressions. */
interface Container {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly container: string
}

/**
 * SQL: whether a live pod of the workload runs the container, or may, and nobody watches it, as in
 * docs/contract.md#runtime-coverage. The relation `a` has the `moment`. `offset 0` forces a look-up for each row.
 */
export const UNTRACKED = ({ namespace, kind, name, container }: Container) => `exists (
            select from (
              select p.pod_name, p.running_containers
              from pod p
              where p.pod_namespace = ${namespace} and p.workload_kind = ${kind} and p.workload_name = ${name}
                and not p.is_dead
              union all
              select p.pod_name, p.running_containers
              from pod p
              where ${kind} = 'Pod' and p.pod_name = ${name} and p.pod_namespace = ${namespace} and not p.is_dead
                and not is_owned(p.workload_kind, p.workload_name)
              offset 0) l
            where (l.running_containers is null or ${container} = any (l.running_containers)) and not exists (
              select from runtime_coverage t
              where t.pod_namespace = ${namespace} and t.pod_name = l.pod_name
                and (l.running_containers is null or t.container_name = ${container})
                and t.cluster_id = 'primary' and not t.ended
                and t.last_heartbeat >= a.moment - make_interval(secs => 3 * t.heartbeat_secs + 60)
              offset 0)
            offset 0)`
