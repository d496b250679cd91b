/** Facts about the broker itself, from several routes. */
import { type Ask, ask } from '../connection/ask.ts'
import type { CliContext } from '../context.ts'
import { Failure } from '../failure.ts'
import { answered, type ComposedFlags, jsonQuestion } from '../list/composed.ts'
import { timeText } from '../output/cell.ts'
import { counted } from '../output/lines.ts'
import { brokenJobs, jobsOf } from './jobs.ts'

export interface Fact {
  readonly what: string
  readonly state: string
  readonly time: string | null
  readonly detail: string
  readonly needsLook: boolean
}

/** Silent nodes that are named. */
const MAX_NAMED = 5

const VERSION = jsonQuestion(['version'])
const NODES = jsonQuestion(['node', 'status'])
const ENVIRONMENT = jsonQuestion(['cluster', 'environment'])
const FLOWS = jsonQuestion(['flows'], { limit: '1' })
const EDGES = jsonQuestion(['flows', 'edges'], { limit: '1' })
const COVERAGE = jsonQuestion(['coverage'], { limit: '1' })
const METRICS: Ask = { method: 'GET', path: ['metrics'], query: {}, expects: 'text/plain' }
export const QUESTIONS: readonly Ask[] = [VERSION, ENVIRONMENT, NODES, FLOWS, EDGES, COVERAGE, METRICS]

const fact = (what: string, state: string, detail = '', more: Partial<Fact> = {}): Fact => ({
  ...{ what, state, time: null, detail, needsLook: false, ...more },
})

/**
 * The version is asked first: without an answer nothing is known. A fact that cannot be read later is a row of its own.
 * @throws Failure if the broker does not tell its version
 */
export async function factsOf(context: CliContext, flags: ComposedFlags): Promise<readonly Fact[]> {
  const get = <T>(question: Ask): Promise<T> => answered<T>(context, flags, question)
  const version = versionFact(await get<Version>(VERSION))
  const others = await Promise.all([
    orUnknown('cluster', async () => environmentFact(await get<Environment>(ENVIRONMENT))),
    orUnknown('nodes', async () => nodesFact(await get<Nodes>(NODES))),
    orUnknown('flows', async () => flowsFact(await get<Flows>(FLOWS))),
    orUnknown('edges', async () => edgesFact(await get<Edges>(EDGES))),
    orUnknown('coverage', async () => coverageFacts(await get<Coverage>(COVERAGE))),
    orUnknown('jobs', async () => jobFacts((await ask(context, flags, METRICS)).toString())),
  ])
  return [version, ...others.flat()]
}

async function orUnknown(what: string, read: () => Promise<Fact | readonly Fact[]>): Promise<Fact | readonly Fact[]> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return fact(what, 'unknown', error.message, { needsLook: true })
  }
}

interface Version {
  readonly broker: string
  readonly chart: string
  readonly checked_at: string | null
  readonly update_available: boolean
}

function versionFact({ broker, chart, checked_at: time, update_available: isOld }: Version): Fact {
  const checked = time === null ? 'updates are not checked' : isOld ? 'an update is available' : 'up to date'
  return fact('broker', broker, `chart ${chart}, ${checked}`, { time, needsLook: isOld })
}

type Environment = Readonly<
  Record<'cni' | 'ip_family' | 'provider' | 'distro' | 'node_os' | 'policy_enforcement', string>
> & { readonly nodes: number }

const environmentFact = (one: Environment): Fact =>
  fact(
    'cluster',
    one.distro,
    `provider ${one.provider}, cni ${one.cni}, ${one.ip_family}, policies ${one.policy_enforcement}, ` +
      `by ${counted(one.nodes, 'node')}`,
  )

interface Nodes {
  readonly staleAfterSecs: number
  readonly nodes: readonly { readonly node: string; readonly stale: boolean }[]
}

function nodesFact({ nodes }: Nodes): Fact {
  const silent = nodes.filter(({ stale }) => stale).map(({ node }) => node)
  const more = silent.length > MAX_NAMED ? `, ${silent.length - MAX_NAMED} more` : ''
  const detail = silent.length === 0 ? '' : `silent: ${silent.slice(0, MAX_NAMED).join(', ')}${more}`
  const state = `${nodes.length - silent.length} of ${nodes.length} report`
  return fact('nodes', state, detail, { needsLook: silent.length > 0 || nodes.length === 0 })
}

interface Flows {
  readonly observedSince: string | null
  readonly unstamped: number
}

/** Flows of releases before times of arrival were stored have none. */
const unstampedText = (count: number) => (count === 0 ? '' : `, ${count} without a time`)

function flowsFact({ observedSince: time, unstamped }: Flows): Fact {
  if (time === null) return fact('flows', 'none', `none is held${unstampedText(unstamped)}`, { needsLook: true })
  return fact('flows', 'held', `since then${unstampedText(unstamped)}`, { time })
}

interface Edges extends Flows {
  readonly asOf: string
}

/** The job counts every few seconds, or as often as a scheduler runs it. */
const BEHIND_MS = 15 * 60_000

function edgesFact({ asOf, observedSince, unstamped }: Edges): Fact {
  const since = observedSince === null ? 'none is held' : `held since ${timeText(observedSince, true)}`
  const state = observedSince === null ? 'none' : 'held'
  const isBehind = Date.now() - Date.parse(`${asOf}Z`) > BEHIND_MS
  const detail = `counted until then${isBehind ? ', not since' : ''}, ${since}${unstampedText(unstamped)}`
  return fact('edges', state, detail, { time: asOf, needsLook: isBehind })
}

interface Totals {
  readonly total: number
  readonly known: number
  readonly missing: Readonly<Record<string, number>>
}

const PARTS = ['images', 'containers', 'nodes', 'workloads'] as const
type Coverage = Readonly<Record<(typeof PARTS)[number], { readonly totals: Totals | null } | null>>

const coverageFacts = (coverage: Coverage): Fact[] =>
  PARTS.map((part) => {
    const totals = coverage[part]?.totals
    if (!totals) return fact(`coverage of ${part}`, 'unknown', 'too many to count')
    const missing = Object.entries(totals.missing).filter(([, count]) => count > 0)
    const detail = missing.map(([reason, count]) => `${reason} ${count}`).join(', ')
    return fact(`coverage of ${part}`, `${totals.known} of ${totals.total} known`, detail)
  })

const HOUR_MS = 3_600_000
/**
 * Three times the longest interval that jobs have by default. No route tells the configured ones, so a job that was
 * given a longer interval looks late.
 */
const LATE_MS = 3 * HOUR_MS
/** This one is daily. */
const LATE_MS_BY_JOB: Readonly<Record<string, number>> = { 'version-check': 72 * HOUR_MS }

function jobFacts(metrics: string): Fact[] {
  const jobs = jobsOf(metrics)
  const broken = brokenJobs(metrics).map((name) =>
    fact(`job ${name}`, 'failed', 'it has never ended well: the log of the broker says why', { needsLook: true }),
  )
  if (jobs.length === 0) return [fact('jobs', 'unknown', 'none has ended well yet', { needsLook: true }), ...broken]
  const ended = jobs.map(({ name, lastSuccess }) => {
    const isLate = Date.now() - lastSuccess.getTime() > (LATE_MS_BY_JOB[name] ?? LATE_MS)
    const time = lastSuccess.toISOString()
    return fact(`job ${name}`, isLate ? 'late' : 'ok', 'last success', { time, needsLook: isLate })
  })
  return [...ended, ...broken]
}
