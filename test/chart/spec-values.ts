/** The values that the specifications name, each with the default it has there and the variable that it sets, where they say so. */
export interface SpecValue {
  readonly path: string
  /** Absent where the specification gives none. */
  readonly fallback?: unknown
  readonly variable?: string
  readonly section: string
}

const compute = (path: string, fallback: unknown, variable: string): SpecValue => ({
  path: `compute.${path}`,
  fallback,
  variable: `COMPUTE_${variable}`,
  section: 'workload-profiling, Compute configuration',
})

export const specValues: readonly SpecValue[] = [
  { path: 'evaluator.enabled', section: 'core-telemetry, What the service does' },
  {
    path: 'broker.peerResolution.lateResolveWindowSeconds',
    fallback: 600,
    variable: 'PEER_LATE_RESOLVE_WINDOW_SECS',
    section: 'core-telemetry, States and transitions',
  },
  { path: 'broker.auth.mode', fallback: 'none', section: 'core-telemetry, Authentication' },
  { path: 'frontend.brokerAuth.allowSharedToken', fallback: false, section: 'core-telemetry, Authentication' },
  { path: 'telemetry.enabled', fallback: true, variable: 'TELEMETRY_ENABLED', section: 'core-telemetry, Events' },
  {
    path: 'telemetry.endpoint',
    fallback: 'https://version.kguardian.dev/v1/check',
    variable: 'TELEMETRY_ENDPOINT',
    section: 'core-telemetry, Events; interop-core 8',
  },
  {
    path: 'broker.audit.retention.days',
    fallback: 30,
    variable: 'AUDIT_VERDICTS_RETENTION_DAYS',
    section: 'core-telemetry, Limits',
  },
  {
    path: 'broker.readAcquireWaitMs',
    fallback: 5000,
    variable: 'BROKER_READ_ACQUIRE_WAIT_MS',
    section: 'supply-chain, Endpoints; interop-core 10',
  },
  {
    path: 'broker.supplychain.maxDecompressedBytes',
    fallback: 8_388_608,
    variable: 'SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES',
    section: 'supply-chain, Limits',
  },
  {
    path: 'broker.supplychain.retention.intervalSeconds',
    fallback: 300,
    variable: 'SUPPLYCHAIN_RETENTION_INTERVAL_SECS',
    section: 'supply-chain, Limits',
  },
  {
    path: 'broker.supplychain.retention.sbomPageTtlSeconds',
    fallback: 3600,
    variable: 'SUPPLYCHAIN_SBOM_PAGE_TTL_SECS',
    section: 'supply-chain, States and transitions; interop-supply-chain 7',
  },
  {
    path: 'broker.supplychain.retention.attestationDays',
    fallback: 7,
    variable: 'IMAGE_ATTESTATION_RETENTION_DAYS',
    section: 'supply-chain, Limits',
  },
  {
    path: 'supplychain.signatureDiscovery.enabled',
    variable: 'ATTESTATION_ENABLED',
    section: 'supply-chain, What the service does',
  },
  {
    path: 'broker.seccomp.nodeStatusStaleSeconds',
    fallback: 900,
    variable: 'SECCOMP_NODE_STATUS_STALE_SECS',
    section: 'workload-profiling, Limits',
  },
  {
    path: 'broker.seccomp.profilesCacheTtlSeconds',
    fallback: 10,
    variable: 'SECCOMP_PROFILES_CACHE_TTL_SECS',
    section: 'workload-profiling, Limits',
  },
  {
    path: 'seccomp.distributeIntervalSeconds',
    fallback: 30,
    variable: 'SECCOMP_DISTRIBUTE_INTERVAL_SECS',
    section: 'workload-profiling, Limits',
  },
  {
    path: 'seccomp.denials.enabled',
    fallback: true,
    variable: 'SECCOMP_DENIAL_CAPTURE',
    section: 'workload-profiling, Seccomp',
  },
  {
    path: 'seccomp.denials.intervalSeconds',
    fallback: 10,
    variable: 'SECCOMP_DENIAL_INTERVAL_SECONDS',
    section: 'workload-profiling, Limits',
  },
  {
    path: 'broker.runtimeInventory.retentionDays',
    fallback: 30,
    variable: 'RUNTIME_INVENTORY_RETENTION_DAYS',
    section: 'workload-profiling, Limits',
  },
  {
    path: 'controller.runtimeInventory.mode',
    fallback: 'off',
    variable: 'RUNTIME_INVENTORY',
    section: 'workload-profiling, Runtime inventory',
  },
  {
    path: 'controller.excludedNamespaces',
    variable: 'EXCLUDED_NAMESPACES',
    section: 'workload-profiling, Runtime inventory',
  },
  compute('enabled', true, 'ENABLED'),
  compute('sampleInterval', 5, 'SAMPLE_INTERVAL_SECS'),
  compute('contention.enabled', false, 'CONTENTION_ENABLED'),
  compute('contention.minRunqLatencyUs', 100, 'MIN_RUNQ_LATENCY_US'),
  compute('thresholds.stallSome', 20, 'THRESHOLD_STALL_SOME'),
  compute('thresholds.runqP99Ms', 20, 'THRESHOLD_RUNQ_P99_MS'),
  compute('thresholds.throttledRatio', 0.25, 'THRESHOLD_THROTTLED_RATIO'),
  compute('thresholds.throttledRatioMax', 0.1, 'THRESHOLD_THROTTLED_RATIO_MAX'),
  compute('thresholds.blameShare', 0.4, 'THRESHOLD_BLAME_SHARE'),
  compute('thresholds.memStallSome', 10, 'THRESHOLD_MEM_STALL_SOME'),
  compute('thresholds.refaultPerMin', 1000, 'THRESHOLD_REFAULT_PER_MIN'),
  compute('thresholds.minRunqEvents', 50, 'THRESHOLD_MIN_RUNQ_EVENTS'),
  compute('history.retentionDays', 7, 'HISTORY_RETENTION_DAYS'),
  compute('history.minuteResolutionHours', 24, 'HISTORY_MINUTE_HOURS'),
]

/** What the specifications have the chart refuse: the file of test/chart/refusals, and the values that its sentence names. */
export const specRefusals: readonly { file: string; names: readonly string[]; section: string }[] = [
  {
    file: 'node-status-stale-too-soon.yaml',
    names: ['broker.seccomp.nodeStatusStaleSeconds', 'seccomp.distributeIntervalSeconds', 'three times'],
    section: 'workload-profiling, Limits',
  },
  {
    file: 'contention-without-compute.yaml',
    names: ['compute.contention.enabled', 'needs compute.enabled'],
    section: 'workload-profiling, Compute contention',
  },
  {
    file: 'frontend-with-shared-token.yaml',
    names: ['broker.auth.mode', 'frontend.brokerAuth.allowSharedToken'],
    section: 'core-telemetry, Authentication',
  },
  {
    file: 'supplychain-without-auth.yaml',
    names: ['supplychain.enabled', 'needs broker.auth.mode scoped'],
    section: 'core-telemetry, Authentication',
  },
]
