import type { Gate } from '../db/index.ts'

/** The values that agents may report of their platform; others count as `unknown` (docs/contract.md#node-facts). */
export const PLATFORM_WORDS = {
  cni: ['cilium', 'calico', 'flannel', 'weave', 'antrea', 'kindnet', 'aws-vpc-cni', 'unknown'],
  ip_family: ['ipv4', 'ipv6', 'dual', 'unknown'],
  provider: [
    ...['aws', 'gcp', 'azure', 'digitalocean', 'hetzner', 'openstack', 'vsphere', 'oracle', 'ibm', 'baremetal', 'kind'],
    'unknown',
  ],
  distro: ['eks', 'gke', 'aks', 'k3s', 'rke2', 'talos', 'openshift', 'kind', 'vanilla', 'unknown'],
  node_os: [
    'talos',
    'bottlerocket',
    'flatcar',
    'cos',
    'ubuntu',
    'debian',
    'rhel',
    'amazonlinux',
    'alpine',
    'other',
    'unknown',
  ],
} as const

const WORDS = JSON.stringify(PLATFORM_WORDS)

/**
 * The platform of the cluster as one JSON object with its keys in wire order (docs/contract.md#node-facts): the most
 * frequent value among its nodes, on a tie the alphabetically last; `dual` if any node says so or if both families
 * occur; policies are enforced only if every node says so.
 */
export async function readEnvironment(gate: Gate): Promise<Buffer> {
  const bytes = await gate.json(
    (sql) => sql`
  with words as (select ${WORDS}::text::jsonb as w),
  said as (
    select case when w -> 'cni'       ? f.cni       then f.cni       else 'unknown' end as cni,
           case when w -> 'ip_family' ? f.ip_family then f.ip_family else 'unknown' end as ip_family,
           case when w -> 'provider'  ? f.provider  then f.provider  else 'unknown' end as provider,
           case when w -> 'distro'    ? f.distro    then f.distro    else 'unknown' end as distro,
           case when w -> 'node_os'   ? f.node_os   then f.node_os   else 'unknown' end as node_os,
           coalesce(f.policy_enforcement, 'unknown') as policy_enforcement
    from node_facts f, words)
  select json_build_object(
    'cni', coalesce(mode() within group (order by cni desc), 'unknown'),
    'ip_family', case when bool_or(ip_family = 'dual') or (bool_or(ip_family = 'ipv4') and bool_or(ip_family = 'ipv6'))
      then 'dual'
                      else coalesce(mode() within group (order by ip_family desc), 'unknown') end,
    'provider', coalesce(mode() within group (order by provider desc), 'unknown'),
    'distro', coalesce(mode() within group (order by distro desc), 'unknown'),
    'node_os', coalesce(mode() within group (order by node_os desc), 'unknown'),
    'policy_enforcement', case when count(*) = 0 or bool_or(policy_enforcement = 'unknown') then 'unknown'
                               when min(policy_enforcement) <> max(policy_enforcement) then 'mixed'
                               else min(policy_enforcement) end,
    'nodes', count(*))
  from said`,
  )
  return bytes!
}
