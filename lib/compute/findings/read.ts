import type { Gate } from '../../db/index.ts'
import type { Slice } from '../../event-loop/slices.ts'
import { MAX_VICTIMS } from './contract.ts'
import { SHORT_SOME10 } from './memory.ts'
import type { Container, Minute, Neighbor, Node, Usage, Victim, Wait } from './rows.ts'
import { type ReadRow, readScope, type Scope } from './statement.ts'
import type { Thresholds } from './thresholds.ts'

export interface Loaded {
  /** Ordered by uid. */
  readonly victims: readonly ReadRow[]
  readonly isTruncated: boolean
  readonly victimOf: (row: ReadRow) => Victim
  readonly find: (containerUid: string) => Neighbor | undefined
}

/** Reads the data for judging the containers of a scope. */
export async function load(gate: Gate, scope: Scope, thresholds: Thresholds, slice: Slice): Promise<Loaded> {
  const rows = await gate((sql) => readScope(sql, scope, thresholds))
  const victims: ReadRow[] = []
  const culprits = new Map<string, Neighbor>()
  const nodes = new Map<string, Neighbor[]>()
  let isTruncated = false
  for (const row of rows) {
    if (row.role === 'cut') isTruncated = true
    else if (row.role === 'victim') victims.push(row)
    else if (row.role === 'culprit') culprits.set(row.container_uid, neighborOf(row))
    else nodes.set(row.node, [...(nodes.get(row.node) ?? []), neighborOf(row)])
    if (slice.isOver) await slice.next()
  }
  // If the window was cut, no node is sure to have all its containers.
  if (isTruncated) nodes.clear()
  const isNodeMissing = ({ node, node_some10, is_short }: ReadRow) =>
    is_short && node_some10! >= SHORT_SOME10 && !nodes.has(node)
  const judged = victims.slice(0, MAX_VICTIMS)
  return {
    victims: judged,
    isTruncated:
      isTruncated || victims.length > MAX_VICTIMS || judged.some((row) => row.is_whole === false || isNodeMissing(row)),
    victimOf: (row) => victimOf(row, { memorySome10: row.node_some10!, containers: nodes.get(row.node) ?? null }),
    find: (containerUid) => culprits.get(containerUid),
  }
}

const containerOf = (row: ReadRow): Container => ({
  containerUid: row.container_uid,
  podUid: row.pod_uid,
  namespace: row.namespace,
  podName: row.pod_name,
  container: row.container,
  node: row.node,
})

type UsageValues = [usage: number, request: number | null, memory: number, memoryRequest: number | null]

const usageOf = ([usageMillis, requestMillis, memoryBytes, memoryRequestBytes]: UsageValues): Usage => ({
  usageMillis,
  requestMillis,
  memoryBytes,
  memoryRequestBytes,
})

const neighborOf = (row: ReadRow): Neighbor => ({
  container: containerOf(row),
  rows: (JSON.parse(row.minutes) as UsageValues[]).map(usageOf),
})

/** Reads values in the order of `MINUTE_COLUMNS`. */
function minuteOf(values: readonly unknown[]): Minute {
  const [time, usage, request, memory, memoryRequest, ...rest] = values as [string, ...UsageValues, ...number[]]
  const [
    limitMillis,
    periodUsec,
    periods,
    throttledUsec,
    cpuSomeAvg,
    cpuSomeMax,
    cpuFullMax,
    memoryLimitBytes,
    ...more
  ] = rest
  const [memorySomeAvg, memorySomeMax, memoryFullMax, eventsHigh, eventsMax, oomKills, refaults, ...runq] = more
  const [runqCount, runqP99Us, runqOverflow] = runq
  return {
    ts: time.replace(' ', 'T'),
    ...usageOf([usage, request, memory, memoryRequest]),
    limitMillis,
    periodUsec,
    periods,
    throttledUsec,
    cpuSomeAvg,
    cpuSomeMax,
    cpuFullMax,
    memoryLimitBytes,
    memorySomeAvg,
    memorySomeMax,
    memoryFullMax,
    eventsHigh,
    eventsMax,
    oomKills,
    refaults,
    runqCount,
    runqP99Us,
    runqOverflow,
  } as Minute
}

const waitOf = ([kind, ref, containerUid, waitNs]: [string, string, string | null, number]): Wait => ({
  kind,
  ref,
  containerUid,
  waitNs,
})

const victimOf = (row: ReadRow, node: Node): Victim => ({
  container: containerOf(row),
  rows: (JSON.parse(row.minutes) as unknown[][]).map(minuteOf),
  blame: {
    waits: row.waits === null ? [] : (JSON.parse(row.waits) as [string, string, string | null, number][]).map(waitOf),
    restNs: row.rest_ns ?? 0,
    isWhole: row.is_whole ?? true,
  },
  node,
})
