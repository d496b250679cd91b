import { z } from 'zod'
import { databaseVariables, printableDatabase, readDatabase } from './config/database-variables.ts'
import {
  type ConfiguredToken,
  readToken,
  type TokenFiles,
  tokenFilesOf,
  tokenLines,
  unknownTokens,
} from './config/token-variables.ts'
import {
  address,
  addresses,
  asTable,
  ConfigError,
  databaseUrl,
  decimal,
  dnsName,
  flag,
  httpUrl,
  logLevels,
  origins,
  printable,
  type Row,
  readRow,
  text,
  trimmed,
  whole,
  word,
} from './config/variables.ts'
import type { Address } from './db/address.ts'
import { WIRE_NAMES } from './wire-names/index.ts'

export { ConfigError }

const TOKEN_VARIABLES = [
  'BROKER_TOKEN_READ',
  'BROKER_TOKEN_INGEST',
  'BROKER_TOKEN_SUPPLYCHAIN',
  'BROKER_AUTH_TOKEN',
] as const
export type TokenVariable = (typeof TOKEN_VARIABLES)[number]

/** Ingest, reads and jobs have a gate each, and each gate needs connections of its own. */
const MIN_POOL_SIZE = 6
/** Connections that stay free while every permit of the audit stores a verdict. */
const POOL_SIZE_BESIDE_AUDIT = 8
const READ_BUDGET_SHARE_OF_MEMORY_LIMIT = 0.3
/** Timers and PostgreSQL's settings hold milliseconds in 31 bits. */
const MAX_MS = 2_147_483_647
const MAX_SECS = Math.floor(MAX_MS / 1000)
const MAX_MB = 1024 * 1024
const MAX_DAYS = 36_500
/** Reads go back seven days at most, and each day costs three partitions. */
const MAX_HISTORY_DAYS = 90
const BATCH_ROWS = [100, 100_000] as const

