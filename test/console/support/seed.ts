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
import { copyProfiles, MANY_PACKAGES, postManyImages } from './seed/many.ts'
import { postPods } from './seed/pods.ts'
import {
  postBatches,
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
import { makeTenants, manyDenials, manyFiles, waits } from './seed/tenants.ts'

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
/** Each edge has one or two flows; each pod has one of DNS, with its mirror. */
const FLOWS_OF_PODS = 220_000
const MINUTES_OF_PODS = 5
const COPIED_PROFILES = 4_000

/**
 * A cluster with a given number of pods, about 110 per node: their owners, images with long reports and a few flows.
 * One namespace is large, one of its workloads too, and one node has eight times as many pods. Everything is known of
 * that namespace, and little else of the others.
 */
export async function seedPods(
  connection: Connection,
  pods: number,
  note: (step: string) => void = () => {},
): Promise<void> {
  const site = await openSite(connection)
  try {
    await site.sql`set synchronous_commit = off`
    const nodes = Math.ceil(pods / PODS_PER_NODE)
    const placement = new Placement(nodes)
    const tenants = makeTenants(placement)
    const others = makeManyWorkloads(placement, pods - tenants.reduce((sum, one) => sum + one.pods.length, 0))
    const workloads = [...tenants, ...others]
    const names = Array.from({ length: nodes }, (_, i) => nodeName(i))
    await postPods(site, workloads)
    note('pods')
    const dns = { ...others[0]!, pods: others[0]!.pods.slice(0, 1) }
    await copyFlows(site.sql, edgesOf(workloads, dns), FLOWS_OF_PODS, Date.now())
    await site.sql`analyze`
    note('flows')
    await countFlows(site, { isNew: true })
    note('edges')
    await postManyImages(site, workloads)
    note('images')
    await postSyscalls(site, tenants)
    await postFiles(site, tenants)
    await postBatches(site, '/runtime/executables', manyFiles(site, tenants, MANY_PACKAGES))
    await postNodeFacts(site, names)
    await postNodeProfiles(site, await putProfiles(site, tenants), names, names.slice(-3))
    await age(site, PAST_DAYS)
    await site.sql`analyze`
    note('past')
    await postDrains(site, names, manyDenials(site, tenants))
    await postCompute(site, tenants, names, MINUTES_OF_PODS, waits(tenants))
    note('present')
    await site.sql`analyze`
    await foldMinutes(site)
    await refreshSupplyChain(site)
    note('refresh')
    await storeProfiles(site, tenants)
    await copyProfiles(site, COPIED_PROFILES)
    await recordJobs(site)
    note('profiles')
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
