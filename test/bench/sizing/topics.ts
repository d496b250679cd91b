/** Tables by topic, and what they take. */
import type postgres from 'postgres'

interface Topic {
  readonly title: string
  /** Of the names of its tables. A table belongs to the topic with the longest prefix. */
  readonly prefixes: readonly string[]
  /** The table whose rows are the unit, and what a row is. */
  readonly countedBy: string
  readonly unit: string
}

export const TOPICS = {
  flows: { title: 'Flows', prefixes: ['traffic'], countedBy: 'traffic', unit: 'a flow' },
  edges: {
    title: 'Edges of flows',
    prefixes: ['flow_edge', 'flow_pod', 'flow_address'],
    countedBy: 'flow_edge',
    unit: 'an edge',
  },
  edgePods: {
    title: 'Pods of edges',
    prefixes: ['flow_edge_pod'],
    countedBy: 'flow_edge_pod',
    unit: 'a pod that reported an edge',
  },
  verdicts: { title: 'Verdicts', prefixes: ['audit_'], countedBy: 'audit_verdict', unit: 'a verdict' },
  pods: {
    title: 'Pods, their labels and system calls',
    prefixes: ['pod', 'syscall_', 'unattributed_', 'workload_syscalls'],
    countedBy: 'pod',
    unit: 'a pod',
  },
  services: { title: 'Services', prefixes: ['service'], countedBy: 'service', unit: 'a service' },
  nodes: {
    title: 'Nodes',
    prefixes: ['node_', 'seccomp_node', 'seccomp_file', 'seccomp_cr', 'seccomp_denial_node', 'compute_node'],
    countedBy: 'node_facts',
    unit: 'a node',
  },
  denials: {
    title: 'Denials',
    prefixes: ['seccomp_denial'],
    countedBy: 'seccomp_denial',
    unit: 'a pod, system call and action',
  },
  executables: {
    title: 'Executables',
    prefixes: ['runtime_executable'],
    countedBy: 'runtime_executable',
    unit: 'a file of a container of a workload, by image',
  },
  watched: {
    title: 'Watched containers',
    prefixes: ['runtime_coverage'],
    countedBy: 'runtime_coverage',
    unit: 'a container',
  },
  capabilities: {
    title: 'Capabilities',
    prefixes: ['runtime_capability'],
    countedBy: 'runtime_capability',
    unit: 'a capability of a container of a workload, by image',
  },
  images: {
    title: 'Images and their containers',
    prefixes: ['image', 'workload_container'],
    countedBy: 'workload_container',
    unit: 'a container of a workload, by image',
  },
  findings: {
    title: 'Findings',
    prefixes: ['image_finding', 'image_cve', 'cve_', 'finding_', 'summary_', 'tier_'],
    countedBy: 'image_finding',
    unit: 'a finding',
  },
  components: {
    title: 'Components of images',
    prefixes: ['image_component', 'package_', 'payload_', 'container_use', 'use_', 'sbom_'],
    countedBy: 'image_component',
    unit: 'a component',
  },
  profiles: {
    title: 'Profiles of workloads',
    prefixes: ['workload_profile'],
    countedBy: 'workload_profile_version',
    unit: 'a version',
  },
  samples: {
    title: 'Latest samples',
    prefixes: ['compute_latest'],
    countedBy: 'compute_latest',
    unit: 'a container',
  },
  compute: {
    title: 'Compute history',
    prefixes: ['compute_'],
    countedBy: 'compute_container',
    unit: 'all that is kept of a container',
  },
} as const satisfies Record<string, Topic>
export type TopicName = keyof typeof TOPICS

/** Few rows in any cluster: the state of the broker itself, and what people decide. */
export const SMALL = ['install', 'job_run', 'schema_', 'vex_', 'vuln_decision']

/** Null for a table of no topic. */
export function topicOf(table: string): TopicName | null {
  const found = (Object.entries(TOPICS) as [TopicName, Topic][])
    .flatMap(([name, { prefixes }]) => prefixes.map((prefix) => ({ name, prefix })))
    .filter(({ prefix }) => table.startsWith(prefix))
    .sort((a, b) => b.prefix.length - a.prefix.length)
  return found[0]?.name ?? null
}

export interface Table {
  readonly table: string
  readonly rows: number
  /** With its indexes, long values, and maps of free space and visibility. */
  readonly bytes: number
}

/** All tables with rows, the largest first. Partitions count for their table. */
export async function readTables(sql: postgres.Sql): Promise<Table[]> {
  const tables = await sql<{ table: string; bytes: number }[]>`
    select coalesce(p.relname, c.relname) as table, sum(pg_total_relation_size(c.oid))::float8 as bytes
    from pg_class c
    left join pg_inherits i on i.inhrelid = c.oid
    left join pg_class p on p.oid = i.inhparent
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
    group by 1
    order by 2 desc, 1`
  const counted: Table[] = []
  for (const { table, bytes } of tables) {
    const [row] = await sql<{ rows: number }[]>`select count(*)::float8 as rows from ${sql(table)}`
    if (row!.rows > 0) counted.push({ table, rows: row!.rows, bytes })
  }
  return counted
}
