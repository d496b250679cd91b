/** docs/sizing.md, made of the figures measured and the estimate. */
import { writeFileSync } from 'node:fs'
import { loadConfig } from '../../../lib/config/index.ts'
import { JOBS, type JobName, type Measured, POSTS, type PostName, readMeasured, type Simulation } from './measured.ts'
import { type Estimate, endsOf, type LimitName, model, postsOf, unitBytes, unitsOf } from './model.ts'
import { DEFAULTS, PARAMETERS, type Parameter, RETENTION_DAYS, SERVER_LIMITS } from './parameters.ts'
import { TOPICS, type TopicName } from './topics.ts'

const PAGE = new URL('../../../docs/sizing.md', import.meta.url)
export const NODES = [10, 100, 1_000, 10_000] as const
const EXAMPLE_NODES = 250
const MAX_COLUMNS = 120
/** Below it a machine has its cores for the measurement. */
const IDLE_CORES = 0.2
/** Retention in days, as an example of what to change. */
const SHORTER = { flows: 7, edges: 30, verdicts: 7, deadPods: 7, compute: 2 } as const

/** Whole numbers with thin groups, smaller ones with two digits that count. */
export function digits(value: number): string {
  if (value === 0) return '0'
  if (value >= 100) return grouped(Number(value.toPrecision(3)))
  if (value >= 10) return value.toFixed(0)
  return String(Number(value.toPrecision(2)))
}
const grouped = (value: number) =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ')

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB']
/** Decimal units, as disks are sold. */
export function size(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3 + 1e-9))
  return `${digits(bytes / 1_000 ** power)} ${UNITS[power]}`
}

const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), `|${head.map((_, i) => (i === 0 ? '---|' : '---:|')).join('')}`, ...rows.map(row)].join('\n')
}
const textTable = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [row(head), `|${head.map(() => '---|').join('')}`, ...rows.map(row)].join('\n')

const postNames = Object.keys(POSTS) as PostName[]
const topicNames = Object.keys(TOPICS) as TopicName[]
const FIRST: Record<LimitName, string> = {
  ...{ disk: 'disk is', cores: 'cores are', 'write-ahead log': 'write-ahead log is', connections: 'connections are' },
}
const loadOf = (load: number) =>
  load < IDLE_CORES
    ? 'It did nothing else.'
    : `It was busy with other work (${load.toFixed(1)} cores), so that rates and times are worse than they need be.`
const words: Record<LimitName, string> = {
  disk: `${size(SERVER_LIMITS.diskBytes)} of disk`,
  cores: `${SERVER_LIMITS.cores} cores`,
  'write-ahead log': `${size(SERVER_LIMITS.walBytesPerSec)} of write-ahead log a second`,
  connections: `${digits(SERVER_LIMITS.connections)} connections`,
}

function parameterTable(): string {
  const rows = (Object.entries(PARAMETERS) as [string, Parameter][]).map(([name, { value, unit, reason }]) => [
    `\`${name}\``,
    `${Number.isInteger(value) ? grouped(value) : value} ${unit}`,
    reason,
  ])
  return textTable(['Parameter', 'Value', 'Reason'], rows)
}

function clusterTable(estimates: readonly Estimate[]): string {
  const lines: [string, (one: Estimate) => string][] = [
    ['Pods', (one) => digits(one.pods)],
    ['Containers', (one) => digits(one.containers)],
    ['Requests a second', (one) => digits(one.requestsPerSecond)],
    ['Entries a second', (one) => digits(one.entriesPerSecond)],
    ['Cores that brokers use', (one) => digits(one.brokerCores)],
    ['Replicas', (one) => digits(one.replicas)],
    ['Connections', (one) => digits(one.connections)],
    ['Cores that PostgreSQL uses', (one) => digits(one.postgresCoresUsed)],
    ['Cores of its server', (one) => digits(one.postgresCores)],
    ['Write-ahead log a second', (one) => size(one.walBytesPerSec)],
    ['New on disk a day', (one) => size(one.diskBytesPerDay)],
    ['Disk', (one) => size(one.diskBytes)],
  ]
  return table(
    ['Nodes', ...estimates.map(({ nodes }) => digits(nodes))],
    lines.map(([name, of]) => [name, ...estimates.map(of)]),
  )
}

