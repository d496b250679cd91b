/** What agents report of CPU and memory, for tests that are about what is made of it: as rows, and stored without the routes that take it. */
import type { Container, Minute, Wait } from '../../lib/compute/findings/index.ts'

/** A minute of a container, and what it waited in it; how long ago is said by `ageSecs`. */
export interface StoredMinute extends Omit<Minute, 'ts'> {
  readonly ageSecs: number
  readonly waits: readonly Wait[]
  /** Without it a minute. */
  readonly resolutionSecs?: number
}

export interface StoredHistory {
  readonly container: Container
  readonly minutes: readonly StoredMinute[]
}

let names = 0

/** A container with names of its own. */
export function container({
  namespace = 'shop',
  podName = `pod-${++names}`,
  name = 'app',
  node = 'node-1',
}: Partial<Record<'namespace' | 'podName' | 'name' | 'node', string>> = {}): Container {
  const podUid = `uid-${podName}`
  return { containerUid: `${podUid}/${name}`, podUid, namespace, podName, container: name, node }
}

/** A quiet minute with what it says; of pressures the mean is the maximum, too. */
export function minute(over: Partial<StoredMinute> = {}): StoredMinute {
  return {
    ageSecs: 20,
    waits: [],
    usageMillis: 100,
    requestMillis: null,
    limitMillis: 1_000,
    periodUsec: 100_000,
    periods: 600,
    throttledUsec: 0,
    cpuSomeAvg: 0,
    cpuSomeMax: over.cpuSomeAvg ?? 0,
    cpuFullMax: 0,
    memoryBytes: 100 * 2 ** 20,
    memoryRequestBytes: 2 ** 30,
    memoryLimitBytes: null,
    memorySomeAvg: 0,
    memorySomeMax: over.memorySomeAvg ?? 0,
    memoryFullMax: 0,
    eventsHigh: 0,
    eventsMax: 0,
    oomKills: 0,
    refaults: 0,
    runqCount: null,
    runqP99Us: null,
    runqOverflow: null,
    ...over,
  }
}

/** These minutes one after another, the last 20 s ago; null stands for a minute without a row. */
export const minutes = (...rows: readonly (Partial<StoredMinute> | null)[]): StoredMinute[] =>
  rows.flatMap((row, i) => (row === null ? [] : [minute({ ageSecs: 20 + 60 * (rows.length - 1 - i), ...row })]))

export const wait = (kind: string, ref: string, waitNs: number, containerUid: string | null = null): Wait => ({
  kind,
  ref,
  containerUid,
  waitNs,
})

/** A wait for a container. */
export const waitFor = ({ namespace, podName, container, containerUid }: Container, waitNs: number): Wait =>
  wait('pod', `${namespace}/${podName}/${container}`, waitNs, containerUid)
