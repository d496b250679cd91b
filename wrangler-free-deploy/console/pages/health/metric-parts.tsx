/** The parts of the health page that show metrics. They are those of one process: the replica that answered. */
import type { ComponentChildren } from 'preact'
import { addressOf } from '../../api/client.ts'
import { numberText } from '../../parts/plural.ts'
import { Empty } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, bytesText, Count } from '../../parts/text.tsx'
import { Ago, durationText } from '../../parts/time.tsx'
import {
  isWrite,
  type JobState,
  jobsOf,
  REQUEST_COUNTER,
  type RouteRequests,
  requestsOf,
  type TableSize,
  tablesOf,
} from './facts.ts'
import { isSameProcess, type Labels, rateOf, type Scrape } from './metrics.ts'

export interface MetricProps {
  readonly now: Scrape
  readonly before: Scrape | null
}

const MS_PER_SECOND = 1_000
const KIB = 1_024
const MAX_TABLES = 10
/** A lag above this is marked. */
const LATE_SECONDS = 60
/** Below this share of free read budget, lists may be refused. */
const SCARCE = 0.1

const oneDigit = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const twoDigits = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 })

const metricsCommands = { ctb: ['status'], url: addressOf('/metrics', {}) }

/** `12 /s`, or the reason why there is no rate. */
function Rate({ rate, isFirst }: { rate: number | null; isFirst: boolean }) {
  if (rate === null)
    return (
      <span class="faint" title={isFirst ? 'After the next poll.' : 'Another process answered, or it was restarted.'}>
        {isFirst ? '…' : '?'}
      </span>
    )
  return (
    <span class={rate === 0 ? 'number faint' : 'number'}>
      {rate >= 10 ? oneDigit.format(rate) : twoDigits.format(rate)}/s
    </span>
  )
}

export function Lags({ now: { metrics, atMs } }: MetricProps) {
  const value = (name: string, labels?: Labels) => metrics.sum(name, labels)
  const total = value('broker_read_budget_kib_total')
  const free = value('broker_read_budget_kib_available')
  const followLag = value('broker_follow_lag_seconds')
  const edgesLag = value('broker_flow_edges_lag_seconds')
  const started = value('process_start_time_seconds')
  // Both are 0 until the server was asked, a moment after the start.
  const mostConnections = value('broker_db_server_connections_max') || null
  const isScarce = total !== null && free !== null && free < total * SCARCE
  return (
    <div class="cards">
      <dl class="card pairs">
        <Pair name="Runs since">
          {started === null ? '?' : <Ago at={new Date(started * MS_PER_SECOND).toISOString()} />}
        </Pair>
        <Pair name="Database reached">
          <Yes value={value('broker_db_reachable')} />
        </Pair>
        <Pair name="Memory">
          <Bytes value={value('process_resident_memory_bytes')} />
        </Pair>
        <Pair name="Event loop, p99">
          <Seconds value={value('nodejs_eventloop_lag_p99_seconds')} />
        </Pair>
        <Pair name="Clocks of agents differ by">
          <Seconds value={value('broker_agent_clock_skew_seconds')} />
        </Pair>
      </dl>
      <dl class="card pairs">
        <Pair name="Followers of flows">
          <Count value={value('broker_followers')} />
        </Pair>
        <Pair name="Slowest follower is behind">
          <Seconds value={followLag} isLate={(followLag ?? 0) > LATE_SECONDS} />
        </Pair>
        <Pair name="Count of connections is behind">
          <Seconds value={edgesLag} isLate={(edgesLag ?? 0) > LATE_SECONDS} />
        </Pair>
        <Pair name="Payloads of scanners that wait">
          <Count value={value('broker_supplychain_queue_length')} />
        </Pair>
        <Pair name="Payloads that search has not read">
          <Count value={value('broker_search_payloads_unread')} />
        </Pair>
      </dl>
      <dl class="card pairs">
        <Pair name="Memory for lists, free">
          {free === null || total === null ? (
            '?'
          ) : (
            <>
              {bytesText(free * KIB)} of {bytesText(total * KIB)} {isScarce && <Badge tone="warn">scarce</Badge>}
            </>
          )}
        </Pair>
        <Pair name="Statements that wait">
          <Count value={value('broker_db_gate_waiting')} />
        </Pair>
        <Pair name="Free database slots">
          <Count value={value('broker_db_pool_idle')} /> of <Count value={value('broker_db_pool_max')} />
        </Pair>
        <Pair name="Connections of the database">
          <Count value={mostConnections && value('broker_db_server_connections')} /> of{' '}
          <Count value={mostConnections} />
        </Pair>
        <Pair name="As of">
          <Ago at={new Date(atMs).toISOString()} />
        </Pair>
      </dl>
    </div>
  )
}