function diskTable(estimates: readonly Estimate[]): string {
  const rows = topicNames
    .toSorted((a, b) => estimates.at(-1)!.disk[b].bytes - estimates.at(-1)!.disk[a].bytes)
    .map((topic) => [
      TOPICS[topic].title,
      ...estimates.map(({ disk }) => `${size(disk[topic].bytes)} (${size(disk[topic].bytesPerDay)})`),
    ])
  return table(['Nodes', ...estimates.map(({ nodes }) => digits(nodes))], rows)
}

function unitTable(measured: Measured): string {
  const bytes = unitBytes(measured)
  const units = unitsOf(1)
  return table(
    ['Topic', 'A unit is', 'Measured on', 'Bytes of a unit', 'Units of a node, kept'],
    topicNames.map((topic) => [
      TOPICS[topic].title,
      TOPICS[topic].unit,
      digits(measured.tables.find(({ table }) => table === TOPICS[topic].countedBy)?.rows ?? 0),
      digits(bytes[topic]),
      digits(units[topic].kept),
    ]),
  )
}

function postTable(measured: Measured): string {
  const perNode = postsOf(1)
  return table(
    [
      'Route',
      'An entry is',
      'Entries/s',
      'Requests/s',
      'Broker, ms',
      'PostgreSQL, ms',
      'Log',
      'Of 1 000 nodes, entries/s',
    ],
    postNames.map((name) => {
      const work = measured.posts[name]
      const [route, entry] = POSTS[name]
      const ms = (secs: number) => digits((secs * 1_000) / work.entries)
      return [
        `\`${route}\``,
        entry,
        ...[digits(work.entries / work.seconds), digits(work.requests / work.seconds)],
        ...[ms(work.brokerCpuSecs), ms(work.postgresCpuSecs), size(work.walBytes / work.entries)],
        digits(perNode[name].entriesPerSecond * 1_000),
      ]
    }),
  )
}

function jobTable(measured: Measured): string {
  return table(
    ['Job', 'An entry is', 'Entries', 'PostgreSQL, ms'],
    (Object.keys(JOBS) as JobName[]).map((name) => {
      const work = measured.jobs[name]
      return [
        name.endsWith('-') ? `all of \`${name.slice(0, -1)}\`` : `\`${name}\``,
        JOBS[name],
        digits(work.entries),
        digits((work.postgresCpuSecs * 1_000) / work.entries),
      ]
    }),
  )
}

function endOfOneServer(measured: Measured): string {
  const ends = endsOf(measured)
  const shorter = endsOf(measured, DEFAULTS, { ...RETENTION_DAYS, ...SHORTER })
  const [first] = ends
  const [then] = shorter
  return `The limits are those of one large server: ${Object.values(words).slice(0, -1).join(', ')}, and
  ${words.connections}.
With the values above one server ends at ${digits(first!.nodes)} nodes; its ${FIRST[first!.limit]} the first to be
used up:

${table(
  ['Limit', 'Reached with', 'With shorter retention'],
  ends.map(({ limit, nodes }) => [
    words[limit],
    `${digits(nodes)} nodes`,
    `${digits(shorter.find((one) => one.limit === limit)!.nodes)} nodes`,
  ]),
)}

Shorter retention is here ${SHORTER.flows} days of flows (\`POD_TRAFFIC_RETENTION_DAYS\`), ${SHORTER.edges} of edges
(\`FLOW_EDGE_RETENTION_DAYS\`), ${SHORTER.verdicts} of verdicts (\`AUDIT_VERDICTS_RETENTION_DAYS\`),
${SHORTER.deadPods} of dead pods
(\`DEAD_POD_RETENTION_DAYS\`) and ${SHORTER.compute} of compute history (\`COMPUTE_HISTORY_RETENTION_DAYS\`); then
one server ends at ${digits(then!.nodes)}
nodes. Connections need not be the end: lower \`DB_POOL_MAX_SIZE\`, or put [a pooler](operations.md#the-database)
between. A cluster beyond the limit of one server can keep less, also of minutes
(\`COMPUTE_HISTORY_MINUTE_HOURS\`), or send its
nodes to several brokers, each with a database of its own, which know nothing of each other.`
}

