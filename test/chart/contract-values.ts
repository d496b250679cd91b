/** Values of the chart that existing installations use; a fallback or a variable is asserted where it is documented. */
export interface ContractValue {
  readonly path: string
  /** The documented default. */
  readonly fallback?: unknown
  readonly variable?: string | readonly string[]
}

const compute = (path: string, fallback: unknown, variable: string): ContractValue => ({
  path: `compute.${path}`,
  fallback,
  variable: `COMPUTE_${variable}`,
})

export const contractValues: readonly ContractValue[] = [
  { path: 'evaluator.enabled' },
  {
    path: 'broker.peerResolution.lateResolveWindowSeconds',
    fallback: 600,
    variable: 'PEER_LATE_RESOLVE_WINDOW_SECS',
  },
  { path: 'broker.auth.mode', fallback: 'none' },
  { path: 'frontend.brokerAuth.allowSharedToken', fallback: false },
  { path: 'telemetry.enabled', fallback: true, variable: 'TELEMETRY_ENABLED' },
  {
    path: 'telemetry.endpoint',
    fallback: 'https://version.kguardian.dev/v1/check',
    variable: 'TELEMETRY_ENDPOINT',
  },
  {
    path: 'broker.audit.retention.days',
    fallback: 30,
    variable: 'AUDIT_VERDICTS_RETENTION_DAYS',
  },
  {
    path: 'broker.readAcquireWaitMs',
    fallback: 5000,
    variable: 'BROKER_READ_ACQUIRE_WAIT_MS',
  },
  {
    path: 'broker.supplychain.maxDecompressedBytes',
    fallback: 8_388_608,
    variable: 'SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES',
  },
  {
    path: 'broker.supplychain.retention.intervalSeconds',
    fallback: 300,
    variable: 'SUPPLYCHAIN_RETENTION_INTERVAL_SECS',
  },
  {
    path: 'broker.supplychain.retention.sbomPageTtlSeconds',
    fallback: 3600,
    variable: 'SUPPLYCHAIN_SBOM_PAGE_TTL_SECS',
  },
  {
    path: 'broker.supplychain.retention.attestationDays',
    fallback: 7,
    variable: 'IMAGE_ATTESTATION_RETENTION_DAYS',
  },
  {
    path: 'supplychain.signatureDiscovery.enabled',
    variable: ['SIGNATURE_DISCOVERY_ENABLED', 'ATTESTATION_ENABLED'],
  },
  {
    path: 'broker.seccomp.nodeStatusStaleSeconds',
    fallback: 900,
    variable: 'SECCOMP_NODE_STATUS_STALE_SECS',
  },
  {
    path: 'broker.seccomp.profilesCacheTtlSeconds',
    fallback: 10,
    variable: 'SECCOMP_PROFILES_CACHE_TTL_SECS',
  },
  {
    path: 'seccomp.distributeIntervalSeconds',
    fallback: 30,
    variable: 'SECCOMP_DISTRIBUTE_INTERVAL_SECS',
  },
  {
    path: 'seccomp.denials.enabled',
    fallback: true,
    variable: 'SECCOMP_DENIAL_CAPTURE',
  },
  {
    path: 'seccomp.denials.intervalSeconds',
    fallback: 10,
    variable: 'SECCOMP_DENIAL_INTERVAL_SECONDS',
  },
  {
    path: 'broker.runtimeInventory.retentionDays',
    fallback: 30,
    variable: 'RUNTIME_INVENTORY_RETENTION_DAYS',
  },
  {
    path: 'controller.runtimeInventory.mode',
    fallback: 'off',
    variable: 'RUNTIME_INVENTORY',
  },
  {
    path: 'controller.excludedNamespaces',
    variable: 'EXCLUDED_NAMESPACES',
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

/** Combinations of values that the chart must refuse: a file in test/chart/refusals, and texts in its message. */
export const contractRefusals: readonly { file: string; names: readonly string[] }[] = [
  {
    file: 'node-status-stale-too-soon.yaml',
    names: ['broker.seccomp.nodeStatusStaleSeconds', 'seccomp.distributeIntervalSeconds', 'three times'],
  },
  {
    file: 'contention-without-compute.yaml',
    names: ['compute.contention.enabled', 'needs compute.enabled'],
  },
  {
    file: 'frontend-with-shared-token.yaml',
    names: ['broker.auth.mode', 'frontend.brokerAuth.allowSharedToken'],
  },
  {
    file: 'supplychain-without-auth.yaml',
    names: ['supplychain.enabled', 'needs broker.auth.mode scoped'],
  },
]
