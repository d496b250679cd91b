/**
 * The reference evaluation of findings (docs/contract.md#findings): the rules step by step, written for clarity and not
 * for speed. It shares only the type of a finding with the broker, and records every step that it takes.
 */
import type { Finding, Thresholds } from '../../lib/compute/findings/index.ts'
import type { StoredHistory, StoredMinute } from '../support/compute.ts'

export interface World {
  readonly histories: readonly StoredHistory[]
  /** Memory pressure by node. */
  readonly nodes: ReadonlyMap<string, number>
}

export interface Scope {
  readonly namespace?: string
  readonly node?: string
}

type Said = Omit<Finding, 'message'>
type Row = StoredMinute

const bytewise = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

export function evaluate(
  world: World,
  scope: Scope,
  limits: Thresholds,
  timeOf: (ageSecs: number) => string,
  step: (name: string) => void,
) {
  const loaded = new Map<string, { history: StoredHistory; rows: Row[] }>()
  for (const history of world.histories) {
    const rows = history.minutes.filter((row) => row.ageSecs <= 300 && (row.resolutionSecs ?? 60) === 60)
    rows.sort((a, b) => b.ageSecs - a.ageSecs)
    if (rows.length > 0) loaded.set(history.container.containerUid, { history, rows: rows.slice(-6) })
  }
  const inScope = [...loaded.values()].filter(
    ({ history: { container } }) =>
      (scope.namespace === undefined || container.namespace === scope.namespace) &&
      (scope.node === undefined || container.node === scope.node),
  )
  inScope.sort((a, b) => bytewise(a.history.container.containerUid, b.history.container.containerUid))
  const findings: Said[] = []
  for (const { history, rows } of inScope.slice(0, 500)) {
    const cpu = cpuOf(history, rows)
    if (cpu) findings.push(cpu)
    const memory = memoryOf(history, rows)
    if (memory) findings.push(memory)
  }
  return { findings, truncated: inScope.length > 500, victims_evaluated: Math.min(inScope.length, 500) }

  function skip(name: string): null {
    step(name)
    return null
  }

  /** The ages of the first and the last row that satisfy the condition; null if it is not sustained. */
  function sustained(rows: Row[], satisfies: (row: Row) => boolean): [number, number] | null {
    let run = 0
    let longest = 0
    const ages: number[] = []
    for (const row of rows) {
      run = satisfies(row) ? run + 1 : 0
      longest = Math.max(longest, run)
      if (satisfies(row)) ages.push(row.ageSecs)
    }
    return longest >= 2 ? [Math.max(...ages), Math.min(...ages)] : null
  }

  function said(
    history: StoredHistory,
    rows: Row[],
    kind: Said['kind'],
    severity: Said['severity'],
    ages: number[],
    nodeSome: number,
    culprit: Said['culprit'] = null,
  ): Said {
    step(kind)
    step(severity)
    const c = history.container
    const p99s = rows.flatMap((row) => (row.runqP99Us === null ? [] : [row.runqP99Us]))
    return {
      kind,
      severity,
      victim: {
        pod_uid: c.podUid,
        namespace: c.namespace,
        pod_name: c.podName,
        container: c.container,
        container_uid: c.containerUid,
        node: c.node,
      },
      culprit,
      evidence: {
        window_minutes: 5,
        cpu_psi_some10_max: Math.max(...rows.map((row) => row.cpuSomeMax)),
        cpu_psi_full10_max: Math.max(...rows.map((row) => row.cpuFullMax)),
        runq_p99_us_max: p99s.length > 0 ? Math.max(...p99s) : null,
        throttled_ratio: ratioOf(rows),
        mem_psi_some10_max: Math.max(...rows.map((row) => row.memorySomeMax)),
        node_mem_some10_max: nodeSome,
        refault_delta: rows.map((row) => row.refaults).reduce((a, b) => a + b, 0),
        mem_events_high_delta: rows.map((row) => row.eventsHigh).reduce((a, b) => a + b, 0),
      },
      first_seen: timeOf(Math.max(...ages)),
      last_seen: timeOf(Math.min(...ages)),
    }
  }

  function ratioOf(rows: Row[]): number {
    let [throttled, quota] = [0, 0]
    for (const row of rows) {
      throttled += row.throttledUsec
      quota += row.periods * row.periodUsec
    }
    return quota === 0 ? 0 : Math.max(0, Math.min(1, throttled / quota))
  }

  function cpuOf(history: StoredHistory, rows: Row[]): Said | null {
    // 0
    const psi = sustained(rows, (row) => row.cpuSomeAvg >= limits.stallSome)
    const runq = sustained(rows, ({ runqCount, runqP99Us, runqOverflow }) => {
      if (runqOverflow !== null && runqOverflow > 0) return true
      if (runqCount === null || runqP99Us === null) return false
      return runqCount / (60 / 60) >= limits.minRunqEvents && runqP99Us >= limits.runqP99Ms * 1000
    })
    const stalled = psi !== null || runq !== null
    step(`stall: ${psi ? 'psi' : ''} ${runq ? 'runq' : ''}`)
    // 1
    const ratio = ratioOf(rows)
    if (ratio >= limits.throttledRatio) {
      const all = rows.map((row) => row.ageSecs)
      return said(history, rows, 'cpu-throttled', stalled ? 'high' : 'medium', all, 0)
    }
    // 2
    if (!stalled) return skip('2: not stalled')
    if (ratio > limits.throttledRatioMax) return skip('2: throttled')
    if (ratio === limits.throttledRatioMax) step('2: just not throttled')
    // 3
    let severity: Said['severity'] = psi && runq ? 'high' : 'medium'
    if (rows.some((row) => row.cpuFullMax >= 10 || (row.runqOverflow ?? 0) > 0 || (row.runqP99Us ?? 0) >= 200_000))
      severity = 'critical'
    step(`3: ${severity}`)
    const ages = [...(psi ?? []), ...(runq ?? [])]
    const contended = (name: string) => {
      step(name)
      return said(history, rows, 'cpu-contended', severity, ages, 0)
    }
    // 4: all waits of the window, in whichever rows they were posted.
    const sums = new Map<string, number>()
    for (const row of history.minutes) {
      if (row.ageSecs > 300) continue
      for (const { kind, ref, containerUid, waitNs } of row.waits) {
        if (containerUid === history.container.containerUid) continue
        const key = [kind, ref, containerUid ?? ''].join('|')
        sums.set(key, (sums.get(key) ?? 0) + waitNs)
      }
    }
    const all = [...sums.values()].reduce((a, b) => a + b, 0)
    if (all === 0) return contended('4a')
    const known = [...sums].filter(([key]) => !key.startsWith('unknown|'))
    const unknown = all - known.reduce((a, [, wait]) => a + wait, 0)
    if (unknown / all >= limits.blameShare) return contended('4b')
    known.sort(([a, x], [b, y]) => y - x || bytewise(a, b))
    if (known.length === 0) return contended('4c: nobody')
    const [key, wait] = known[0]!
    const share = wait / all
    if (share < limits.blameShare) return contended('4c: light')
    const [kind, ref, uid] = key.split('|') as [string, string, string]
    const noisy = (name: string, pod: Partial<NonNullable<Said['culprit']>>) => {
      step(name)
      const nothing = { pod_uid: null, namespace: null, pod_name: null, container_uid: null }
      const culprit = {
        kind: kind as 'pod',
        ref,
        ...nothing,
        blame_share: share,
        cpu_usage_millis: null,
        cpu_request_millis: null,
        ...pod,
      }
      return said(history, rows, 'noisy-neighbor', severity, ages, 0, culprit)
    }
    if (kind === 'system' || kind === 'kernel') return noisy(`4h: ${kind}`, {})
    if (kind !== 'pod') return contended('4i')
    if (uid === '') return contended('4d')
    const theirs = loaded.get(uid)
    if (theirs === undefined) {
      const [namespace, pod] = ref.split('/')
      return noisy('4e', {
        pod_uid: uid.slice(0, uid.indexOf('/')),
        namespace: namespace!,
        pod_name: pod!,
        container_uid: uid,
      })
    }
    const usage = theirs.rows.map((row) => row.usageMillis).reduce((a, b) => a + b, 0) / theirs.rows.length
    const request = theirs.rows[theirs.rows.length - 1]!.requestMillis
    if (request !== null && usage <= request) return contended('4f')
    const { podUid, namespace, podName, containerUid } = theirs.history.container
    return noisy(request === null ? '4g: no request' : '4g: above', {
      pod_uid: podUid,
      namespace,
      pod_name: podName,
      container_uid: containerUid,
      cpu_usage_millis: usage,
      cpu_request_millis: request,
    })
  }

  function memoryOf(history: StoredHistory, rows: Row[]): Said | null {
    // 0
    const psi = sustained(rows, (row) => row.memorySomeAvg >= limits.memStallSome)
    const ref = sustained(rows, (row) => row.refaults / (60 / 60) >= limits.refaultPerMin)
    step(`memory: ${psi ? 'psi' : ''} ${ref ? 'ref' : ''}`)
    if (!psi && !ref) return null
    // 1
    let severity: Said['severity'] = psi && ref ? 'high' : 'medium'
    if (rows.some((row) => row.oomKills > 0 || row.memoryFullMax >= 10)) severity = 'critical'
    step(`memory 1: ${severity}`)
    const ages = [...(psi ?? []), ...(ref ?? [])]
    // 2
    const nodeSome = world.nodes.get(history.container.node) ?? 0
    if (nodeSome >= 5) {
      const culprit = memoryCulprit(history)
      step(`memory 2: ${culprit ? 'culprit' : 'nobody'}`)
      return said(history, rows, 'memory-pressure', severity, ages, nodeSome, culprit)
    }
    // 3
    const hits = sustained(rows, (row) => row.eventsHigh + row.eventsMax > 0)
    if (rows[rows.length - 1]!.memoryLimitBytes !== null && hits) {
      return said(history, rows, 'memory-limit-thrash', severity, [...ages, ...hits], nodeSome)
    }
    // 4
    step('memory 4')
    return null
  }

  function memoryCulprit(history: StoredHistory): Said['culprit'] {
    const there = [...loaded.values()].filter((one) => one.history.container.node === history.container.node)
    let sum = 0
    const candidates: { at: (typeof there)[number]; over: number }[] = []
    for (const at of there) {
      const newest = at.rows[at.rows.length - 1]!
      const over = newest.memoryBytes - (newest.memoryRequestBytes ?? 0)
      if (over <= 0) continue
      sum += over
      const isOther = at.history.container.containerUid !== history.container.containerUid
      if (isOther && at.rows.length >= 2 && newest.memoryBytes > at.rows[0]!.memoryBytes) candidates.push({ at, over })
    }
    candidates.sort(
      (a, b) => b.over - a.over || bytewise(a.at.history.container.containerUid, b.at.history.container.containerUid),
    )
    const heaviest = candidates[0]
    if (!heaviest) return skip('2a: none')
    if (heaviest.over / sum < 0.4) return skip('2a: light')
    const { container } = heaviest.at.history
    const { rows } = heaviest.at
    return {
      kind: 'pod',
      ref: [container.namespace, container.podName, container.container].join('/'),
      pod_uid: container.podUid,
      namespace: container.namespace,
      pod_name: container.podName,
      container_uid: container.containerUid,
      blame_share: heaviest.over / sum,
      cpu_usage_millis: rows.map((row) => row.usageMillis).reduce((a, b) => a + b, 0) / rows.length,
      cpu_request_millis: rows[rows.length - 1]!.requestMillis,
    }
  }
}

/** The steps that the random histories must have reached. */
export const STEPS = [
  ...['noisy-neighbor', 'cpu-throttled', 'cpu-contended', 'memory-pressure', 'memory-limit-thrash'],
  ...[
    'critical',
    'high',
    'medium',
    '3: critical',
    '3: high',
    '3: medium',
    'memory 1: critical',
    'memory 1: high',
    'memory 1: medium',
  ],
  ...[
    'stall:  ',
    'stall: psi ',
    'stall:  runq',
    'stall: psi runq',
    'memory:  ',
    'memory: psi ',
    'memory:  ref',
    'memory: psi ref',
  ],
  ...['2: not stalled', '2: throttled', '2: just not throttled'],
  ...[
    '4a',
    '4b',
    '4c: nobody',
    '4c: light',
    '4d',
    '4e',
    '4f',
    '4g: no request',
    '4g: above',
    '4h: system',
    '4h: kernel',
    '4i',
  ],
  ...['memory 2: culprit', 'memory 2: nobody', '2a: none', '2a: light', 'memory 4'],
]
