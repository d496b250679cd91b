/** What findings are made of: plain rows, of one window and of one minute each, the oldest first. */

/** A container by the names that its newest row has. */
export interface Container {
  readonly containerUid: string
  readonly podUid: string
  readonly namespace: string
  readonly podName: string
  readonly container: string
  readonly node: string
}

/** What a container takes, in one minute. */
export interface Usage {
  readonly usageMillis: number
  readonly requestMillis: number | null
  readonly memoryBytes: number
  readonly memoryRequestBytes: number | null
}

/** All of a minute that a container is judged by. Percentages are those of the kernel's averages over 10 s, counts are of the minute. */
export interface Minute extends Usage {
  /** `YYYY-MM-DDTHH:MM:SS` and a fraction or none, UTC. */
  readonly ts: string
  readonly limitMillis: number | null
  readonly periodUsec: number
  readonly periods: number
  readonly throttledUsec: number
  readonly cpuSomeAvg: number
  readonly cpuSomeMax: number
  readonly cpuFullMax: number
  readonly memoryLimitBytes: number | null
  readonly memorySomeAvg: number
  readonly memorySomeMax: number
  readonly memoryFullMax: number
  readonly eventsHigh: number
  readonly eventsMax: number
  readonly oomKills: number
  readonly refaults: number
  /** This and what follows is null without the scheduler probe. */
  readonly runqCount: number | null
  readonly runqP99Us: number | null
  readonly runqOverflow: number | null
}

/** For how long one group kept a container from running. */
export interface Wait {
  readonly kind: string
  readonly ref: string
  readonly containerUid: string | null
  readonly waitNs: number
}

/** All that a container waited for. */
export interface Blame {
  /** The heaviest, at least; of a group there may be several. */
  readonly waits: readonly Wait[]
  /** What others come to that are not in the list. */
  readonly restNs: number
  /** False where there was more than is read: then no share of it can be told. */
  readonly isWhole: boolean
}

/** A container that may be to blame. */
export interface Neighbor {
  readonly container: Container
  readonly rows: readonly Usage[]
}

export interface Node {
  /** Its newest memory pressure, percent. */
  readonly memorySome10: number
  /** All containers on it that have rows, the victim too; null where they were not read, or not all of them. */
  readonly containers: readonly Neighbor[] | null
}

/** A container that is judged. */
export interface Victim {
  readonly container: Container
  /** At least one. */
  readonly rows: readonly Minute[]
  readonly blame: Blame
  readonly node: Node
}

/** A container that was blamed, by its uid; undefined where it has no rows. */
export type FindNeighbor = (containerUid: string) => Neighbor | undefined
