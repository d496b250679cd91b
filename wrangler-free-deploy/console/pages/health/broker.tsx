/** The broker itself: whether it works, since when it has data, and its metrics. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Answer, ApiError, addressOf } from '../../api/client.ts'
import { type Reading, useRead } from '../../api/query.ts'
import { gapText } from '../../parts/gap-words.ts'
import { numberText } from '../../parts/plural.ts'
import { Failure, Loading, Shown } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import { isWanted } from './facts.ts'
import { PARTS, type PartName } from './gaps.tsx'
import { Jobs, Lags, Refusals, Requests, Tables } from './metric-parts.tsx'
import { parseMetrics, type Scrape } from './metrics.ts'

const METRICS_POLL_MS = 10_000

export function Broker() {
  const health = useRead('/health', {})
  const version = useRead('/version', {})
  const flows = useRead('/flows', { query: { limit: 1 } })
  const edges = useRead('/flows/edges', { query: { limit: 1 } })
  const coverage = useRead('/coverage', { query: { limit: 1 } })
  const metrics = useRead('/metrics', {}, { pollMs: METRICS_POLL_MS })
  return (
    <>
      <Works health={health} version={version} />
      <Part title="Held since">
        <dl class="pairs">
          <dt>Flows</dt>
          <dd>
            <Held reading={flows} of="flow" />
          </dd>
          <dt>Connections</dt>
          <dd>
            <Held reading={edges} of="connection" />
            {edges.data !== undefined && (
              <span class="faint">
                , counted until <Time at={edges.data.asOf} />
              </span>
            )}
          </dd>
        </dl>
        <p class="faint">
          Older data was deleted, or never stored. How long each kind is kept is set by the variables of{' '}
          <code>docs/contract.md</code>, section Retention.
        </p>
      </Part>
      <Part title="What is known">
        <Shown reading={coverage}>{(report) => <Known report={report} />}</Shown>
      </Part>
      <FromMetrics reading={metrics} />
    </>
  )
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="section">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

interface WorksProps {
  readonly health: Reading<Answer<'/health'>>
  readonly version: Reading<Answer<'/version'>>
}

function Works({ health, version: { data, error } }: WorksProps) {
  return (
    <p class="verdict" role="status">
      <State health={health} />{' '}
      {data === undefined ? (
        <>Version not known{error !== null && `: ${error.message}`}</>
      ) : (
        <>
          Version {data.broker}
          {data.chart !== 'unknown' && `, chart ${data.chart}`}.{' '}
          {data.update_available ? (
            <Badge tone="warn">an update is available</Badge>
          ) : (
            <span class="faint">
              {data.checked_at === null ? (
                'Updates are not checked.'
              ) : (
                <>
                  Up to date, checked <Ago at={data.checked_at} />.
                </>
              )}
            </span>
          )}
        </>
      )}
    </p>
  )
}

function State({ health: { data, error } }: { health: WorksProps['health'] }) {
  if (error !== null)
    return <Badge tone="bad">{error instanceof ApiError && error.status === 503 ? error.message : 'no answer'}</Badge>
  if (data === undefined) return <Badge>asking</Badge>
  return <Badge tone="good">works</Badge>
}

interface Since {
  readonly observedSince: string | null
}

function Held({ reading: { data, error }, of }: { reading: Reading<Since>; of: string }) {
  if (data === undefined) return <span class="faint">{error === null ? 'asking' : `not known: ${error.message}`}</span>
  return data.observedSince === null ? `no ${of} is held` : <Time at={data.observedSince} />
}

interface KnownRow {
  readonly part: PartName
  readonly total: number | null
  readonly known: number | null
  readonly missing: readonly (readonly [string, number])[]
}

function Known({ report }: { report: Answer<'/coverage'> }) {
  const rows = PARTS.map((part): KnownRow => {
    const totals = report[part]?.totals
    return {
      part,
      total: totals?.total ?? null,
      known: totals?.known ?? null,
      missing: Object.entries(totals?.missing ?? {}).filter(([, count]) => count > 0),
    }
  })
  return (
    <Table
      name="What is known"
      rows={rows}
      keyOf={({ part }) => part}
      columns={KNOWN_COLUMNS}
      commands={{ ctb: ['coverage'], url: addressOf('/coverage', {}) }}
      empty={null}
    />
  )
}

const KNOWN_COLUMNS: readonly Column<KnownRow>[] = [
  {
    title: 'Of',
    cell: ({ part }) => (
      <a class="nowrap" href={href(['health'], { part })}>
        {part}
      </a>
    ),
    text: ({ part }) => part,
  },
  {
    title: 'In all',
    cell: ({ total }) => (total === null ? <span class="faint">too many to count</span> : numberText(total)),
    text: ({ total }) => total,
    isNumber: true,
  },
  {
    title: 'Known whole',
    cell: ({ known }) => (known === null ? '?' : numberText(known)),
    text: ({ known }) => known,
    isNumber: true,
  },
  {
    title: 'Not known',
    cell: ({ part, total, missing }) =>
      missing.length === 0 ? (
        <span class="faint">{total === null ? '?' : total === 0 ? 'none is known' : 'nothing is missing'}</span>
      ) : (
        <a class="roomy" href={href(['health'], { part })}>
          {missing.map(([name, count]) => `${gapText(name)} (${numberText(count)})`).join(', ')}
        </a>
      ),
    text: ({ missing }) => missing.map(([name, count]) => `${name} ${count}`).join(' '),
  },
]

/** The current metrics and those of the previous poll, from which rates are computed. */
function useScrapes(reading: Reading<string>): { readonly now: Scrape | null; readonly before: Scrape | null } {
  const last = useRef<Scrape | null>(null)
  const [scrapes, setScrapes] = useState<{ now: Scrape | null; before: Scrape | null }>({ now: null, before: null })
  const { data, dataUpdatedAt } = reading
  useEffect(() => {
    if (data === undefined || last.current?.atMs === dataUpdatedAt) return
    const now = { metrics: parseMetrics(data, isWanted), atMs: dataUpdatedAt }
    setScrapes({ now, before: last.current })
    last.current = now
  }, [data, dataUpdatedAt])
  return scrapes
}

function FromMetrics({ reading }: { reading: Reading<Answer<'/metrics'>> }) {
  const { now, before } = useScrapes(reading as Reading<string>)
  if (now === null)
    return (
      <Part title="Metrics">
        {reading.error === null ? (
          <Loading />
        ) : (
          <>
            <Failure error={reading.error} retry={reading.refetch} />
            <p class="faint">
              Requests, refusals, jobs and lags are read from <code>/metrics</code>, which cannot be read here. A proxy
              may leave it out; the admin port of the broker has it as well.
            </p>
          </>
        )}
      </Part>
    )
  const props = { now, before }
  return (
    <>
      <Part title="Lags and budgets">
        <Lags {...props} />
      </Part>
      <Part title="Refused and left out">
        <Refusals {...props} />
      </Part>
      <Part title="Requests">
        <Requests {...props} />
      </Part>
      <Part title="Jobs">
        <Jobs {...props} />
      </Part>
      <Part title="Largest tables">
        <Tables {...props} />
      </Part>
    </>
  )
}
