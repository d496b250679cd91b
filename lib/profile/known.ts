/** Whether anything is known of a workload (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../db/index.ts'
import { BAD_REQUEST, CodedError, coded } from '../http/coded-errors.ts'
import type { WorkloadKey } from './built.ts'

// A pod without an owner is a workload of its own.
const KNOWN = fixed<{ is_known: boolean }[]>(`
  with asked as materialized (select $1::text as namespace, $2::text as kind, $3::text as name)
  select exists (
           select from workload_container w
           where w.pod_namespace = a.namespace and w.workload_kind = a.kind and w.workload_name = a.name)
      or exists (
           select from workload_syscalls s
           where s.pod_namespace = a.namespace and s.workload_kind = a.kind and s.workload_name = a.name)
      or exists (
           select from pod p
           where p.pod_namespace = a.namespace and p.workload_kind = a.kind and p.workload_name = a.name)
      or a.kind = 'Pod' and exists (
           select from pod p
           where p.pod_name = a.name and p.pod_namespace = a.namespace
             and not is_owned(p.workload_kind, p.workload_name))
      or exists (
           select from workload_profile_version v
           where v.pod_namespace = a.namespace and v.workload_kind = a.kind and v.workload_name = a.name) as is_known
  from asked a`)

export async function isKnownWorkload(gate: Gate, { namespace, kind, name }: WorkloadKey): Promise<boolean> {
  const [row] = await gate((sql) => KNOWN(sql, namespace, kind, name))
  return row!.is_known
}

/** The refusals of the routes about one workload, for the document. */
export const WORKLOAD_REFUSALS = {
  ...BAD_REQUEST,
  404: { description: 'Nothing is known of the workload: `workload_not_found`.', answer: CodedError },
}

/** 404 with a code, by which clients tell an unknown workload from a broker without the route. */
export const workloadNotFound = ({ namespace, kind, name }: WorkloadKey) =>
  coded(404, 'workload_not_found', `nothing is known of ${kind} ${namespace}/${name}`)
