import { z } from 'zod'
import { databaseVariables, readDatabase, shownDatabase } from './config/database-variables.ts'
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

const tokenVariables = [
  'BROKER_TOKEN_READ',
  'BROKER_TOKEN_INGEST',
  'BROKER_TOKEN_SUPPLYCHAIN',
  'BROKER_AUTH_TOKEN',
] as const
export type TokenVariable = (typeof tokenVariables)[number]

/** Ingest, reads and jobs each have a gate on the pool, and each gate needs connections of its own. */
const minPoolSize = 6
/** Connections that are left when every flow in flight stores its verdict (interop-core 6.3). */
const poolSizeBesideAudit = 8
const readBudgetShareOfMemoryLimit = 0.3
/** Timers and the settings of PostgreSQL count milliseconds in 31 bits. */
const maxMs = 2_147_483_647
const maxSecs = Math.floor(maxMs / 1000)
const maxMb = 1024 * 1024
const maxDays = 36_500
/** No read goes back more than seven; each day is three partitions. */
const maxHistoryDays = 90
const batchRows = [100, 100_000] as const

/** The environment: one row for each variable, in the order of docs/configuration.md. The tokens have a table of their own below. */
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
    'Address of the API, bound as written. Without tokens only this machine is served; with any, the second where the host has no IPv6.',
    '`127.0.0.1:9090` and `[::1]:9090`; with tokens `[::]:9090`, then `0.0.0.0:9090`',
  ),
  adminListen: address(
    'ADMIN_ADDR',
    ['127.0.0.1:9091'],
    'Address of the probes `/livez` and `/readyz` and of a second `/metrics`.',
  ),
  corsOrigins: origins(
    'CORS_ORIGINS',
    'Web pages that may read answers, by their origins; without any, none of another origin may.',
  ),
  databaseUrl: databaseUrl(
    'DATABASE_URL',
    'The PostgreSQL server to use. Without it and `PGHOST` an embedded one is started, except in production.',
  ),
  dataDir: text('DATA_DIR', '.data', 'Folder of the embedded PostgreSQL server.'),
  logLevel: word('LOG_LEVEL', logLevels, 'info', 'Lowest level that is logged.'),
  migrateOnStart: flag('MIGRATE_ON_START', true, 'Whether the server migrates the schema before it listens.'),
  dbPoolMaxSize: whole('DB_POOL_MAX_SIZE', 32, [minPoolSize, 1000], 'Database connections, at most.'),
  dbStatementTimeoutMs: whole(
    'DB_STATEMENT_TIMEOUT_MS',
    30_000,
    [0, maxMs],
    'Milliseconds a statement may take; 0 = no end.',
  ),
  dbPrepare: flag('DB_PREPARE', true, 'Named prepared statements; `false` behind a transaction pooler.'),
  dbMigrationMaxRetries: whole(
    'DB_MIGRATION_MAX_RETRIES',
    10,
    [1, 10_000],
    'Attempts at migrating before the start fails.',
  ),
  readMemoryBudgetMb: whole(
    'BROKER_READ_MEMORY_BUDGET_MB',
    256,
    [1, maxMb],
    'MiB that list routes may hold at once; what is above waits.',
  ),
  readAcquireWaitMs: whole(
    'BROKER_READ_ACQUIRE_WAIT_MS',
    5000,
    [0, maxMs],
    'Milliseconds a read waits for that memory; 0 = fail at once.',
  ),
  memoryLimitMb: {
    ...whole(
      'BROKER_MEMORY_LIMIT_MB',
      0,
      [0, maxMb],
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
    [0, maxSecs],
    'Seconds for which a flow without a peer is tried again; 0 = off.',
  ),
  peerLateResolveIntervalSecs: whole(
    'PEER_LATE_RESOLVE_INTERVAL_SECS',
    60,
    [5, maxSecs],
    'Seconds between passes over flows without a peer and over stale pods.',
  ),
  peerStaleAliveSecs: whole(
    'PEER_STALE_ALIVE_SECS',
    900,
    [0, maxSecs],
    'Seconds without a post after which a pod is marked dead; 0 = off.',
  ),
  evaluatorUrl: httpUrl(
    'EVALUATOR_URL',
    'refused',
    'The policy evaluator: new flows are forwarded to it, and image trust is read from it; without it neither is.',
  ),
  auditInflightPermits: whole('AUDIT_INFLIGHT_PERMITS', 16, [1, 1024], 'Flows evaluated at once, at most.'),
  auditQueueCapacity: whole(
    'AUDIT_QUEUE_CAPACITY',
    2048,
    [1, 1_000_000],
    'Flows that wait to be evaluated, at most; what is above is shed.',
  ),
  auditEvalTimeoutMs: whole(
    'AUDIT_EVAL_TIMEOUT_MS',
    500,
    [50, maxMs],
    'Milliseconds the evaluator may take for a flow.',
  ),
  auditRetentionDays: whole(
    'AUDIT_VERDICTS_RETENTION_DAYS',
    30,
    [0, maxDays],
    'Days that verdicts are kept; 0 = for ever.',
  ),
  auditRetentionIntervalSecs: whole(
    'AUDIT_VERDICTS_RETENTION_INTERVAL_SECS',
    3600,
    [60, maxSecs],
    'Seconds between passes over old verdicts and dead pods.',
  ),
  auditRetentionBatchSize: whole(
    'AUDIT_VERDICTS_RETENTION_BATCH_SIZE',
    5000,
    batchRows,
    'Rows of these that one statement deletes.',
  ),
  deadPodRetentionDays: {
    ...whole('DEAD_POD_RETENTION_DAYS', 0, [0, maxDays], 'Days that dead pods are kept; 0 = as long as verdicts.'),
    shown: 'days of verdicts, or `7`',
  },
  trafficRetentionDays: whole(
    'POD_TRAFFIC_RETENTION_DAYS',
    14,
    [0, maxDays],
    'Days after which flows may go that no live pod needs; 0 = never.',
  ),
  trafficRetentionIntervalSecs: whole(
    'POD_TRAFFIC_RETENTION_INTERVAL_SECS',
    3600,
    [60, maxSecs],
    'Seconds between passes over old flows.',
  ),
  trafficRetentionBatchSize: whole(
    'POD_TRAFFIC_RETENTION_BATCH_SIZE',
    5000,
    batchRows,
    'Flows that one statement looks at.',
  ),
  trafficMaxRowsPerPod: whole(
    'POD_TRAFFIC_MAX_ROWS_PER_POD',
    0,
    [0, 1_000_000_000],
    'Flows of a pod above which old ones without a peer go; 0 = no cap.',
  ),
  imageInventoryRetentionDays: whole(
    'IMAGE_INVENTORY_RETENTION_DAYS',
    30,
    [0, maxDays],
    'Days that images are kept that run nowhere; 0 = for ever.',
  ),
  imageInventoryIntervalSecs: whole(
    'IMAGE_INVENTORY_RETENTION_INTERVAL_SECS',
    3600,
    [60, maxSecs],
    'Seconds between passes over old images.',
  ),
  imageInventoryBatchSize: whole(
    'IMAGE_INVENTORY_RETENTION_BATCH_SIZE',
    5000,
    batchRows,
    'Rows of these that one statement deletes.',
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
    'Names of sources, formats and metrics in answers: neutral ones, or those of the products.',
  ),
  metricsWorkloadLabels: word(
    'METRICS_WORKLOAD_LABELS',
    ['all', 'admin', 'off'],
    'all',
    'Whether `/metrics`, which is open, names namespaces and workloads: on both ports, on the admin port alone, or nowhere.',
  ),
  supplyChainMaxInflatedBytes: whole(
    'SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES',
    8_388_608,
    [1_048_576, 33_554_432],
    'Bytes to which a report of findings or an SBOM may inflate.',
  ),
  supplyChainIntervalSecs: whole(
    'SUPPLYCHAIN_RETENTION_INTERVAL_SECS',
    300,
    [60, maxSecs],
    'Seconds between passes that link reports to images and bring the summary up to date.',
  ),
  supplyChainRetentionDays: whole(
    'SUPPLYCHAIN_RETENTION_DAYS',
    30,
    [0, maxDays],
    'Days that reports and SBOMs are kept of images that no longer run; 0 = for ever.',
  ),
  supplyChainUnlinkedGraceHours: whole(
    'SUPPLYCHAIN_UNLINKED_GRACE_HOURS',
    24,
    [0, maxDays * 24],
    'Hours for which a report is kept whatever runs.',
  ),
  sbomPageTtlSecs: whole(
    'SUPPLYCHAIN_SBOM_PAGE_TTL_SECS',
    3600,
    [60, maxSecs],
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
    [0, maxDays],
    'Days that the result of checking signatures is kept without a later one; 0 = as long as the image is known.',
  ),
  annotationPrefix: dnsName(
    'ANNOTATION_PREFIX',
    'kguardian.dev',
    'What comes before the slash in annotations of generated policies and profiles.',
  ),
  seccompProfileDir: {
    ...text(
      'SECCOMP_PROFILE_DIR',
      'kguardian',
      'Folder of the profiles on the nodes, below the root of the profiles of the kubelet.',
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
    'Seconds for which the list of seccomp profiles is answered from memory; 0 = it is made for each request.',
  ),
  seccompNodeStaleSecs: whole(
    'SECCOMP_NODE_STATUS_STALE_SECS',
    900,
    [0, maxSecs],
    'Seconds after which a node that told nothing of its profiles counts no longer; 0 = never.',
  ),
  seccompDenialsRetentionDays: whole(
    'SECCOMP_DENIALS_RETENTION_DAYS',
    30,
    [0, maxDays],
    'Days that seccomp denials are kept after they were last seen; 0 = for ever.',
  ),
  seccompDenialsIntervalSecs: whole(
    'SECCOMP_DENIALS_RETENTION_INTERVAL_SECS',
    3600,
    [60, maxSecs],
    'Seconds between passes that attribute denials to workloads and delete old ones.',
  ),
  seccompDenialsBatchSize: whole(
    'SECCOMP_DENIALS_RETENTION_BATCH_SIZE',
    5000,
    batchRows,
    'Denials that one statement of such a pass attributes or deletes.',
  ),
  seccompDenialMetricsIntervalSecs: whole(
    'SECCOMP_DENIAL_METRICS_INTERVAL_SECS',
    15,
    [5, maxSecs],
    'Seconds between counts of the workloads that have denials.',
  ),
  runtimeInventoryRetentionDays: whole(
    'RUNTIME_INVENTORY_RETENTION_DAYS',
    30,
    [0, maxDays],
    'Days that executed files are kept after they were last seen, and containers after their last heartbeat; 0 = for ever.',
  ),
  runtimeInventoryIntervalSecs: whole(
    'RUNTIME_INVENTORY_RETENTION_INTERVAL_SECS',
    3600,
    [60, maxSecs],
    'Seconds between passes over these; `IMAGE_INVENTORY_RETENTION_BATCH_SIZE` of them go in one statement.',
  ),
  computeHistoryRetentionDays: whole(
    'COMPUTE_HISTORY_RETENTION_DAYS',
    7,
    [0, maxHistoryDays],
    'Days that the history of CPU and memory is kept; 0 = none is stored, and there are no findings.',
  ),
  computeHistoryMinuteHours: whole(
    'COMPUTE_HISTORY_MINUTE_HOURS',
    24,
    [1, maxDays * 24],
    'Hours of it that are kept by the minute; what is older is folded into rows of five minutes.',
  ),
  computeRetentionIntervalSecs: whole(
    'COMPUTE_RETENTION_INTERVAL_SECS',
    600,
    [60, maxSecs],
    'Seconds between passes over history, samples and heartbeats of nodes.',
  ),
  computeStallSome: decimal(
    'COMPUTE_THRESHOLD_STALL_SOME',
    20,
    'Percent of CPU pressure at which a container is stalled.',
  ),
  computeRunqP99Ms: decimal(
    'COMPUTE_THRESHOLD_RUNQ_P99_MS',
    20,
    'Milliseconds of the p99 in the run queue at which it is stalled, too.',
  ),
  computeMinRunqEvents: decimal(
    'COMPUTE_THRESHOLD_MIN_RUNQ_EVENTS',
    50,
    'Run-queue events a minute below which a p99 does not count.',
  ),
  computeThrottledRatio: decimal(
    'COMPUTE_THRESHOLD_THROTTLED_RATIO',
    0.25,
    'Throttled time of quota time that is found as `cpu-throttled`.',
  ),
  computeThrottledRatioMax: decimal(
    'COMPUTE_THRESHOLD_THROTTLED_RATIO_MAX',
    0.1,
    'Throttled time of quota time above which no neighbor is to blame.',
  ),
  computeBlameShare: decimal(
    'COMPUTE_THRESHOLD_BLAME_SHARE',
    0.4,
    'Share of what a container waits that names a culprit.',
  ),
  computeMemStallSome: decimal(
    'COMPUTE_THRESHOLD_MEM_STALL_SOME',
    10,
    'Percent of memory pressure at which a container is short of it.',
  ),
  computeRefaultPerMin: decimal(
    'COMPUTE_THRESHOLD_REFAULT_PER_MIN',
    1000,
    'Refaults a minute at which it is short of memory, too.',
  ),
  telemetryEnabled: {
    ...flag('TELEMETRY_ENABLED', true, 'Whether to ask once a day which releases there are.'),
    nonsense: 'default',
  },
  telemetryEndpoint: httpUrl(
    'TELEMETRY_ENDPOINT',
    'default',
    'The version service to ask; without it nobody is asked.',
  ),
  telemetryIntervalSecs: whole(
    'TELEMETRY_INTERVAL_SECS',
    86_400,
    [3600, maxSecs],
    'Seconds between two such questions.',
  ),
  chartVersion: {
    ...text('CHART_VERSION', 'unknown', 'Version of the chart that installed the broker.'),
    type: 'text',
    // Build metadata is nobody's business and takes no part in comparisons (SemVer 2.0.0, 10).
    schema: z.string().transform((version) => version.replace(/\+.*$/s, '') || 'unknown') as z.ZodType<string, string>,
  },
  kubeVersion: { ...text('KUBE_VERSION', 'unknown', 'Version of Kubernetes at install.'), type: 'text' },
  features: {
    ...text('FEATURES', 'none', 'Features that the chart turned on.'),
    type: 'slugs with commas between',
    nonsense: 'default',
    schema: z.string().regex(/^[a-z0-9_,]{1,400}$/) as z.ZodType<string, string>,
  },
} satisfies Record<string, Row<unknown>>

/** Without tokens, and where nobody says otherwise: this machine, by both families. */
const loopback = addresses(['127.0.0.1:9090', '[::1]:9090'])

const tokenMeanings: Record<TokenVariable, string> = {
  BROKER_TOKEN_READ: 'Token with the scope `read`, or two with a comma between. Any token turns authentication on.',
  BROKER_TOKEN_INGEST: 'Token with the scopes `ingest` and `read`.',
  BROKER_TOKEN_SUPPLYCHAIN: 'Token with the scopes `supplychain` and `read`.',
  BROKER_AUTH_TOKEN: 'Shared token of older installations: `read` and `ingest`.',
}

type Settings = { readonly [K in keyof typeof rows]: (typeof rows)[K] extends Row<infer T> ? T : never }

/** The environment as read; keys carry their units. Holds secrets: print `redacted(config)`. */
export interface Config extends Settings {
  readonly tokens: readonly ConfiguredToken<TokenVariable>[]
  /** Files of these, which are read again. */
  readonly tokenFiles: readonly TokenFiles<TokenVariable>[]
  /** Whether the API is for this machine alone: then it listens on every address of `listen`, else on the first that can be bound. */
  readonly isLoopbackOnly: boolean
  /** The server to use; null for an embedded one. */
  readonly database: Address | null
  /** What was read otherwise than written, one sentence each. */
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
  const tokens = tokenVariables.flatMap((variable) => readToken(variable, env, errors, warnings))
  for (const name of unknownTokens(tokenVariables, env))
    warnings.push(`${name}: not known here; it opens nothing and does not turn authentication on`)
  const isUrlRefused = values.databaseUrl === null && trimmed(env, 'DATABASE_URL') !== ''
  const database = isUrlRefused ? null : readDatabase(values.databaseUrl, env, errors, warnings)
  if (values.nodeEnv === 'production' && trimmed(env, 'DATABASE_URL') === '' && trimmed(env, 'PGHOST') === '')
    errors.push('DATABASE_URL or PGHOST is required in production')
  if (errors.length > 0) throw new ConfigError(errors.join('\n'))
  if (tokens.length > 0 && values.metricsWorkloadLabels === 'all') warnings.push(OPEN_WORKLOAD_LABELS)
  const isLoopbackOnly = tokens.length === 0 && trimmed(env, 'LISTEN_ADDR') === ''

  return {
    ...values,
    ...(isLoopbackOnly ? { listen: loopback } : {}),
    isLoopbackOnly,
    readMemoryBudgetMb: affordableBudgetMb(values, warnings),
    dbPoolMaxSize: sufficientPoolSize(values, warnings),
    tokens,
    tokenFiles: tokenFilesOf(tokenVariables, env),
    database,
    warnings,
  }
}

const OPEN_WORKLOAD_LABELS =
  'METRICS_WORKLOAD_LABELS: tokens are set, but /metrics needs none and names namespaces and workloads; `admin` leaves these to the admin port'

function affordableBudgetMb({ memoryLimitMb, readMemoryBudgetMb }: Settings, warnings: string[]): number {
  const limitMb = Math.max(1, Math.floor(memoryLimitMb * readBudgetShareOfMemoryLimit))
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
  const size = auditInflightPermits + poolSizeBesideAudit
  if (evaluatorUrl === null || dbPoolMaxSize >= size) return dbPoolMaxSize
  warnings.push(
    `DB_POOL_MAX_SIZE: ${dbPoolMaxSize} is raised to ${size}, ${poolSizeBesideAudit} more than AUDIT_INFLIGHT_PERMITS`,
  )
  return size
}

/** The configuration by variable, fit to print: no password, and of the tokens the variables that supplied them. */
export function redacted(config: Config): Record<string, string | number | boolean | string[] | null> {
  const printed = Object.entries(rows).map(([key, row]) => [row.name, printable(config[key as keyof typeof rows])])
  return {
    ...Object.fromEntries(printed),
    database: config.database === null ? 'embedded' : shownDatabase(config.database),
    tokens: [...new Set(config.tokens.map((token) => token.source))],
  }
}

/** The table of docs/configuration.md: every variable, its type, default and meaning. Markdown, without a line end. */
export function configTable(): string {
  const settings = Object.values(rows).flatMap((row: Row<unknown>) => [
    [row.name, row.type, row.shown, row.meaning],
    ...(row === rows.databaseUrl ? databaseVariables : []),
  ])
  return asTable([...settings, ...tokenVariables.flatMap((name) => tokenLines(name, tokenMeanings[name]))])
}
