/** Reads what policies are made from (docs/contract.md#network-policies). */
import type { Database } from '../db/index.ts'
import { readRange, stillCounting } from '../flows/index.ts'
import { fromPostgres } from '../time/timestamp.ts'
import type { Facts } from './facts.ts'
import type { GenerateQuery } from './generate-query.ts'
import { RESOLVER_NAMESPACES } from './make/dns.ts'
import type { MakeOptions } from './make/policy.ts'
import {
  namespacesOf,
  type Part,
  readConnections,
  readEdgeFacts,
  readPods,
  readServices,
  readWatched,
  type WatchedWorkload,
} from './read.ts'

/** The settings that policies depend on. */
export interface PolicySettings {
  readonly trafficRetentionDays: number
  readonly flowEdgeRetentionDays: number
  readonly peerStaleAliveSecs: number
  readonly annotationPrefix: string
}

/** Everything that the policies of a part of the cluster are made from. */
export interface Everything {
  readonly facts: Facts
  readonly watched: readonly WatchedWorkload[]
  readonly options: MakeOptions
}

/** @throws HttpError 503 while edges are counted for the first time; 400 for too many of them */
export async function readAll(
  db: Database,
  part: Exclude<Part, null>,
  { since, ...query }: GenerateQuery,
  config: PolicySettings,
): Promise<Everything> {
  const { read } = db
  const range = (await readRange(read, since, null, config.trafficRetentionDays))!
  const { asOf, now } = await readEdgeFacts(read, range.since, config.flowEdgeRetentionDays)
  if (asOf === null) throw stillCounting()
  const connections = await readConnections(read, range, part)
  const namespaces = [...new Set([part.namespace, ...RESOLVER_NAMESPACES, ...namespacesOf(connections)])]
  const services = await readServices(read, namespaces)
  const { pods } = await readPods(read, namespaces, null)
  const watched = await readWatched(read, part.namespace, config.peerStaleAliveSecs)
  const from = since === null ? null : fromPostgres(range.since)
  return {
    facts: { pods, services, connections },
    watched: [...watched].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    options: { ...query, since: from, now, prefix: config.annotationPrefix },
  }
}

const keyOf = ({ workload }: WatchedWorkload) => `${workload.kind}/${workload.name}`