function example(measured: Measured): string {
  const bytes = unitBytes(measured)
  const kept = unitsOf(EXAMPLE_NODES)
  const flows = kept.flows.kept
  const disk = flows * bytes.flows * DEFAULTS.tableReserve
  const posts = postsOf(EXAMPLE_NODES).knownPods
  const work = measured.posts.knownPods
  const ms = (work.brokerCpuSecs * 1_000) / work.entries
  return `- **Disk** of a topic is units kept x bytes of a unit x ${DEFAULTS.tableReserve}. Units kept are those
  that live, plus those that are
  new each day x days of retention. For example, ${EXAMPLE_NODES} nodes of ${DEFAULTS.podsPerNode} pods with
  ${DEFAULTS.newFlowsPerPodDay} new flows a pod and day keep
  ${EXAMPLE_NODES} x ${DEFAULTS.podsPerNode} x ${DEFAULTS.newFlowsPerPodDay} x ${RETENTION_DAYS.flows} days =
  ${digits(flows)} flows, of ${digits(bytes.flows)} bytes each: ${size(disk)}.
- **Cores** are entries a second x milliseconds of an entry / 1 000. For example, these nodes post
  ${digits(EXAMPLE_NODES * DEFAULTS.podsPerNode)} pods every
  ${DEFAULTS.podPostSecs} seconds, ${digits(posts.entriesPerSecond)} a second, of ${digits(ms)} ms each:
  ${digits((posts.entriesPerSecond * ms) / 1_000)} cores of brokers.
- **Replicas** are the cores of all routes / ${DEFAULTS.maxReplicaCpu}, and at least ${DEFAULTS.minReplicas}.
  **Connections** are (replicas + 1) x
  \`DB_POOL_MAX_SIZE\` (${loadConfig({}).dbPoolMaxSize}).
- **Your own values** are in the metrics: \`broker_db_table_rows\` and \`broker_db_table_bytes\` by table, and the
  counts of
  \`broker_http_request_duration_seconds\` by route.`
}

const factor = (measured: number, predicted: number) =>
  predicted === 0 ? 'none' : `${(measured / predicted).toFixed(2)} of it`

function simulation(one: Simulation | null): string {
  if (one === null) return 'Not run yet.'
  return `${digits(one.nodes)} nodes posted for ${digits(one.minutes)} minutes to ${one.replicas} brokers and one
  PostgreSQL (${one.date}), with one thousandth of
the data: the containers, pods and flows of ${digits(one.nodes / 1_000)} nodes, spread over as many nodes as there
are pods. What a node posts
of itself came from every node as often as it does in a cluster: drains of denials, lists of profiles and
heartbeats. Other nodes than those with pods posted a sample without containers each five minutes, as agents do that
measure none. Requests leave when they are due, whether or not those before were answered, and times count from then.

${digits(one.requests)} requests, of which ${digits(one.requestsPerSecond)} a second were due and
${digits(one.answersPerSecond)} were answered; **${one.failed} were refused or failed**. The largest broker had
${digits(one.peakMib)} MiB at its peak. ${loadOf(one.load)}

${table(
  ['Route', 'An entry is', 'Requests', 'p50, ms', 'p95, ms', 'p99, ms'],
  one.posts.map(({ post, requests, p50Ms, p95Ms, p99Ms }) => [
    ...[`\`${POSTS[post][0]}\``, POSTS[post][1]],
    digits(requests),
    digits(p50Ms),
    digits(p95Ms),
    digits(p99Ms),
  ]),
)}

The estimate counts as right where between half and twice of it was measured:

