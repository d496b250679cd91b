/**
 * Fills an empty, migrated database with a realistic cluster: `seedCluster` has 50 nodes, 2 000 workloads and 200 000
 * flows, data of every capability, and the story of `seed/story.ts`.
 */
import type { Connection } from '../../../lib/db/driver-options.ts'
import {
  age,
  ageDeployment,
  ageProfiles,
  contention,
  decide,
  earlierStory,
  insertVerdicts,
  memoryShort,
  postNewFlows,
  postStoryFiles,
  postStoryHistory,
  postStoryImages,
  postStoryPods,
  postStorySyscalls,
  postUsualFlows,
  putStoryProfiles,
  storyDenials,
} from './seed/acts.ts'
import { makeManyWorkloads, makeWorkloads, nodeName, Placement } from './seed/cluster.ts'
import { countFlows, foldMinutes, recordJobs, refreshSupplyChain, storeProfiles } from './seed/derive.ts'
import { copyFlows, edgesOf } from './seed/flows.ts'
import { hostileWorkloads, postHostile } from './seed/hostile.ts'
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
import { makeStory, SILENT_NODES } from './seed/story.ts'
import { postImages } from './seed/supply-chain.ts'

export interface SeedScale {
  readonly nodes: number
  readonly flows: number
  /** Minutes of CPU and memory for each container. */
  readonly minutes: number
}

/** Age of most of the cluster. */
const PAST_DAYS = 24

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
    const story = makeStory(placement, nodes)
    const workloads = makeWorkloads(placement)
    const names = Array.from({ length: nodes }, (_, i) => nodeName(i))
    const live = names.filter((name) => !SILENT_NODES.has(name))
    const before = earlierStory(story)

    await postPods(site, workloads, SILENT_NODES)
    await postStoryPods(site, before)
    note('pods')
    await copyFlows(site.sql, edgesOf(workloads, story.coredns), flows, Date.now())
    note('flows')
    await site.sql`analyze`
    await countFlows(site, { isNew: true })
    note('edges')
    await postImages(site, workloads)
    await postStoryImages(site, true)
    note('images')
    await postSyscalls(site, workloads)
    await postStorySyscalls(site, before, [])
    note('syscalls')
    await postFiles(site, workloads)
    await postStoryFiles(site, before, true)
    note('files')
    await postNodeFacts(site, names)
    const confined = [...(await putProfiles(site, workloads)), ...(await putStoryProfiles(site, story))]
    await postNodeProfiles(site, confined, live, live.slice(-3))
    await postUsualFlows(site, before)
    await countFlows(site)
    await age(site, PAST_DAYS)
    await site.sql`analyze`
    await refreshSupplyChain(site)
    await storeProfiles(site, Object.values(before))
    await ageProfiles(site)
    note('past')

    await postStoryPods(site, story)
    await postStoryImages(site, false)
    await postStorySyscalls(site, story, ['io_uring_setup', 'ptrace'])
    await postStoryFiles(site, story, false)
    await postNewFlows(site, story)
    await postDrains(site, live, storyDenials(site, story))
    await ageDeployment(site)
    await countFlows(site)
    const { sample, minute } = contention(story)
    const all = [...workloads, ...Object.values(story)]
    await postCompute(site, all, live, minutes, { minute, sample: new Map([...sample, memoryShort(story)]) })
    await postStoryHistory(site, story)
    await decide(site, story)
    await insertVerdicts(site, story)
    note('present')
    await site.sql`analyze`
    await foldMinutes(site)
    await refreshSupplyChain(site)
    note('refresh')
    await storeProfiles(site, all)
    await recordJobs(site)
    note('profiles')
    await site.sql`analyze`
  } finally {
    await site.end()
  }
}

const PODS_PER_NODE = 110
const FLOWS_OF_PODS = 20_000

/** A cluster with a given number of pods and little else: owners, images and a few flows, at 110 pods per node. */
export async function seedPods(connection: Connection, pods: number): Promise<void> {
  const site = await openSite(connection)
  try {
    const workloads = makeManyWorkloads(new Placement(Math.ceil(pods / PODS_PER_NODE)), pods)
    await postPods(site, workloads)
    await copyFlows(site.sql, edgesOf(workloads, workloads[0]!), FLOWS_OF_PODS, Date.now())
    await site.sql`analyze`
    await countFlows(site, { isNew: true })
    await age(site, PAST_DAYS)
    await recordJobs(site)
    await site.sql`analyze`
  } finally {
    await site.end()
  }
}

/** Hostile records only, with the data that jobs derive from them. */
export async function seedHostile(connection: Connection): Promise<void> {
  const site = await openSite(connection)
  try {
    await postHostile(site)
    await countFlows(site)
    await foldMinutes(site)
    await refreshSupplyChain(site)
    await storeProfiles(site, hostileWorkloads())
    await recordJobs(site)
    await site.sql`analyze`
  } finally {
    await site.end()
  }
}

const MANY_PODS = 43_000

/** The seeds by name. */
export const SEEDS = {
  cluster: (connection: Connection) => seedCluster(connection),
  pods: (connection: Connection) => seedPods(connection, MANY_PODS),
  hostile: seedHostile,
} as const satisfies Record<string, (connection: Connection) => Promise<void>>
export type Seed = keyof typeof SEEDS

export const isSeed = (name: string): name is Seed => Object.hasOwn(SEEDS, name)
