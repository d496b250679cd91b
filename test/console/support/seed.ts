/**
 * Fills an empty, migrated database with a cluster as one meets it: `seedCluster` has 50 nodes, 2 000 workloads and
 * 200 000 flows with something of every capability, and the story of `seed/story.ts`.
 */
import type { Connection } from '../../../lib/db/driver-options.ts'
import { makeWorkloads, nodeName, Placement } from './seed/cluster.ts'
import { countFlows, foldMinutes, refreshSupplyChain, storeProfiles } from './seed/derive.ts'
import { copyFlows, edgesOf } from './seed/flows.ts'
import { postPods } from './seed/pods.ts'
import {
  postCompute,
  postDrains,
  postFiles,
  postNodeFacts,
  postNodeProfiles,
  postSyscalls,
  putProfiles,
} from './seed/runtime.ts'
import { openSite } from './seed/site.ts'
import { postImages } from './seed/supply-chain.ts'

export interface SeedScale {
  readonly nodes: number
  readonly flows: number
  /** Minutes of CPU and memory of every container. */
  readonly minutes: number
}

export const CLUSTER: SeedScale = { nodes: 50, flows: 200_000, minutes: 6 }

export async function seedCluster(
  connection: Connection,
  { nodes, flows, minutes }: SeedScale = CLUSTER,
  note: (step: string) => void = () => {},
): Promise<void> {
  const site = await openSite(connection)
  try {
    await site.sql`set synchronous_commit = off`
    const placement = new Placement(nodes)
    const workloads = makeWorkloads(placement)
    const names = Array.from({ length: nodes }, (_, i) => nodeName(i))
    await postPods(site, workloads)
    note('pods')
    await copyFlows(site.sql, edgesOf(workloads, workloads[0]!), flows, Date.now())
    note('flows')
    await site.sql.unsafe('analyze')
    await countFlows(site, { isNew: true })
    note('edges')
    await postImages(site, workloads)
    note('images')
    await postSyscalls(site, workloads)
    note('syscalls')
    await postFiles(site, workloads)
    note('files')
    await postNodeFacts(site, names)
    const confined = await putProfiles(site, workloads)
    await postNodeProfiles(site, confined, nodes, [])
    await postDrains(site, names, new Map())
    note('nodes')
    await postCompute(site, workloads, names, minutes, { sample: new Map(), minute: new Map() })
    note('compute')
    await site.sql.unsafe('analyze')
    await foldMinutes(site)
    note('fold')
    await refreshSupplyChain(site)
    note('refresh')
    await storeProfiles(site, workloads)
    note('profiles')
    await site.sql.unsafe('analyze')
  } finally {
    await site.end()
  }
}

/** What a database can be filled with, by name. */
export const SEEDS = {
  cluster: (connection: Connection) => seedCluster(connection),
} as const satisfies Record<string, (connection: Connection) => Promise<void>>
export type Seed = keyof typeof SEEDS

export const isSeed = (name: string): name is Seed => Object.hasOwn(SEEDS, name)