/** The environment: one row a variable, in the order of the documentation. The tokens follow below. */
const rows = {
  nodeEnv: word(
    'NODE_ENV',
    ['development', 'production', 'test'],
    'development',
    '`production` requires `DATABASE_URL` or `PGHOST`.',
  ),
  listen: address(
    'LISTEN_ADDR',
    ['[::]:9090', '0.0.0.0:9090'],
    'Address of the API. Without tokens it serves this machine only; with tokens it falls back to the second address on hosts without IPv6.',
    '`127.0.0.1:9090` and `[::1]:9090`; with tokens `[::]:9090`, then `0.0.0.0:9090`',
  ),
  adminListen: address(
    'ADMIN_ADDR',
    ['127.0.0.1:9091'],
    'Address of the probes `/livez` and `/readyz` and of a second `/metrics`.',
  ),
  corsOrigins: origins(
    'CORS_ORIGINS',
    'Origins of web pages that may read answers; unset = no page of another origin.',
  ),
  databaseUrl: databaseUrl(
    'DATABASE_URL',
    'The PostgreSQL server to use. Without it and `PGHOST` an embedded one is started, except in production.',
  ),
  dataDir: text('DATA_DIR', '.data', 'Folder of the embedded PostgreSQL server.'),
  logLevel: word('LOG_LEVEL', logLevels, 'info', 'Lowest level that is logged.'),
  migrateOnStart: flag('MIGRATE_ON_START', true, 'Whether the server migrates the schema before it listens.'),
  dbPoolMaxSize: whole('DB_POOL_MAX_SIZE', 32, [MIN_POOL_SIZE, 1000], 'Database connections, at most.'),
  dbStatementTimeoutMs: whole(
    'DB_STATEMENT_TIMEOUT_MS',
    30_000,
    [0, MAX_MS],
    'Milliseconds a statement may take; 0 = unlimited.',
  ),
  dbPrepare: flag('DB_PREPARE', true, 'Named prepared statements; `false` behind a transaction pooler.'),
  dbMigrationMaxRetries: whole(
    'DB_MIGRATION_MAX_RETRIES',
    10,
    [1, 10_000],
    'Attempts to migrate before the start fails.',
  ),
  readMemoryBudgetMb: whole(
    'BROKER_READ_MEMORY_BUDGET_MB',
    256,
    [1, MAX_MB],
    'MiB that list routes may hold at once; further reads wait.',
  ),
  readAcquireWaitMs: whole(
    'BROKER_READ_ACQUIRE_WAIT_MS',
    5000,
    [0, MAX_MS],
    'Milliseconds a read waits for that memory; 0 = fail at once.',
  ),
  memoryLimitMb: {
    ...whole(
      'BROKER_MEMORY_LIMIT_MB',
      0,
      [0, MAX_MB],
      'MiB the process may use: the read budget is lowered to 30 % of it.',
    ),
    shown: 'unset',
  },
  jobs: word(
    'JOBS',
    ['in-process', 'external'],
    'in-process',
    '`external`: the server runs no jobs, a scheduler runs `jobs/run`.',
  ),
  peerLateResolveWindowSecs: whole(
    'PEER_LATE_RESOLVE_WINDOW_SECS',
    600,
    [0, MAX_SECS],
    'Seconds during which a flow without a peer is attributed again; 0 = off.',
  ),
  peerLateResolveIntervalSecs: whole(
    'PEER_LATE_RESOLVE_INTERVAL_SECS',
    60,
    [5, MAX_SECS],
    'Seconds between passes over flows without a peer and over stale pods.',
  ),
  peerStaleAliveSecs: whole(
    'PEER_STALE_ALIVE_SECS',
    900,
    [0, MAX_SECS],
    'Seconds without a post after which a pod is marked dead; 0 = off.',
  ),
  evaluatorUrl: httpUrl(
    'EVALUATOR_URL',
    'refused',
    'URL of the policy evaluator, which receives new flows and answers image trust; unset = both off.',
  ),
  auditInflightPermits: whole('AUDIT_INFLIGHT_PERMITS', 16, [1, 1024], 'Flows evaluated at once, at most.'),
  auditQueueCapacity: whole(
    'AUDIT_QUEUE_CAPACITY',
    2048,
    [1, 1_000_000],
    'Flows that wait to be evaluated, at most; further flows are not evaluated.',
  ),
  auditEvalTimeoutMs: whole(
    'AUDIT_EVAL_TIMEOUT_MS',
    500,
    [50, MAX_MS],
    'Milliseconds the evaluator may take for a flow.',
  ),
  auditRetentionDays: whole(
    'AUDIT_VERDICTS_RETENTION_DAYS',
    30,
    [0, MAX_DAYS],
    'Days that verdicts are kept; 0 = forever.',
  ),
  auditRetentionIntervalSecs: whole(
    'AUDIT_VERDICTS_RETENTION_INTERVAL_SECS',
    3600,
    [60, MAX_SECS],
    'Seconds between passes over old verdicts and dead pods.',
  ),
  auditRetentionBatchSize: whole(
    'AUDIT_VERDICTS_RETENTION_BATCH_SIZE',
    5000,
    BATCH_ROWS,
    'Rows that one statement of these passes deletes.',
  ),
  deadPodRetentionDays: {
    ...whole('DEAD_POD_RETENTION_DAYS', 0, [0, MAX_DAYS], 'Days that dead pods are kept; 0 = as long as verdicts.'),
    shown: 'days of verdicts, or `7`',
  },
  trafficRetentionDays: whole(
    'POD_TRAFFIC_RETENTION_DAYS',
    14,
    [0, MAX_DAYS],
    'Days after which flows that no live pod needs are deleted; 0 = never.',
  ),
  trafficRetentionIntervalSecs: whole(
    'POD_TRAFFIC_RETENTION_INTERVAL_SECS',
    3600,
    [60, MAX_SECS],
    'Seconds between passes over old flows.',
  ),
  trafficRetentionBatchSize: whole(
    'POD_TRAFFIC_RETENTION_BATCH_SIZE',
    5000,
    BATCH_ROWS,
    'Flows that one statement of such a pass examines.',
  ),
  trafficMaxRowsPerPod: whole(
    'POD_TRAFFIC_MAX_ROWS_PER_POD',
    0,
    [0, 1_000_000_000],
    'Flows of a pod above which old flows without a peer are deleted; 0 = unlimited.',
  ),
  imageInventoryRetentionDays: whole(
    'IMAGE_INVENTORY_RETENTION_DAYS',
    30,
    [0, MAX_DAYS],
    'Days that images which run nowhere are kept; 0 = forever.',
  ),
  imageInventoryIntervalSecs: whole(
    'IMAGE_INVENTORY_RETENTION_INTERVAL_SECS',
    3600,
    [60, MAX_SECS],
    'Seconds between passes over old images.',
  ),
  imageInventoryBatchSize: whole(
    'IMAGE_INVENTORY_RETENTION_BATCH_SIZE',
    5000,
    BATCH_ROWS,
    'Rows that one statement of these passes deletes.',
  ),
  imageRunningWindowSecs: whole(
    'IMAGE_INVENTORY_RUNNING_WINDOW_SECS',
    900,
    [360, 604_800],
    'Seconds for which a container counts as running after it was last reported.',
  ),
  wireNames: word(
    'WIRE_NAMES',
    WIRE_NAMES,
    'spec',
    'Names of sources, formats and metrics in answers: neutral names, or those of the products.',
  ),
  metricsWorkloadLabels: word(
    'METRICS_WORKLOAD_LABELS',
    ['all', 'admin', 'off'],
    'all',
    'Where `/metrics`, which needs no token, names namespaces and workloads: on both ports, on the admin port only, or nowhere.',
  ),
  supplyChainMaxInflatedBytes: whole(
    'SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES',
    8_388_608,
    [1_048_576, 33_554_432],
    'Bytes that a report of findings or an SBOM may have once it is decompressed.',
  ),
  supplyChainIntervalSecs: whole(
    'SUPPLYCHAIN_RETENTION_INTERVAL_SECS',
    300,
    [60, MAX_SECS],
    'Seconds between passes that link reports to images and bring the summary up to date.',
  ),
  supplyChainRetentionDays: whole(
    'SUPPLYCHAIN_RETENTION_DAYS',
    30,
    [0, MAX_DAYS],
    'Days that reports and SBOMs of images which no longer run are kept; 0 = forever.',
  ),
  supplyChainUnlinkedGraceHours: whole(
    'SUPPLYCHAIN_UNLINKED_GRACE_HOURS',
    24,
    [0, MAX_DAYS * 24],
    'Hours that a new report is kept even if its image does not run.',
  ),
  sbomPageTtlSecs: whole(
    'SUPPLYCHAIN_SBOM_PAGE_TTL_SECS',
    3600,
    [60, MAX_SECS],
    'Seconds for which the pages of an incomplete SBOM are kept.',
  ),
  supplyChainBatchSize: whole(
    'SUPPLYCHAIN_RETENTION_BATCH_SIZE',
    50,
    [1, 1000],
    'Reports that one statement of such a pass deletes.',
  ),
  attestationRetentionDays: whole(
    'IMAGE_ATTESTATION_RETENTION_DAYS',
    7,
    [0, MAX_DAYS],
    'Days that the last result of a signature check is kept; 0 = as long as the image is known.',
  ),
  annotationPrefix: dnsName(
    'ANNOTATION_PREFIX',
    'kguardian.dev',
    'Prefix (before the slash) of annotations in generated policies and profiles.',
  ),
  seccompProfileDir: {
    ...text(
      'SECCOMP_PROFILE_DIR',
      'kguardian',
      'Folder of the profiles on the nodes, relative to the seccomp root of the kubelet.',
    ),
    type: 'relative path',
    schema: z
      .string()
      .max(253)
      .regex(/^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/) as z.ZodType<string, string>,
  },
  seccompProfilesCacheTtlSecs: whole(
    'SECCOMP_PROFILES_CACHE_TTL_SECS',
    10,
    [0, 3600],
    'Seconds that the list of seccomp profiles is cached; 0 = no cache.',
  ),
  seccompNodeStaleSecs: whole(
    'SECCOMP_NODE_STATUS_STALE_SECS',
    900,
    [0, MAX_SECS],
    'Seconds after which a node that sent no profile status is ignored; 0 = never.',
  ),
  seccompDenialsRetentionDays: whole(
    'SECCOMP_DENIALS_RETENTION_DAYS',
    30,
    [0, MAX_DAYS],
    'Days that seccomp denials are kept after they were last seen; 0 = forever.',
  ),
  seccompDenialsIntervalSecs: whole(
    'SECCOMP_DENIALS_RETENTION_INTERVAL_SECS',
    3600,
    [60, MAX_SECS],
    'Seconds between passes that attribute denials to workloads and delete old ones.',
  ),
  seccompDenialsBatchSize: whole(
    'SECCOMP_DENIALS_RETENTION_BATCH_SIZE',
    5000,
    BATCH_ROWS,
    'Denials that one statement of such a pass attributes or deletes.',
  ),
  seccompDenialMetricsIntervalSecs: whole(
    'SECCOMP_DENIAL_METRICS_INTERVAL_SECS',
    15,
    [5, MAX_SECS],
    'Seconds between counts of the workloads that have denials.',
  ),
  runtimeInventoryRetentionDays: whole(
    'RUNTIME_INVENTORY_RETENTION_DAYS',
    30,
    [0, MAX_DAYS],
    'Days that executed files are kept after they were last seen, and containers after their last heartbeat; 0 = forever.',
  ),
  runtimeInventoryIntervalSecs: whole(
    'RUNTIME_INVENTORY_RETENTION_INTERVAL_SECS',
    3600,
    [60, MAX_SECS],
    'Seconds between passes over these; one statement deletes `IMAGE_INVENTORY_RETENTION_BATCH_SIZE` of them.',
  ),
  computeHistoryRetentionDays: whole(
    'COMPUTE_HISTORY_RETENTION_DAYS',
    7,
    [0, MAX_HISTORY_DAYS],
    'Days that the history of CPU and memory is kept; 0 = no history and no findings.',
  ),
  computeHistoryMinuteHours: whole(
    'COMPUTE_HISTORY_MINUTE_HOURS',
    24,
    [1, MAX_DAYS * 24],
    'Hours of history kept by the minute; older minutes are rolled up into rows of five minutes.',
  ),
  computeRetentionIntervalSecs: whole(
    'COMPUTE_RETENTION_INTERVAL_SECS',
    600,
    [60, MAX_SECS],
    'Seconds between passes over history, samples and heartbeats of nodes.',
  ),
  computeStallSome: decimal(
    'COMPUTE_THRESHOLD_STALL_SOME',
    20,
    'Percent of CPU pressure from which a container counts as stalled.',
  ),
  computeRunqP99Ms: decimal(
    'COMPUTE_THRESHOLD_RUNQ_P99_MS',
    20,
    'Milliseconds of run-queue latency (p99) from which a container counts as stalled, too.',
  ),
  computeMinRunqEvents: decimal(
    'COMPUTE_THRESHOLD_MIN_RUNQ_EVENTS',
    50,
    'Run-queue events a minute below which the p99 is ignored.',
  ),
  computeThrottledRatio: decimal(
    'COMPUTE_THRESHOLD_THROTTLED_RATIO',
    0.25,
    'Ratio of throttled time to quota time from which the finding `cpu-throttled` is made.',
  ),
  computeThrottledRatioMax: decimal(
    'COMPUTE_THRESHOLD_THROTTLED_RATIO_MAX',
    0.1,
    'Ratio of throttled time to quota time above which no neighbor is blamed.',
  ),
  computeBlameShare: decimal(
    'COMPUTE_THRESHOLD_BLAME_SHARE',
    0.4,
    'Share of the waiting time of a container from which its cause is named.',
  ),
  computeMemStallSome: decimal(
    'COMPUTE_THRESHOLD_MEM_STALL_SOME',
    10,
    'Percent of memory pressure from which a container is short of memory.',
  ),
  computeRefaultPerMin: decimal(
    'COMPUTE_THRESHOLD_REFAULT_PER_MIN',
    1000,
    'Refaults a minute from which a container is short of memory, too.',
  ),
  telemetryEnabled: {
    ...flag('TELEMETRY_ENABLED', true, 'Whether to ask once a day for new releases.'),
    ifUnreadable: 'default',
  },
  telemetryEndpoint: httpUrl('TELEMETRY_ENDPOINT', 'default', 'URL of the version service; unset = no check.'),
  telemetryIntervalSecs: whole('TELEMETRY_INTERVAL_SECS', 86_400, [3600, MAX_SECS], 'Seconds between two checks.'),
  chartVersion: {
    ...text('CHART_VERSION', 'unknown', 'Version of the chart that installed the broker.'),
    type: 'text',
    // Build metadata does not take part in comparisons (SemVer 2.0.0, section 10).
    schema: z.string().transform((version) => version.replace(/\+.*$/s, '') || 'unknown') as z.ZodType<string, string>,
  },
  kubeVersion: { ...text('KUBE_VERSION', 'unknown', 'Version of Kubernetes at install.'), type: 'text' },
  features: {
    ...text('FEATURES', 'none', 'Features that the chart enabled.'),
    type: 'slugs, separated by commas',
    ifUnreadable: 'default',
    schema: z.string().regex(/^[a-z0-9_,]{1,400}$/) as z.ZodType<string, string>,
  },
} satisfies Record<string, Row<unknown>>

