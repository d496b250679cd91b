/**
 * The lines of the start page. Each line needs a look, is clear, or is not known. Missing data never counts as clear.
 */
import type { JsonAnswer } from '../../api/answers.ts'
import { flowsQuery, type Query } from '../../api/edge.ts'
import { localText, toMs } from '../../parts/moment.ts'
import { counted, numberText } from '../../parts/plural.ts'

export interface Target {
  readonly segments: readonly string[]
  readonly query?: Query
}

type Tone = 'bad' | 'warn' | 'info'

export interface Example {
  readonly text: string
  readonly note?: string
  readonly to: Target
}

export type Part = 'urgent' | 'denials' | 'drops' | 'silent' | 'findings' | 'edges' | 'unscanned' | 'partial'

interface Base {
  readonly key: Part
  /** Link to the rows that the line counts. */
  readonly to: Target
}

export interface Look extends Base {
  readonly state: 'look'
  readonly tone: Tone
  readonly count: number
  /** Whether only a part of the rows was read, so that the count is a lower limit. */
  readonly isAtLeast: boolean
  readonly title: string
  readonly detail: string
  readonly examples: readonly Example[]
}

export interface Other extends Base {
  readonly state: 'clear' | 'unknown'
  readonly title: string
}

export type Line = Look | Other

const DAY_MS = 86_400_000
const MAX_EXAMPLES = 3
/** Flows are counted into edges at most this long after they arrive. */
const COUNT_LAG_MS = 15 * 60_000

type Vulnerabilities = JsonAnswer<'/vulnerabilities'>
type Edges = JsonAnswer<'/flows/edges'>
type Edge = Edges['items'][number]
type Coverage = JsonAnswer<'/coverage'>
type Denials = readonly JsonAnswer<'/seccomp/denials'>[number][]
type Findings = JsonAnswer<'/compute/findings'>

/** The broker does not count very large clusters. */
export const totalText = (part: Coverage['nodes' | 'workloads' | 'images'], one: string): string =>
  part?.totals ? counted(part.totals.total, one) : `? ${one}s`

/** Parameters of `GET /vulnerabilities`, which are also the filter of the linked page. */
export const URGENT = { tier: ['P0', 'P1'], in_use: ['executed', 'loaded'], running: 'true' } as const

export function urgentLine({ items, nextAfter, computedAt }: Vulnerabilities, coverage: Coverage): Line {
  const base = { key: 'urgent', to: { segments: ['vulnerabilities'], query: URGENT } } as const
  if (computedAt === null)
    return { ...base, state: 'unknown', title: 'Vulnerabilities are not counted yet: the first pass has not ended.' }
  if (items.length === 0) {
    const gap = nextAfter === null ? gapOfUse(coverage) : 'there are more than were read'
    const none = 'No vulnerability of tier P0 or P1 in a package that was seen in use'
    return gap === null
      ? { ...base, state: 'clear', title: `${none}.` }
      : { ...base, state: 'unknown', title: `${none}, but ${gap}.` }
  }
  const most = Math.max(0, ...items.map((one) => one.executedWorkloads + one.loadedWorkloads))
  return {
    ...base,
    state: 'look',
    tone: 'bad',
    count: items.length,
    isAtLeast: nextAfter !== null,
    title: `${items.length === 1 ? 'vulnerability' : 'vulnerabilities'} of tier P0 or P1 in use`,
    detail: `Containers used their packages${
      nextAfter === null ? `; the most widespread is in use in ${counted(most, 'workload')}` : ''
    }.`,
    examples: items.slice(0, MAX_EXAMPLES).map((one) => ({
      text: one.id,
      note: `${one.tier ?? ''}, ${counted(one.executedWorkloads + one.loadedWorkloads, 'workload')}`,
      to: { segments: ['vulnerability', one.id] },
    })),
  }
}

