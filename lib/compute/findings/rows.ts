/** The input of findings: rows of one window, one for each minute, the oldest first. */

/** A container with the names of its newest row. */
export interface Container {
  readonly containerUid: string
  readonly podUid: string
  readonly namespace: string
  readonly podName: string
  readonly container: string
  readonly node: string
}

/** The CPU and memory use of a container in one minute. */
export interface Usage {
  readonly usageMillis: number
  readonly requestMillis: number | null
  readonly memoryBytes: number
  readonly memoryRequestBytes: number | null
}

/**
 * The values of one minute that the rules use. Percentages are the kernel's averages over 10 s; counts cover the
 * minute.
 */
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
  /** This field and those below are null without the scheduler probe. */
  readonly runqCount: number | null
  readonly runqP99Us: number | null
  readonly runqOverflow: number | null
}

/** The time that one group kept a container from running. */
export interface Wait {
  readonly kind: string
  readonly ref: string
  readonly containerUid: string | null
  readonly waitNs: number
}

/** All waits of a container. */
export interface Blame {
  /** At least the longest waits; a group may have several entries. */
  readonly waits: readonly Wait[]
  /** The sum of the waits that are not in the list. */
  readonly restNs: number
  /** False if there were more pairs than are read: then no share can be computed. */
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
  /** All containers on the node that have rows, including the victim; null unless all of them were read. */
  readonly containers: readonly Neighbor[] | null
}

/** A container that may have findings. */
export interface Victim {
  readonly container: Container
  /** At least one. */
  readonly rows: readonly Minute[]
  readonly blame: Blame
  readonly node: Node
}

/** Finds a blamed container by its uid; undefined if it has no rows. */
export type FindNeighbor = (containerUid: string) => Neighbor | undefined
