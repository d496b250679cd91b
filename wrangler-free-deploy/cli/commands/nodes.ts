import { answered, composed, jsonQuestion } from '../list/composed.ts'
import { counted } from '../output/lines.ts'
import { memoryColumn, percentColumn } from '../output/units.ts'

interface NodeStatus {
  readonly node: string
  readonly lastPodPostAt: string | null
  readonly alivePods: number
  readonly lastHeartbeatAt: string | null
  readonly stale: boolean
}

interface NodeCompute {
  readonly node: string
  readonly compute_enabled: boolean
  readonly compute_supported: boolean
  readonly contention_loaded: boolean
  readonly cpu_some10: number
  readonly mem_some10: number
  readonly cpu_cores: number
  readonly memory_bytes: number
}

interface Row extends NodeStatus {
  /** Null of a node that has never sent a heartbeat. */
  readonly compute: NodeCompute | null
}

interface Nodes {
  readonly staleAfterSecs: number
  readonly nodes: readonly Row[]
}

const STATUS = jsonQuestion(['node', 'status'])
const COMPUTE = jsonQuestion(['compute', 'nodes'])

/** Null is not known, which is not none. */
function probesOf({ compute }: Row): readonly string[] | null {
  if (compute === null) return null
  const probes = [
    ...(compute.compute_enabled && compute.compute_supported ? ['compute'] : []),
    ...(compute.contention_loaded ? ['contention'] : []),
  ]
  return probes.length === 0 ? ['none'] : probes
}

export const nodes = composed<Nodes, Row>({
  questions: [STATUS, COMPUTE],
  compose: async (context, flags) => {
    const [{ staleAfterSecs, nodes: list }, compute] = await Promise.all([
      answered<{ staleAfterSecs: number; nodes: NodeStatus[] }>(context, flags, STATUS),
      answered<{ nodes: NodeCompute[] }>(context, flags, COMPUTE),
    ])
    const byName = new Map(compute.nodes.map((one) => [one.node, one]))
    return { staleAfterSecs, nodes: list.map((one) => ({ ...one, compute: byName.get(one.node) ?? null })) }
  },
  rowsOf: (answer) => answer.nodes,
  columns: [
    { header: 'NODE', of: ({ node }) => node },
    { header: 'PODS', of: ({ alivePods }) => alivePods },
    { header: 'SILENT', of: ({ stale }) => stale, colourOf: ({ stale }) => (stale ? 'red' : null) },
    { header: 'LAST POST', of: ({ lastPodPostAt }) => lastPodPostAt, isTime: true },
    { header: 'HEARTBEAT', of: ({ lastHeartbeatAt }) => lastHeartbeatAt, isTime: true },
    { header: 'CPU', of: ({ compute }) => compute?.cpu_cores, csvHeader: 'CPU CORES' },
    memoryColumn('MEMORY', ({ compute }) => compute?.memory_bytes),
    { header: 'PROBES', of: probesOf },
    percentColumn('CPU PRESSURE', ({ compute }) => compute?.cpu_some10, { isWide: true }),
    percentColumn('MEMORY PRESSURE', ({ compute }) => compute?.mem_some10, { isWide: true }),
  ],
  nameOf: ({ node }) => node,
  said: ({ nodes: list, staleAfterSecs }) => {
    const silent = list.filter(({ stale }) => stale).length
    if (silent === 0) return []
    return [`${silent} of ${counted(list.length, 'node')} silent: no pod posted within ${staleAfterSecs} s`]
  },
  brief: 'List the nodes, when they last reported, and which probes they run',
  description: ['LAST POST is that of pods, HEARTBEAT that of compute. -o json joins the two routes.'],
})