${table(
  ['', 'Predicted', 'Measured', ''],
  [
    ['Rows', digits(one.predictedRows), digits(one.rows), factor(one.rows, one.predictedRows)],
    ['Disk', size(one.predictedBytes), size(one.bytes), factor(one.bytes, one.predictedBytes)],
    [
      'Cores of brokers',
      digits(one.predictedBrokerCores),
      digits(one.brokerCores),
      factor(one.brokerCores, one.predictedBrokerCores),
    ],
    [
      'Cores of PostgreSQL',
      digits(one.predictedPostgresCores),
      digits(one.postgresCores),
      factor(one.postgresCores, one.predictedPostgresCores),
    ],
  ],
)}`
}

/** Breaks lines of prose and lists at the width of documents; tables, headings and comments stay. */
export function wrapped(text: string): string {
  const paragraphs = text.split('\n\n').flatMap((paragraph) => {
    if (/^[|#<]/.test(paragraph)) return [paragraph]
    const items = paragraph.startsWith('- ') ? paragraph.split(/\n(?=- )/) : [paragraph]
    return [items.map((item) => wrap(item, item.startsWith('- ') ? '  ' : '')).join('\n')]
  })
  return paragraphs.join('\n\n')
}
function wrap(text: string, indent: string): string {
  const lines = ['']
  for (const word of text.trim().split(/\s+/)) {
    const line = lines.at(-1)!
    if (line !== '' && line.length + 1 + word.length > MAX_COLUMNS) lines.push(`${indent}${word}`)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.join('\n')
}

/** The whole page. */
export const page = (measured: Measured) => `${wrapped(textOf(measured))}\n`

function textOf(measured: Measured): string {
  const estimates = NODES.map((nodes) => model(nodes, measured))
  const { cores, memoryGib, postgres, node } = measured.machine
  return `<!-- Written by \`npm run docs\` from test/bench/sizing: change it there. -->

# Sizing

How many brokers, and how large a PostgreSQL server, a cluster needs. The figures are estimates from what was
measured:
\`npm run sizing\` measures again and writes this page, \`npm run sizing -- --page\` writes it without measuring.

- [Estimates](#estimates)
- [Where one server ends](#where-one-server-ends)
- [Your own cluster](#your-own-cluster)
- [The cluster that is assumed](#the-cluster-that-is-assumed)
- [Figures](#figures)
- [Simulation](#simulation)
- [Limits of the estimate](#limits-of-the-estimate)

## Estimates

${clusterTable(estimates)}

Disk by topic, and in parentheses how much of it is new each day:

${diskTable(estimates)}

Verdicts are stored only with an evaluator (\`EVALUATOR_URL\`), executables and capabilities only where agents
report them.

## Where one server ends

${endOfOneServer(measured)}

## Your own cluster

${example(measured)}

## The cluster that is assumed

${parameterTable()}

Retention is that of [the defaults](configuration.md). These values are in \`test/bench/sizing/parameters.ts\`:
change them there and
run \`npm run sizing -- --page\`.

## Figures

Measured on ${measured.date}: client, one broker (Node ${node}) and PostgreSQL ${postgres} on one machine of
${cores} cores and ${memoryGib} GiB,
${measured.connections} connections. ${loadOf(measured.machine.load)} Milliseconds are those of a processor core
for each entry. They depend on the machine less than
entries a second do, which are what one broker took while all three shared the cores. Log is write-ahead log of an
entry.

${postTable(measured)}

${jobTable(measured)}

Bytes include indexes, long values and the maps of free space and visibility, after a vacuum:

${unitTable(measured)}

## Simulation

${simulation(measured.simulation)}

## Limits of the estimate

- Reads are not counted, nor is deleting what is too old: half of the cores of brokers and of PostgreSQL is left for
  them, for vacuum and for peaks.
- Jobs beside the four above take little, and are left out.
- Memory of PostgreSQL is not estimated: give it as much as a day of flows and of compute history takes, if you can.
- An entry takes less time in large posts than in small ones, and less when many arrive at once.
- Days of compute history go as a whole: it was measured with ${measured.hoursOfDay} hours of the day over, and is
  up to a day larger at its end.
- Bytes depend on the length of names and on how values differ: names here are as long as those of Deployments.
- Flows stay longer than their retention while a live pod needs them; with pods that live long, keep more in reserve.
- Decisions, documents of VEX, results of signature checks and mirrored profiles are few, and left out.
`
}

export const writePage = () => writeFileSync(PAGE, page(readMeasured()))
