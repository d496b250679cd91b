import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { metricPrefix, type WireNames } from '../wire-names/index.ts'

/** Seconds. Few buckets keep a scrape short, which blocks the event loop. */
const DURATION_BUCKETS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30]

/**
 * All metrics of the process but seccomp denials by workload. Labels are route patterns and outcomes, never pods,
 * namespaces or addresses.
 */
export type Metrics = ReturnType<typeof createMetrics>

/**
 * `wireNames` selects the prefix of metrics that have an ecosystem name, see docs/contract.md#names-in-the-ecosystem.
 */
export function createMetrics(wireNames: WireNames = 'spec') {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 })
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name, help, labelNames, registers })
  const startedAt = performance.now()

  return {
    registry,
    requests: new Histogram({
      name: 'broker_http_request_duration_seconds',
      help: 'Time to the first byte of the answer, by route pattern.',
      labelNames: ['method', 'route', 'status'] as const,
      buckets: DURATION_BUCKETS_SECONDS,
      registers,
    }),
    flows: counter('broker_traffic_flows_total', 'Flows received, by outcome.', ['outcome']),
    dbSchemaReady: gauge('broker_db_schema_ready', '1 when no migration is pending.'),
    dbReachable: gauge('broker_db_reachable', '1 when the database answered in this scrape.'),
    dbPoolIdle: gauge('broker_db_pool_idle', 'Database slots that are free.'),
    dbPoolMax: gauge('broker_db_pool_max', 'Database slots in all.'),
    dbGateWaiting: gauge('broker_db_gate_waiting', 'Statements waiting for a slot.', ['gate']),
    dbGateRefused: gauge(
      'broker_db_gate_refused',
      'Statements refused because too many were waiting or the wait was too long.',
      ['gate'],
    ),
    dbTableBytes: gauge('broker_db_table_bytes', 'Bytes of a table with its indexes, the days of a history together.', [
      'table',
    ]),
    dbTableRows: gauge('broker_db_table_rows', 'Rows of a table, as the server estimates them.', ['table']),
    dbTableDeadRows: gauge(
      'broker_db_table_dead_rows',
      'Dead rows of a table that are not vacuumed yet, as the server estimates them.',
      ['table'],
    ),
    dbServerConnections: gauge(
      'broker_db_server_connections',
      'Connections of the database server, those of other clients included.',
    ),
    dbServerConnectionsMax: gauge(
      'broker_db_server_connections_max',
      'Connections that the server grants to ordinary roles.',
    ),
    nodes: gauge('broker_nodes', 'Nodes that post their pods, and nodes that fell silent within a day.', ['state']),
    readBudgetTotal: gauge('broker_read_budget_kib_total', 'KiB that list routes may hold at once.'),
    readBudgetAvailable: gauge('broker_read_budget_kib_available', 'KiB of the read budget that are free.'),
    readShed: counter('broker_read_shed_total', 'Reads shed by the budget.'),
    bodiesShed: counter('broker_bodies_shed_total', 'Request bodies refused because too many came at once.'),
    agentClockSkew: gauge(
      'broker_agent_clock_skew_seconds',
      "Largest difference between the time of a posted pod and the broker's clock within ten minutes.",
    ),
    slowReadersCut: counter('broker_slow_readers_cut_total', 'Connections cut because answers were taken too slowly.'),
    seenFlows: gauge('broker_traffic_seen_set_entries', 'Recently confirmed flows held in memory.'),
    followers: gauge('broker_followers', 'Clients that follow flows.'),
    followLag: gauge(
      'broker_follow_lag_seconds',
      'Time since the follower that is furthest behind last had every flow.',
    ),
    edgesLag: gauge(
      'broker_flow_edges_lag_seconds',
      'Time since which flows are not yet counted in edges, read once a minute.',
    ),
    auditEnabled: gauge('broker_audit_enabled', '1 when flows are forwarded to an evaluator.'),
    auditPermits: gauge('broker_audit_inflight_available', 'Free permits to evaluate flows.'),
    auditDropped: counter('broker_audit_dropped_total', 'Flows shed by the full audit queue.'),
    auditFlows: counter('broker_audit_flows_total', 'Flows forwarded to the evaluator, by outcome.', ['outcome']),
    auditVerdicts: counter('broker_audit_verdicts_total', 'Verdicts stored.'),
    auditWaiting: gauge('broker_audit_queue_length', 'Flows that wait to be evaluated.'),
    profileCacheHits: counter('broker_seccomp_profiles_cache_hits_total', 'Profile reads answered from memory.'),
    profileCacheMisses: counter('broker_seccomp_profiles_cache_misses_total', 'Profile reads that asked the database.'),
    unattributedSyscalls: counter(
      'broker_syscalls_unattributed_total',
      'Entries of POST /pod/syscalls without a pod: pods of several namespaces have the name, or none was posted ' +
        'lately.',
      ['reason'],
    ),
    rejectedEntries: counter(
      'broker_rejected_entries_total',
      'Entries of bodies that were not stored while the rest was.',
      ['route'],
    ),
    ignoredParameters: counter(
      'broker_ignored_parameters_total',
      'Unknown query parameters that their route ignored.',
      ['route'],
    ),
    imageMalformed: counter(
      `${metricPrefix(wireNames)}image_inventory_malformed_total`,
      'Parts of image references that could not be kept.',
      ['field'],
    ),
    payloads: counter('broker_supplychain_payloads_total', 'Payloads of findings and SBOMs, by outcome.', [
      'kind',
      'outcome',
    ]),
    unreadableTimes: counter(
      'broker_supplychain_unreadable_times_total',
      'Unreadable times in payloads of findings and in attestation results, stored as absent.',
      ['kind'],
    ),
    payloadsWaiting: gauge('broker_supplychain_queue_length', 'Payloads that wait to be stored.'),
    imagesUnscanned: gauge(
      'broker_supplychain_running_images_unscanned',
      'Running images of which neither a report nor an SBOM is stored, read once a minute.',
    ),
    payloadsUnread: gauge(
      'broker_search_payloads_unread',
      'Payloads whose packages no search finds, because the job has not read them yet, read once a minute.',
    ),
    decisions: gauge(
      'broker_supplychain_decisions',
      'Decisions about vulnerabilities that hold, and those of them that end within seven days, read once a minute.',
      ['state'],
    ),
    stagedSetsRefused: counter(
      `${metricPrefix(wireNames)}supplychain_staged_sets_refused_total`,
      'Page sets of SBOMs refused because too many are incomplete.',
    ),
    unrecognisedReasons: counter(
      `${metricPrefix(wireNames)}attestation_unrecognised_reason_total`,
      'Unknown reason codes of attestation results.',
    ),
    denialRows: counter(
      `${metricPrefix(wireNames)}seccomp_denial_rows_total`,
      'Rows that posts of seccomp denials stored, after merging.',
    ),
    denialWorkloads: gauge(
      `${metricPrefix(wireNames)}seccomp_denial_workloads`,
      'Workloads with stored seccomp denials.',
    ),
    profilesFull: gauge(
      'broker_profiles_full_snapshots',
      'Workloads whose profile has as many network rules as it may have; further ones are left out.',
    ),
    jobLastSuccess: gauge(
      'broker_job_last_success_timestamp_seconds',
      'Unix time of the last complete pass, in any process.',
      ['job'],
    ),
    jobDuration: gauge('broker_job_duration_seconds', 'Duration of the last complete pass, in seconds.', ['job']),
    jobRows: counter('broker_job_rows_total', 'Rows that passes in this process changed.', ['job']),
    jobPasses: counter('broker_job_passes_total', 'Passes in this process, by outcome.', ['job', 'outcome']),
    uptime: new Counter({
      name: 'broker_uptime_seconds',
      help: 'Seconds since the start.',
      registers,
      collect() {
        this.reset()
        this.inc((performance.now() - startedAt) / 1000)
      },
    }),
  }
}