/** The default without tokens: this machine, by IPv4 and IPv6. */
const LOOPBACK = addresses(['127.0.0.1:9090', '[::1]:9090'])

const TOKEN_MEANINGS: Record<TokenVariable, string> = {
  BROKER_TOKEN_READ:
    'Token with the scope `read`, or two tokens separated by a comma. Any token turns authentication on.',
  BROKER_TOKEN_INGEST: 'Token with the scopes `ingest` and `read`.',
  BROKER_TOKEN_SUPPLYCHAIN: 'Token with the scopes `supplychain` and `read`.',
  BROKER_AUTH_TOKEN: 'Shared token of older installations: `read` and `ingest`.',
}

type Settings = { readonly [K in keyof typeof rows]: (typeof rows)[K] extends Row<infer T> ? T : never }

/** The parsed environment; keys carry their units. Contains secrets: print `redacted(config)` instead. */
export interface Config extends Settings {
  readonly tokens: readonly ConfiguredToken<TokenVariable>[]
  /** Files of these tokens, which are read again while the broker runs. */
  readonly tokenFiles: readonly TokenFiles<TokenVariable>[]
  /**
   * Whether the API serves this machine only. It then listens on all addresses of `listen`, else on the first usable
   * one.
   */
  readonly isLoopbackOnly: boolean
  /** The external database; null for the embedded one. */
  readonly database: Address | null
  /** Values that are used differently than written, and likely mistakes; a sentence each. */
  readonly warnings: readonly string[]
}

