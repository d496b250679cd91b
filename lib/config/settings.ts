/**
 * The settings: one row a variable, in the order of the documentation. Tokens and libpq's variables have files of
 * their own.
 */
import { z } from 'zod'
import { LOG_LEVELS } from '../observability/log.ts'
import { WIRE_NAMES } from '../wire-names/index.ts'
import {
  address,
  databaseUrl,
  decimal,
  dnsName,
  flag,
  httpUrl,
  origins,
  type Row,
  text,
  whole,
  word,
} from './variables.ts'

/** Ingest, reads and jobs have a gate each, and each gate needs connections of its own. */
const MIN_POOL_SIZE = 6
/** Timers and PostgreSQL's settings hold milliseconds in 31 bits. */
const MAX_MS = 2_147_483_647
const MAX_SECS = Math.floor(MAX_MS / 1000)
const SECS_PER_DAY = 86_400
const MAX_MB = 1024 * 1024
const MAX_DAYS = 36_500
/** Reads go back seven days at most, and each day costs three partitions. */
const MAX_HISTORY_DAYS = 90
const BATCH_ROWS = [100, 100_000] as const

export const rows = {
  nodeEnv: word(
    'NODE_ENV',
    ['development', 'production', 'test'],
    'development',
    '`production` requires `DATABASE_URL` or `PGHOST`.',
  ),
  listen: address(
    'LISTEN_ADDR',
    ['[::]:9090', '0.0.0.0:9090'],
    'Address of the API. Without tokens it serves this machine only; with tokens it falls back to the second ' +
      'address on hosts without IPv6.',
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
  consoleEnabled: {
    ...flag('CONSOLE', true, 'Whether the console is served at `/console/`. Its files need no token; the data does.'),
    fallback: null as boolean | null,
    shown: '`true`; `false` in production',
  },
  databaseUrl: databaseUrl(
    'DATABASE_URL',
    'The PostgreSQL server to use. Without it and `PGHOST` an embedded one is started, except in production.',
  ),
  dataDir: text('DATA_DIR', '.data', 'Folder of the embedded PostgreSQL server.'),
  logLevel: word('LOG_LEVEL', LOG_LEVELS, 'info', 'Lowest level that is logged.'),
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
  flowEdgeRetentionDays: whole(
    'FLOW_EDGE_RETENTION_DAYS',
    90,
    [0, MAX_DAYS],
    'Days after which edges of flows that no live pod needs are deleted; 0 = never.',
  ),
  trafficMaxRowsPerPod: whole(
    'POD_TRAFFIC_MAX_ROWS_PER_POD',
    0,
    [0, 1_000_000_000],
    'Flows of a pod above which old flows without a peer are deleted; `observedSince` ignores that; 0 = unlimited.',
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
    'Where `/metrics`, which needs no token, names namespaces and workloads: on both ports, on the admin port ' +
      'only, or nowhere.',
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
  inUseWindowHours: whole(
    'SUPPLYCHAIN_IN_USE_MIN_WINDOW_HOURS',
    24,
    [1, 720],
    'Hours for which a container must have been watched before a package counts as not in use.',
  ),
  tierEpss: decimal(
    'SUPPLYCHAIN_TIER_EPSS',
    0.1,
    'EPSS from which on a vulnerability counts as likely to be exploited.',
  ),
  isUnknownExposed: flag(
    'SUPPLYCHAIN_TIER_UNKNOWN_EXPOSURE_AS_EXPOSED',
    true,
    'Whether a workload that nothing was seen to reach counts as exposed in tiers.',
  ),
  attestationRetentionDays: whole(
    'IMAGE_ATTESTATION_RETENTION_DAYS',
    7,
    [0, MAX_DAYS],
    'Days that the last result of a signature check is kept; 0 = as long as the image is known.',
  ),
  isSignatureDiscoveryEnabled: flag(
    'SIGNATURE_DISCOVERY_ENABLED',
    true,
    'Whether something looks for signatures of images. If not, profiles show them as not configured.',
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
    'Days that executed files are kept after they were last seen, capabilities after their last report, and ' +
      'containers after their last heartbeat; 0 = forever.',
  ),
  runtimeInventoryIntervalSecs: whole(
    'RUNTIME_INVENTORY_RETENTION_INTERVAL_SECS',
    3600,
    [60, MAX_SECS],
    'Seconds between passes over these; one statement deletes `IMAGE_INVENTORY_RETENTION_BATCH_SIZE` of them.',
  ),
  capabilityEvidenceWindowHours: whole(
    'CAPABILITY_EVIDENCE_WINDOW_HOURS',
    168,
    [24, 2160],
    'Hours that containers must be watched before capabilities are recommended for them. Capabilities are kept a day ' +
      'longer than that, if not longer by `RUNTIME_INVENTORY_RETENTION_DAYS`.',
  ),
  profileSnapshotIntervalSecs: whole(
    'PROFILE_SNAPSHOT_INTERVAL_SECS',
    300,
    [60, MAX_SECS],
    'Seconds between passes that compute the profiles of workloads.',
  ),
  profileSnapshotBatch: whole(
    'PROFILE_SNAPSHOT_BATCH',
    200,
    [1, 5000],
    'Workloads of such a pass between two looks at its time.',
  ),
  profileSnapshotTickBudgetSecs: {
    ...whole(
      'PROFILE_SNAPSHOT_TICK_BUDGET_SECS',
      0,
      [0, SECS_PER_DAY],
      'Seconds after which such a pass begins no further batch; 0 = one batch.',
    ),
    fallback: null as number | null,
    shown: '`PROFILE_SNAPSHOT_INTERVAL_SECS`',
  },
  profileVersionsMaxPerWorkload: whole(
    'PROFILE_VERSIONS_MAX_PER_WORKLOAD',
    50,
    [1, 1000],
    'Versions of a profile that are kept, the newest.',
  ),
  profileVersionsRetentionDays: whole(
    'PROFILE_VERSIONS_RETENTION_DAYS',
    90,
    [0, MAX_DAYS],
    'Days that versions, recorded exports and workloads in the list are kept; 0 = forever. The newest version and ' +
      'export of a listed workload stay.',
  ),
  profileVersionsIntervalSecs: whole(
    'PROFILE_VERSIONS_RETENTION_INTERVAL_SECS',
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

export type Settings = { readonly [K in keyof typeof rows]: (typeof rows)[K] extends Row<infer T> ? T : never }