function Pair({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

const NotKnown = () => (
  <span class="faint" title="not known">
    ?
  </span>
)

function Yes({ value }: { value: number | null }) {
  if (value === null) return <NotKnown />
  return value === 1 ? <Badge tone="good">yes</Badge> : <Badge tone="bad">no</Badge>
}

function Bytes({ value }: { value: number | null }) {
  return value === null ? <NotKnown /> : <span class="number">{bytesText(value)}</span>
}

function Seconds({ value, isLate = false }: { value: number | null; isLate?: boolean }) {
  if (value === null || Number.isNaN(value)) return <NotKnown />
  const text = value < 1 ? `${Math.round(value * MS_PER_SECOND)} ms` : durationText(value * MS_PER_SECOND)
  return isLate ? <Badge tone="warn">{text}</Badge> : <span class="number">{text}</span>
}

interface Counter {
  readonly name: string
  readonly title: string
}

const REFUSALS: readonly Counter[] = [
  { name: 'broker_read_shed_total', title: 'Reads refused, since the memory for lists was used up' },
  { name: 'broker_bodies_shed_total', title: 'Bodies refused, since too many came at once' },
  { name: 'broker_db_gate_refused', title: 'Statements refused, since too many waited' },
  { name: 'broker_slow_readers_cut_total', title: 'Connections cut, since answers were taken too slowly' },
  { name: 'broker_rejected_entries_total', title: 'Entries left out of posts that were stored otherwise' },
  { name: 'broker_syscalls_unattributed_total', title: 'Syscalls of a pod that is not known' },
  { name: 'svc_supplychain_staged_sets_refused_total', title: 'Sets of SBOM pages refused' },
  { name: 'broker_supplychain_unreadable_times_total', title: 'Times of scanners that could not be read' },
  { name: 'broker_audit_dropped_total', title: 'Flows that the evaluator did not get' },
  { name: 'broker_ignored_parameters_total', title: 'Unknown parameters of requests that were ignored' },
]

interface RefusalRow extends Counter {
  readonly total: number | null
  readonly rate: number | null
}

export function Refusals({ now, before }: MetricProps) {
  const rows = REFUSALS.map(
    (one): RefusalRow => ({ ...one, total: now.metrics.sum(one.name), rate: rateOf(before, now, one.name) }),
  )
  return (
    <Table
      name="Refused and left out"
      rows={rows}
      keyOf={({ name }) => name}
      columns={[
        { title: 'What', cell: ({ title, name }) => <span title={name}>{title}</span>, text: ({ title }) => title },
        {
          title: 'Since the start',
          // A counter with labels has no series before its first event.
          cell: ({ total }) => <span class={total ? 'number' : 'number faint'}>{numberText(total ?? 0)}</span>,
          text: ({ total }) => total ?? 0,
          isNumber: true,
        },
        {
          title: 'Now',
          cell: ({ rate, total }) => <Rate rate={total === null ? 0 : rate} isFirst={before === null} />,
          text: ({ rate }) => rate,
          isNumber: true,
        },
      ]}
      commands={metricsCommands}
      empty={null}
    />
  )
}

interface RequestRow extends RouteRequests {
  readonly rate: number | null
}

export function Requests({ now, before }: MetricProps) {
  const rows = requestsOf(now.metrics).map(
    (one): RequestRow => ({
      ...one,
      rate: rateOf(before, now, REQUEST_COUNTER, { method: one.method, route: one.route }),
    }),
  )
  const isFirst = before === null
  return (
    <>
      <p class="faint">
        Of the process that answered, since its start; other replicas count for themselves.
        {before !== null && !isSameProcess(before, now) && ' Another process answered before, so there is no rate.'}
      </p>
      <Table
        name="Requests"
        rows={rows}
        keyOf={({ method, route }) => `${method} ${route}`}
        columns={requestColumns(isFirst)}
        commands={metricsCommands}
        empty={<Empty title="No request yet" />}
      />
    </>
  )
}

const requestColumns = (isFirst: boolean): readonly Column<RequestRow>[] => [
  {
    title: 'Route',
    cell: (one) => (
      <>
        {isWrite(one) ? <Badge tone="info">{one.method}</Badge> : <Badge>{one.method}</Badge>} <code>{one.route}</code>
      </>
    ),
    text: ({ method, route }) => `${method} ${route}`,
    width: '28rem',
  },
  {
    title: 'Now',
    cell: ({ rate }) => <Rate rate={rate} isFirst={isFirst} />,
    text: ({ rate }) => rate,
    isNumber: true,
    width: '7rem',
  },
  {
    title: 'Answered',
    cell: ({ answered }) => <Count value={answered} />,
    text: ({ answered }) => answered,
    isNumber: true,
    width: '8rem',
  },
  {
    title: 'Refused (4xx)',
    cell: ({ refused }) =>
      refused === 0 ? <span class="faint">0</span> : <Badge tone="warn">{numberText(refused)}</Badge>,
    text: ({ refused }) => refused,
    isNumber: true,
    width: '8rem',
  },
  {
    title: 'Failed (5xx)',
    cell: ({ failed }) =>
      failed === 0 ? <span class="faint">0</span> : <Badge tone="bad">{numberText(failed)}</Badge>,
    text: ({ failed }) => failed,
    isNumber: true,
    width: '8rem',
  },
  {
    title: 'Mean time',
    cell: ({ meanMs }) => <span class="number">{meanMs < 10 ? twoDigits.format(meanMs) : Math.round(meanMs)} ms</span>,
    text: ({ meanMs }) => meanMs,
    isNumber: true,
    width: '8rem',
  },
]

export function Jobs({ now: { metrics, atMs } }: MetricProps) {
  return (
    <Table
      name="Jobs"
      rows={jobsOf(metrics, atMs)}
      keyOf={({ job }) => job}
      columns={JOB_COLUMNS}
      commands={metricsCommands}
      empty={
        <Empty title="No job has ended well yet">
          Jobs run in the broker, or by a scheduler; each says here when it last ended well.
        </Empty>
      }
    />
  )
}

const timeOf = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

const JOB_COLUMNS: readonly Column<JobState>[] = [
  { title: 'Job', cell: ({ job }) => job, text: ({ job }) => job },
  {
    title: 'State',
    cell: ({ isLate }) =>
      isLate ? (
        <Badge tone="warn" title="It has not ended well for three times the longest interval of a job by default.">
          late
        </Badge>
      ) : (
        <Badge tone="good">on time</Badge>
      ),
    text: ({ isLate }) => (isLate ? 'late' : 'on time'),
  },
  {
    title: 'Ended well',
    cell: ({ endedAt }) => <Ago at={timeOf(endedAt)} />,
    text: ({ endedAt }) => timeOf(endedAt),
  },
  {
    title: 'It took',
    cell: ({ durationMs }) =>
      durationMs === null ? <NotKnown /> : <span class="number">{Math.round(durationMs)} ms</span>,
    text: ({ durationMs }) => durationMs,
    isNumber: true,
  },
  {
    title: 'Passes here',
    cell: ({ passes }) => <Count value={passes} />,
    text: ({ passes }) => passes,
    isNumber: true,
  },
  {
    title: 'Not well',
    cell: ({ others }) =>
      others.length === 0 ? (
        <span class="faint">none</span>
      ) : (
        others.map(({ outcome, count }) => (
          <span key={outcome}>
            <Badge tone={outcome === 'failed' ? 'bad' : 'warn'}>
              {outcome} {numberText(count)}
            </Badge>{' '}
          </span>
        ))
      ),
    text: ({ others }) => others.map(({ outcome, count }) => `${outcome} ${count}`).join(' '),
  },
]

export function Tables({ now: { metrics } }: MetricProps) {
  return (
    <Table
      name="Largest tables"
      rows={tablesOf(metrics, MAX_TABLES)}
      keyOf={({ table }) => table}
      columns={TABLE_COLUMNS}
      commands={metricsCommands}
      empty={<Empty title="Not known yet">Sizes of tables are read once a minute.</Empty>}
    />
  )
}

const TABLE_COLUMNS: readonly Column<TableSize>[] = [
  { title: 'Table', cell: ({ table }) => <code>{table}</code>, text: ({ table }) => table },
  {
    title: 'Size',
    cell: ({ bytes }) => <span class="number">{bytesText(bytes)}</span>,
    text: ({ bytes }) => bytes,
    isNumber: true,
  },
  { title: 'Rows, about', cell: ({ rows }) => <Count value={rows} />, text: ({ rows }) => rows, isNumber: true },
  {
    title: 'Dead rows, about',
    cell: ({ deadRows }) => <Count value={deadRows} />,
    text: ({ deadRows }) => deadRows,
    isNumber: true,
  },
]