/**
 * Reads the environment. Values are trimmed, blank is unset.
 * @throws ConfigError for every variable that is refused, all at once.
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const errors: string[] = []
  const warnings: string[] = []
  const values = Object.fromEntries(
    Object.entries(rows).map(([key, row]) => [key, readRow(row, env, errors, warnings)]),
  ) as Settings
  const tokens = TOKEN_VARIABLES.flatMap((variable) => readToken(variable, env, errors, warnings))
  for (const name of unknownTokens(TOKEN_VARIABLES, env))
    warnings.push(`${name}: unknown variable; it grants nothing and does not turn authentication on`)
  const isUrlInvalid = values.databaseUrl === null && trimmed(env, 'DATABASE_URL') !== ''
  const database = isUrlInvalid ? null : readDatabase(values.databaseUrl, env, errors, warnings)
  if (values.nodeEnv === 'production' && trimmed(env, 'DATABASE_URL') === '' && trimmed(env, 'PGHOST') === '')
    errors.push('DATABASE_URL or PGHOST is required in production')
  if (errors.length > 0) throw new ConfigError(errors.join('\n'))
  if (tokens.length > 0 && values.metricsWorkloadLabels === 'all') warnings.push(OPEN_WORKLOAD_LABELS)
  const isLoopbackOnly = tokens.length === 0 && trimmed(env, 'LISTEN_ADDR') === ''

  return {
    ...values,
    ...(isLoopbackOnly ? { listen: LOOPBACK } : {}),
    isLoopbackOnly,
    readMemoryBudgetMb: affordableBudgetMb(values, warnings),
    dbPoolMaxSize: sufficientPoolSize(values, warnings),
    tokens,
    tokenFiles: tokenFilesOf(TOKEN_VARIABLES, env),
    database,
    warnings,
  }
}

const OPEN_WORKLOAD_LABELS =
  'METRICS_WORKLOAD_LABELS: tokens are set, but /metrics needs none and names namespaces and workloads; `admin` leaves these to the admin port'

function affordableBudgetMb({ memoryLimitMb, readMemoryBudgetMb }: Settings, warnings: string[]): number {
  const limitMb = Math.max(1, Math.floor(memoryLimitMb * READ_BUDGET_SHARE_OF_MEMORY_LIMIT))
  if (memoryLimitMb === 0 || readMemoryBudgetMb <= limitMb) return readMemoryBudgetMb
  warnings.push(
    `BROKER_READ_MEMORY_BUDGET_MB: ${readMemoryBudgetMb} is lowered to ${limitMb}, 30 % of BROKER_MEMORY_LIMIT_MB`,
  )
  return limitMb
}

function sufficientPoolSize(
  { dbPoolMaxSize, auditInflightPermits, evaluatorUrl }: Settings,
  warnings: string[],
): number {
  const size = auditInflightPermits + POOL_SIZE_BESIDE_AUDIT
  if (evaluatorUrl === null || dbPoolMaxSize >= size) return dbPoolMaxSize
  warnings.push(
    `DB_POOL_MAX_SIZE: ${dbPoolMaxSize} is raised to ${size}, ${POOL_SIZE_BESIDE_AUDIT} more than AUDIT_INFLIGHT_PERMITS`,
  )
  return size
}

/** The configuration by variable, without passwords; for tokens the names of their variables. */
export function redacted(config: Config): Record<string, string | number | boolean | string[] | null> {
  const printed = Object.entries(rows).map(([key, row]) => [row.name, printable(config[key as keyof typeof rows])])
  return {
    ...Object.fromEntries(printed),
    database: config.database === null ? 'embedded' : printableDatabase(config.database),
    tokens: [...new Set(config.tokens.map((token) => token.source))],
  }
}

/** The documentation of all variables: a Markdown table, without a final newline. */
export function configTable(): string {
  const settings = Object.values(rows).flatMap((row: Row<unknown>) => [
    [row.name, row.type, row.shown, row.meaning],
    ...(row === rows.databaseUrl ? databaseVariables : []),
  ])
  return asTable([...settings, ...TOKEN_VARIABLES.flatMap((name) => tokenLines(name, TOKEN_MEANINGS[name]))])
}
