import type { Gate } from '../../db/index.ts'
import type { Slice } from '../../event-loop/slices.ts'
import { MAX_VICTIMS } from './contract.ts'
import { SHORT_SOME10 } from './memory.ts'
import type { Container, Minute, Neighbor, Node, Usage, Victim, Wait } from './rows.ts'
import { MINUTE_COLUMNS, type ReadRow, readScope, type Scope, USAGE_COLUMNS } from './statement.ts'
import type { Thresholds } from './thresholds.ts'

interface Loaded {
  /** Ordered by uid. */
  readonly victims: readonly ReadRow[]
  readonly isTruncated: boolean
  readonly victimOf: (row: ReadRow) => Victim
  readonly find: (containerUid: string) => Neighbor | undefined
}

/** Reads the input of findings for the containers of a scope. */
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
  const evaluated = victims.slice(0, MAX_VICTIMS)
  return {
    victims: evaluated,
    isTruncated:
      isTruncated ||
      victims.length > MAX_VICTIMS ||
      evaluated.some((row) => row.is_whole === false || isNodeMissing(row)),
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

/** Reads an array of values in the order of `columns`. */
function valuesOf<Row>(columns: Readonly<Record<keyof Row & string, string>>, values: readonly unknown[]): Row {
  const row: Record<string, unknown> = {}
  let i = 0
  for (const key in columns) row[key] = values[i++]
  return row as Row
}

const neighborOf = (row: ReadRow): Neighbor => ({
  container: containerOf(row),
  rows: (JSON.parse(row.minutes) as unknown[][]).map((values) => valuesOf<Usage>(USAGE_COLUMNS, values)),
})

const minuteOf = ([ts, ...values]: readonly unknown[]): Minute => ({
  ...valuesOf<Omit<Minute, 'ts'>>(MINUTE_COLUMNS, values),
  ts: (ts as string).replace(' ', 'T'),
})

type WaitValues = [kind: string, ref: string, containerUid: string | null, waitNs: number]
const waitOf = ([kind, ref, containerUid, waitNs]: WaitValues): Wait => ({ kind, ref, containerUid, waitNs })

const victimOf = (row: ReadRow, node: Node): Victim => ({
  container: containerOf(row),
  rows: (JSON.parse(row.minutes) as unknown[][]).map(minuteOf),
  blame: {
    waits: row.waits === null ? [] : (JSON.parse(row.waits) as WaitValues[]).map(waitOf),
    restNs: row.rest_ns ?? 0,
    isWhole: row.is_whole ?? true,
  },
  node,
})