/** The gap that could hide a vulnerability in use: images without a report, or containers without a watch. */
function gapOfUse({ images, containers }: Coverage): string | null {
  const [scanned, watched] = [images?.totals, containers?.totals]
  if (!scanned || !watched) return 'what nobody scanned or watched could not be counted'
  if (scanned.missing.no_report > 0)
    return `of ${counted(scanned.missing.no_report, 'running image')} there is no report`
  const unwatched = watched.total - watched.known
  return unwatched === 0
    ? null
    : `${numberText(unwatched)} of ${counted(watched.total, 'container')} ${unwatched === 1 ? 'was' : 'were'} not watched all day`
}

export function sideText({ kind, namespace, name, workload, ip }: Edge['from']): string {
  if (ip !== null) return `${ip} (${kind})`
  const own = workload?.replace(/^[^/]*\//, '') ?? name
  return [namespace, own].filter((one) => one !== null).join('/')
}

const edgeText = ({ from, to, port }: Edge) => `${sideText(from)} → ${sideText(to)}${port === null ? '' : ` :${port}`}`

/** The window of what is new. */
export const SINCE = '24h'

interface EdgeWords {
  readonly key: Part
  readonly tone: Tone
  readonly one: string
  readonly many: string
  readonly detail: string
  readonly clear: string
  readonly to: Target
}

const NEW_EDGES: EdgeWords = {
  key: 'edges',
  tone: 'info',
  one: 'new connection in 24 hours',
  many: 'new connections in 24 hours',
  detail: 'None of them was seen before. The map has them among all that had a new flow since.',
  clear: 'No new connection in 24 hours.',
  to: { segments: ['map'], query: { since: SINCE, verdict: '!DROP' } },
}
const NEW_DROPS: EdgeWords = {
  key: 'drops',
  tone: 'bad',
  one: 'new drop in 24 hours',
  many: 'new drops in 24 hours',
  detail:
    'A first packet got no answer: because of a policy, a firewall, or because nobody listens. The list has all drops since.',
  clear: 'No new drop in 24 hours.',
  to: { segments: ['flows'], query: { since: SINCE, verdict: 'DROP' } },
}

export const edgesLine = (page: Edges): Line => newEdges(page, NEW_EDGES)
export const dropsLine = (page: Edges): Line => newEdges(page, NEW_DROPS)

/** Edges whose first flow arrived within a day. The answer has all edges with a new flow in that time. */
function newEdges({ items, nextAfter, asOf, observedSince }: Edges, words: EdgeWords): Line {
  const { key, tone, one, many, clear, to } = words
  if (observedSince === null)
    return { key, to, state: 'unknown', title: 'No flow is counted: connections are not known.' }
  const from = toMs(asOf) - DAY_MS
  const fresh = items.filter(({ firstSeenAt }) => toMs(firstSeenAt) >= from)
  // The answer covers the requested time, or less if the record begins later.
  const isYoung = toMs(observedSince) > from + COUNT_LAG_MS
  if (fresh.length === 0)
    return nextAfter === null
      ? { key, to, state: 'clear', title: clear }
      : { key, to, state: 'unknown', title: `None of the ${items.length} that were read is new, but there are more.` }
  const detail = isYoung
    ? `Connections are recorded only since ${localText(observedSince)}: older ones look new, too.`
    : words.detail
  return {
    ...{ key, to, state: 'look', tone: isYoung ? 'info' : tone, count: fresh.length, isAtLeast: nextAfter !== null },
    title: fresh.length === 1 ? one : many,
    detail,
    examples: fresh.slice(0, MAX_EXAMPLES).map((edge) => ({
      text: edgeText(edge),
      to: { segments: ['flows'], query: { ...flowsQuery(edge), since: SINCE } },
    })),
  }
}

export function silentLine({ nodes }: Coverage): Line {
  const base = { key: 'silent', to: { segments: ['nodes'] } } as const
  const totals = nodes?.totals
  if (!totals) return { ...base, state: 'unknown', title: 'How many nodes are silent could not be counted.' }
  const { total, missing } = totals
  if (total === 0) return { ...base, state: 'unknown', title: 'No node has reported.' }
  if (missing.silent === 0) return { ...base, state: 'clear', title: `All ${counted(total, 'node')} report.` }
  return {
    ...base,
    state: 'look',
    tone: 'bad',
    count: missing.silent,
    isAtLeast: false,
    title: missing.silent === 1 ? 'silent node' : 'silent nodes',
    detail: `Of ${total}. Flows, files and denials of their pods are missing.`,
    examples: (nodes?.items ?? [])
      .filter((one) => one.missing.includes('silent'))
      .slice(0, MAX_EXAMPLES)
      .map(({ node }) => ({ text: node, to: { segments: ['node', node] } })),
  }
}

export function unscannedLine({ images }: Coverage): Line {
  const base = { key: 'unscanned', to: { segments: ['health'], query: { part: 'images' } } } as const
  const totals = images?.totals
  if (!totals) return { ...base, state: 'unknown', title: 'How many images nobody scanned could not be counted.' }
  const { total, missing } = totals
  if (total === 0) return { ...base, state: 'unknown', title: 'No running image is known.' }
  if (missing.no_report === 0)
    return { ...base, state: 'clear', title: `Each of ${counted(total, 'running image')} has a report.` }
  return {
    ...base,
    state: 'look',
    tone: 'warn',
    count: missing.no_report,
    isAtLeast: false,
    title: missing.no_report === 1 ? 'running image that nobody scanned' : 'running images that nobody scanned',
    detail: `Of ${numberText(total)}. Their vulnerabilities are not known, which is not none.`,
    examples: (images?.items ?? [])
      .filter((one) => one.missing.includes('no_report'))
      .slice(0, MAX_EXAMPLES)
      .map(({ digest, repository, containers }) => ({
        text: repository ?? digest.slice(0, 19),
        note: counted(containers, 'container'),
        to: { segments: ['image', digest] },
      })),
  }
}

export function partialLine({ workloads }: Coverage): Line {
  const base = { key: 'partial', to: { segments: ['health'], query: { part: 'workloads' } } } as const
  const totals = workloads?.totals
  if (!totals)
    return { ...base, state: 'unknown', title: 'How many seccomp profiles are partial could not be counted.' }
  const { total, missing } = totals
  if (total === 0) return { ...base, state: 'unknown', title: 'No workload is known.' }
  const none = missing.no_observations
  if (missing.capture_incomplete === 0)
    return none === total
      ? { ...base, state: 'unknown', title: 'No syscall was recorded: there are no seccomp profiles.' }
      : none === 0
        ? { ...base, state: 'clear', title: 'No seccomp profile is partial.' }
        : {
            ...base,
            state: 'unknown',
            title: `No seccomp profile is partial, but nothing was recorded of ${counted(none, 'workload')}.`,
          }
  return {
    ...base,
    state: 'look',
    tone: 'warn',
    count: missing.capture_incomplete,
    isAtLeast: false,
    title: missing.capture_incomplete === 1 ? 'partial seccomp profile' : 'partial seccomp profiles',
    detail:
      'Not all syscalls of these workloads were recorded: a profile made of them would deny some.' +
      (none === 0 ? '' : ` Nothing was recorded of ${counted(none, 'workload')}.`),
    examples: (workloads?.items ?? [])
      .filter((one) => one.missing.includes('capture_incomplete'))
      .slice(0, MAX_EXAMPLES)
      .map(({ namespace, kind, name }) => ({
        text: `${namespace}/${name}`,
        to: { segments: ['workload', namespace, kind, name], query: { tab: 'seccomp' } },
      })),
  }
}

/** `limit` is the row limit of the request. */
export function denialsLine(rows: Denials, { nodes }: Coverage, limit: number): Line {
  const base = { key: 'denials', to: { segments: ['denials'], query: { since: SINCE } } } as const
  if (rows.length > 0) {
    const byWorkload = new Map(
      rows.map((row) => [`${row.podNamespace}/${row.workloadKind}/${row.workloadName ?? row.podName}`, row]),
    )
    const events = rows.reduce((sum, { count }) => sum + count, 0)
    return {
      ...base,
      state: 'look',
      tone: 'bad',
      count: byWorkload.size,
      isAtLeast: rows.length >= limit,
      title: `${byWorkload.size === 1 ? 'workload' : 'workloads'} with syscalls that the kernel denied`,
      detail: `${counted(events, 'event')}, denied or only logged, the last of each within 24 hours.`,
      examples: [...byWorkload.values()].slice(0, MAX_EXAMPLES).map((row) => ({
        text: `${row.podNamespace}/${row.workloadName ?? row.podName}`,
        note: `${row.syscall}, ${counted(row.count, 'event')}`,
        to:
          row.workloadKind !== null && row.workloadName !== null
            ? {
                segments: ['workload', row.podNamespace, row.workloadKind, row.workloadName],
                query: { tab: 'seccomp' },
              }
            : { segments: ['denials'], query: { namespace: row.podNamespace } },
      })),
    }
  }
  const totals = nodes?.totals
  if (!totals || totals.total === 0 || totals.missing.denials_not_watched > 0)
    return {
      ...base,
      state: 'unknown',
      title: totals?.total
        ? `No denial is stored, but ${numberText(totals.missing.denials_not_watched)} of ` +
          `${counted(totals.total, 'node')} do not watch for them.`
        : 'Whether the kernel denied anything is not known: no node is known to watch.',
    }
  return { ...base, state: 'clear', title: 'No syscall was denied in 24 hours, and all nodes watch.' }
}

const SEVERITIES = ['critical', 'high', 'medium'] as const

export function findingsLine({ findings, truncated, victims_evaluated, history_disabled }: Findings): Line {
  const base = { key: 'findings', to: { segments: ['findings'] } } as const
  if (history_disabled)
    return { ...base, state: 'unknown', title: 'The broker keeps no history of CPU and memory, so nothing is found.' }
  if (findings.length === 0)
    return victims_evaluated === 0
      ? { ...base, state: 'unknown', title: 'No container was sampled in the last five minutes.' }
      : {
          ...base,
          state: truncated ? 'unknown' : 'clear',
          title: `No container waits for CPU or memory, of ${numberText(victims_evaluated)} that were ${
            truncated ? 'looked at' : 'sampled'
          }.`,
        }
  const sorted = [...findings].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity))
  // A container may wait for both.
  const seen = new Set<string>()
  const worst = sorted.filter(({ victim: { container_uid: uid } }) => !seen.has(uid) && seen.add(uid))
  const bySeverity = SEVERITIES.map((one) => [one, worst.filter(({ severity }) => severity === one).length] as const)
  return {
    ...base,
    state: 'look',
    tone: bySeverity[0]![1] > 0 ? 'bad' : 'warn',
    count: worst.length,
    isAtLeast: truncated,
    title: `${worst.length === 1 ? 'container waits' : 'containers wait'} for CPU or memory`,
    detail: `In the last five minutes: ${bySeverity
      .filter(([, count]) => count > 0)
      .map(([severity, count]) => `${count} ${severity}`)
      .join(', ')}.`,
    examples: worst.slice(0, MAX_EXAMPLES).map(({ victim, kind }) => ({
      text: `${victim.namespace}/${victim.pod_name}`,
      note: kind,
      to: { segments: ['findings'], query: { namespace: victim.namespace } },
    })),
  }
}

/** Whether the broker has never stored anything: no node, no image and no workload. */
export function isEmptyBroker({ nodes, images, workloads }: Coverage): boolean {
  return [nodes, images, workloads].every((part) => part?.totals?.total === 0)
}
