/** The start page: findings that need attention, the most urgent first, and gaps. */
import type { Params } from '../../api/client.ts'
import { type Reading, useRead } from '../../api/query.ts'
import { Loading, Stale } from '../../parts/states.tsx'
import { Badge } from '../../parts/text.tsx'
import { href } from '../../place.ts'
import { useDenials } from '../denials/use-denials.ts'
import { EmptyBroker } from './empty-broker.tsx'
import {
  denialsLine,
  dropsLine,
  edgesLine,
  findingsLine,
  isEmptyBroker,
  type Line,
  type Look,
  type Other,
  type Part,
  partialLine,
  SINCE,
  silentLine,
  type Target,
  totalText,
  URGENT,
  unscannedLine,
  urgentLine,
} from './lines.ts'
import '../lists.css'
import './start.css'

const MAX_VULNERABILITIES = 100
const MAX_EDGES = 200
const MAX_DENIALS = 200
/** Row limit of each part; the examples are taken from these rows. */
const MAX_GAPS = 20

type VulnerabilityQuery = NonNullable<Params<'/vulnerabilities'>['query']>

/** The most urgent first. */
const ORDER: readonly Part[] = ['urgent', 'denials', 'drops', 'silent', 'findings', 'edges', 'unscanned', 'partial']
const NAMES: Readonly<Record<Part, string>> = {
  urgent: 'Vulnerabilities in use',
  denials: 'Denials by the kernel',
  drops: 'New drops',
  silent: 'Silent nodes',
  findings: 'CPU and memory',
  edges: 'New connections',
  unscanned: 'Images without a report',
  partial: 'Partial seccomp profiles',
}

interface Read {
  readonly part: Part
  readonly line: Line | null
  readonly failed: Reading<unknown> | null
}

export default function Start() {
  const coverage = useRead('/coverage', { query: { limit: MAX_GAPS } })
  const vulnerabilities = useRead('/vulnerabilities', {
    query: {
      tier: URGENT.tier.join(','),
      in_use: URGENT.in_use.join(','),
      running: 'true',
      limit: MAX_VULNERABILITIES,
    } as unknown as VulnerabilityQuery,
  })
  const edges = useRead('/flows/edges', { query: { since: SINCE, verdict: ['!DROP'], limit: MAX_EDGES } })
  const drops = useRead('/flows/edges', { query: { since: SINCE, verdict: ['DROP'], limit: MAX_EDGES } })
  const { reading: denials } = useDenials({}, SINCE, MAX_DENIALS)
  const findings = useRead('/compute/findings', {})
  if (coverage.data !== undefined && isEmptyBroker(coverage.data)) return <EmptyBroker />
  const reads: Readonly<Record<Part, Read>> = {
    // An empty list means something only together with the coverage.
    urgent:
      vulnerabilities.data?.items.length === 0
        ? lineOf('urgent', coverage, (known) => urgentLine(vulnerabilities.data!, known))
        : lineOf('urgent', vulnerabilities, (page) => urgentLine(page, coverage.data ?? NO_COVERAGE)),
    edges: lineOf('edges', edges, edgesLine),
    drops: lineOf('drops', drops, dropsLine),
    silent: lineOf('silent', coverage, silentLine),
    unscanned: lineOf('unscanned', coverage, unscannedLine),
    partial: lineOf('partial', coverage, partialLine),
    findings: lineOf('findings', findings, findingsLine),
    denials:
      denials.data !== undefined && denials.data.length === 0
        ? lineOf('denials', coverage, (known) => denialsLine([], known, MAX_DENIALS))
        : lineOf('denials', denials, (rows) => denialsLine(rows, coverage.data ?? NO_COVERAGE, MAX_DENIALS)),
  }
  const all = ORDER.map((part) => reads[part])
  const lines = all.flatMap(({ line }) => line ?? [])
  const looks = lines.filter((line): line is Look => line.state === 'look')
  const failed = all.filter((one) => one.failed !== null)
  const isReading = all.some(({ line, failed: failure }) => line === null && failure === null)
  const old = [coverage, vulnerabilities, edges, drops, denials, findings].find((one) => one.data && one.error)
  const totals = coverage.data
  return (
    <>
      <h1>What needs a look</h1>
      {totals && (
        <p class="lead">
          The broker knows <a href={href(['nodes'])}>{totalText(totals.nodes, 'node')}</a>,{' '}
          <a href={href(['workloads'])}>{totalText(totals.workloads, 'workload')}</a> and{' '}
          <a href={href(['images'])}>{totalText(totals.images, 'running image')}</a>.
        </p>
      )}
      {old && <Stale reading={old} />}
      {looks.length > 0 && (
        <ol class="looks">
          {looks.map((look) => (
            <LookItem key={look.key} look={look} />
          ))}
        </ol>
      )}
      {isReading && <Loading />}
      {!isReading && looks.length === 0 && failed.length < all.length && (
        <p class="verdict">
          {failed.length > 0 || lines.some(({ state }) => state === 'unknown')
            ? 'Nothing of what is known needs a look.'
            : 'Nothing needs a look.'}
        </p>
      )}
      {failed.length > 0 && <Failed reads={failed} />}
      <Others title="Not known" lines={lines.filter((one): one is Other => one.state === 'unknown')} />
      <Others title="Looked at, and clear" lines={lines.filter((one): one is Other => one.state === 'clear')} />
    </>
  )
}

const NO_COVERAGE = { images: null, containers: null, nodes: null, workloads: null } as never

function lineOf<T>(part: Part, reading: Reading<T>, make: (data: T) => Line): Read {
  const { data, error } = reading
  if (data !== undefined) return { part, line: make(data), failed: null }
  return { part, line: null, failed: error === null ? null : reading }
}

const linkOf = ({ segments, query }: Target) => href(segments, query)
const number = new Intl.NumberFormat()

function LookItem({ look: { tone, count, isAtLeast, title, detail, examples, to } }: { look: Look }) {
  return (
    <li class={`look ${tone}`}>
      <h2>
        <a href={linkOf(to)}>
          {isAtLeast && 'At least '}
          <span class="look-count">{number.format(count)}</span> {title}
        </a>
      </h2>
      <p class="faint">{detail}</p>
      {examples.length > 0 && (
        <ul class="look-examples">
          {examples.map((one) => (
            <li key={`${one.text} ${one.note}`}>
              <a href={linkOf(one.to)}>{one.text}</a>
              {one.note !== undefined && <span class="faint"> {one.note}</span>}
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}

function Failed({ reads }: { reads: readonly Read[] }) {
  const causes = [...new Set(reads.map(({ failed }) => failed!))]
  return (
    <div class="section">
      <h2 id="failed">Could not be asked</h2>
      {causes.map((reading) => {
        const names = reads.filter(({ failed }) => failed === reading).map(({ part }) => NAMES[part])
        return (
          <p key={names[0]} role="alert">
            <Badge tone="bad">failed</Badge> {names.join(', ')}: {reading.error?.message}{' '}
            <button type="button" class="quiet" onClick={() => reading.refetch()}>
              Try again
            </button>
          </p>
        )
      })}
    </div>
  )
}

function Others({ title, lines }: { title: string; lines: readonly Other[] }) {
  if (lines.length === 0) return null
  return (
    <div class="section">
      <h2>{title}</h2>
      <ul class="plain-list">
        {lines.map(({ key, title: text, to }) => (
          <li key={key}>
            <a href={linkOf(to)}>{NAMES[key]}</a> <span class="faint">{text}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
