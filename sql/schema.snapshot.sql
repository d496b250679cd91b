-- The effect of all migrations, written by `UPDATE_SNAPSHOTS=1 npm test test/lib/schema.test.ts`.

sequence public.compute_history_id as bigint increment 1

table public.audit_verdict with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05,
      autovacuum_vacuum_scale_factor=0.02)
  id bigint not null generated always as identity
  policy_uid text not null
  policy_namespace text collate "C" not null
  policy_name text collate "C" not null
  direction text collate "C" not null
  src_namespace text
  src_pod text
  dst_namespace text
  dst_pod text
  dst_port bigint not null
  protocol text not null
  reason text not null
  observed_at timestamp without time zone not null
  verdict text collate "C" not null
  constraint audit_verdict_direction_check CHECK ((direction = ANY (ARRAY['Ingress'::text, 'Egress'::text])))
  constraint audit_verdict_verdict_check CHECK ((verdict = ANY (ARRAY['Allow'::text, 'WouldDeny'::text])))
  constraint audit_verdict_pkey PRIMARY KEY (id)
  CREATE INDEX audit_verdict_by_destination ON public.audit_verdict USING btree (dst_namespace, dst_pod, observed_at)
  CREATE INDEX audit_verdict_by_name ON public.audit_verdict USING btree (policy_name, verdict, direction, observed_at
      DESC, id DESC)
  CREATE INDEX audit_verdict_by_namespace ON public.audit_verdict USING btree (policy_namespace, verdict, direction,
      observed_at DESC, id DESC)
  CREATE INDEX audit_verdict_by_outcome ON public.audit_verdict USING btree (verdict, direction, observed_at DESC, id
      DESC)
  CREATE INDEX audit_verdict_by_policy ON public.audit_verdict USING btree (policy_namespace, policy_name, verdict,
      direction, observed_at DESC, id DESC)
  CREATE INDEX audit_verdict_by_source ON public.audit_verdict USING btree (src_namespace, src_pod, observed_at)
  CREATE INDEX audit_verdict_newest ON public.audit_verdict USING btree (observed_at DESC, id DESC)
  CREATE UNIQUE INDEX audit_verdict_pkey ON public.audit_verdict USING btree (id)

table public.compute_container with (fillfactor=80)
  id bigint not null generated always as identity
  container_uid text collate "C" not null
  pod_uid text collate "C" not null
  namespace text collate "C" not null
  pod_name text collate "C" not null
  container text collate "C" not null
  node text collate "C" not null
  constraint compute_container_pkey PRIMARY KEY (id)
  constraint compute_container_container_uid_key UNIQUE (container_uid)
  CREATE INDEX compute_container_by_namespace ON public.compute_container USING btree (namespace, container_uid)
  CREATE INDEX compute_container_by_node ON public.compute_container USING btree (node, container_uid)
  CREATE INDEX compute_container_by_pod ON public.compute_container USING btree (pod_uid, id)
  CREATE UNIQUE INDEX compute_container_container_uid_key ON public.compute_container USING btree (container_uid)
  CREATE UNIQUE INDEX compute_container_pkey ON public.compute_container USING btree (id)

table public.compute_contention partition by RANGE (ts)
  id bigint not null default nextval('compute_history_id'::regclass)
  victim_id bigint not null
  ts timestamp without time zone not null
  culprit_cgroup_id bigint
  culprit_kind text collate "C" not null
  culprit_ref text collate "C" not null
  culprit_container_uid text collate "C"
  count bigint not null
  wait_ns bigint not null
  is_heaviest boolean not null default true
  CREATE INDEX compute_contention_by_time ON ONLY public.compute_contention USING btree (victim_id, ts)
  CREATE INDEX compute_contention_heaviest ON ONLY public.compute_contention USING btree (victim_id, wait_ns DESC, id
      DESC) WHERE is_heaviest

table public.compute_contention_kept partition by RANGE (ts)
  id bigint not null default nextval('compute_history_id'::regclass)
  victim_id bigint not null
  ts timestamp without time zone not null
  culprit_cgroup_id bigint
  culprit_kind text collate "C" not null
  culprit_ref text collate "C" not null
  culprit_container_uid text collate "C"
  count bigint not null
  wait_ns bigint not null
  is_heaviest boolean not null default true
  constraint compute_contention_kept_pkey PRIMARY KEY (victim_id, ts, id)
  CREATE INDEX compute_contention_kept_heaviest ON ONLY public.compute_contention_kept USING btree (victim_id, wait_ns
      DESC, id DESC)
  CREATE UNIQUE INDEX compute_contention_kept_pkey ON ONLY public.compute_contention_kept USING btree (victim_id, ts,
      id)

table public.compute_contention_kept_other partition of compute_contention_kept DEFAULT
  id bigint not null default nextval('compute_history_id'::regclass)
  victim_id bigint not null
  ts timestamp without time zone not null
  culprit_cgroup_id bigint
  culprit_kind text collate "C" not null
  culprit_ref text collate "C" not null
  culprit_container_uid text collate "C"
  count bigint not null
  wait_ns bigint not null
  is_heaviest boolean not null default true
  constraint compute_contention_kept_other_pkey PRIMARY KEY (victim_id, ts, id)
  CREATE UNIQUE INDEX compute_contention_kept_other_pkey ON public.compute_contention_kept_other USING btree (victim_id,
      ts, id)
  CREATE INDEX compute_contention_kept_other_victim_id_wait_ns_id_idx ON public.compute_contention_kept_other USING
      btree (victim_id, wait_ns DESC, id DESC)

table public.compute_contention_other partition of compute_contention DEFAULT
  id bigint not null default nextval('compute_history_id'::regclass)
  victim_id bigint not null
  ts timestamp without time zone not null
  culprit_cgroup_id bigint
  culprit_kind text collate "C" not null
  culprit_ref text collate "C" not null
  culprit_container_uid text collate "C"
  count bigint not null
  wait_ns bigint not null
  is_heaviest boolean not null default true
  CREATE INDEX compute_contention_other_victim_id_ts_idx ON public.compute_contention_other USING btree (victim_id, ts)
  CREATE INDEX compute_contention_other_victim_id_wait_ns_id_idx ON public.compute_contention_other USING btree
      (victim_id, wait_ns DESC, id DESC) WHERE is_heaviest

table public.compute_fold with (fillfactor=50)
  is_only boolean not null default true
  folded_until timestamp without time zone not null
  closed_until timestamp without time zone not null
  counted_until timestamp without time zone not null default '-infinity'::timestamp without time zone
  count_closed_until timestamp without time zone not null default '-infinity'::timestamp without time zone
  pack_after timestamp without time zone not null default '-infinity'::timestamp without time zone
  constraint compute_fold_check CHECK ((folded_until <= closed_until))
  constraint compute_fold_is_only_check CHECK (is_only)
  constraint compute_fold_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX compute_fold_pkey ON public.compute_fold USING btree (is_only)

table public.compute_folded partition by RANGE (ts)
  id bigint not null default nextval('compute_history_id'::regclass)
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  cpu_usage_millis_avg double precision not null
  cpu_usage_millis_max double precision not null
  cpu_usage_millis_last double precision not null
  cpu_quota_usec bigint
  cpu_period_usec bigint not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  cpu_throttled_usec bigint not null
  cpu_psi_some10_avg double precision not null
  cpu_psi_some10_max double precision not null
  cpu_psi_full10_avg double precision not null
  cpu_psi_full10_max double precision not null
  mem_current_avg bigint not null
  mem_current_max bigint not null
  mem_current_last bigint not null
  mem_working_set_avg bigint not null
  mem_working_set_max bigint not null
  mem_working_set_last bigint not null
  mem_limit bigint
  mem_request bigint
  mem_psi_some10_avg double precision not null
  mem_psi_some10_max double precision not null
  mem_psi_full10_avg double precision not null
  mem_psi_full10_max double precision not null
  mem_events_high bigint not null
  mem_events_max bigint not null
  mem_oom_kill bigint not null
  mem_refault bigint not null
  mem_pgmajfault bigint not null
  runq_count bigint
  runq_p50_us bigint
  runq_p95_us bigint
  runq_p99_us bigint
  runq_max_us bigint
  runq_overflow bigint
  runq_hist bigint[]
  sent_at timestamp without time zone
  parts bigint not null default 1
  newest_ts timestamp without time zone not null default 'infinity'::timestamp without time zone
  constraint compute_folded_resolution_secs_check CHECK ((resolution_secs > 0))
  constraint compute_folded_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_folded_pkey ON ONLY public.compute_folded USING btree (container_id, ts, resolution_secs)
  CREATE INDEX compute_folded_sent ON ONLY public.compute_folded USING btree (sent_at, container_id) WHERE (sent_at IS
      NOT NULL)

table public.compute_folded_other partition of compute_folded DEFAULT
  id bigint not null default nextval('compute_history_id'::regclass)
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  cpu_usage_millis_avg double precision not null
  cpu_usage_millis_max double precision not null
  cpu_usage_millis_last double precision not null
  cpu_quota_usec bigint
  cpu_period_usec bigint not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  cpu_throttled_usec bigint not null
  cpu_psi_some10_avg double precision not null
  cpu_psi_some10_max double precision not null
  cpu_psi_full10_avg double precision not null
  cpu_psi_full10_max double precision not null
  mem_current_avg bigint not null
  mem_current_max bigint not null
  mem_current_last bigint not null
  mem_working_set_avg bigint not null
  mem_working_set_max bigint not null
  mem_working_set_last bigint not null
  mem_limit bigint
  mem_request bigint
  mem_psi_some10_avg double precision not null
  mem_psi_some10_max double precision not null
  mem_psi_full10_avg double precision not null
  mem_psi_full10_max double precision not null
  mem_events_high bigint not null
  mem_events_max bigint not null
  mem_oom_kill bigint not null
  mem_refault bigint not null
  mem_pgmajfault bigint not null
  runq_count bigint
  runq_p50_us bigint
  runq_p95_us bigint
  runq_p99_us bigint
  runq_max_us bigint
  runq_overflow bigint
  runq_hist bigint[]
  sent_at timestamp without time zone
  parts bigint not null default 1
  newest_ts timestamp without time zone not null default 'infinity'::timestamp without time zone
  constraint compute_folded_resolution_secs_check CHECK ((resolution_secs > 0))
  constraint compute_folded_other_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_folded_other_pkey ON public.compute_folded_other USING btree (container_id, ts,
      resolution_secs)
  CREATE INDEX compute_folded_other_sent_at_container_id_idx ON public.compute_folded_other USING btree (sent_at,
      container_id) WHERE (sent_at IS NOT NULL)

table public.compute_folded_pack partition by RANGE (ts)
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  revision bigint not null
  seconds smallint[] not null
  data bytea not null
  minute_keys integer[] not null
  constraint compute_folded_pack_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_folded_pack_pkey ON ONLY public.compute_folded_pack USING btree (container_id, ts,
      resolution_secs)

table public.compute_folded_pack_other partition of compute_folded_pack DEFAULT
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  revision bigint not null
  seconds smallint[] not null
  data bytea not null
  minute_keys integer[] not null
  constraint compute_folded_pack_other_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_folded_pack_other_pkey ON public.compute_folded_pack_other USING btree (container_id, ts,
      resolution_secs)

table public.compute_latest with (autovacuum_vacuum_scale_factor=0.05, fillfactor=50)
  container_uid text collate "C" not null
  pod_uid text collate "C" not null
  namespace text collate "C" not null
  pod_name text collate "C" not null
  container text collate "C" not null
  node text collate "C" not null
  cgroup_id bigint
  ts timestamp without time zone not null
  interval_ms bigint not null
  cpu_usage_millis double precision not null
  cpu_quota_usec bigint
  cpu_period_usec bigint not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  cpu_throttled_usec bigint not null
  cpu_psi_some10 double precision not null
  cpu_psi_full10 double precision not null
  mem_current bigint not null
  mem_working_set bigint not null
  mem_limit bigint
  mem_request bigint
  mem_psi_some10 double precision not null
  mem_psi_full10 double precision not null
  mem_events_high bigint not null
  mem_events_max bigint not null
  mem_oom_kill bigint not null
  mem_refault bigint not null
  mem_pgmajfault bigint not null
  runq_count bigint
  runq_p50_us bigint
  runq_p95_us bigint
  runq_p99_us bigint
  runq_max_us bigint
  runq_overflow bigint
  blame text not null
  blame_omitted bigint not null
  blame_omitted_wait_ns bigint not null
  updated_at timestamp without time zone not null
  constraint compute_latest_pkey PRIMARY KEY (container_uid)
  CREATE INDEX compute_latest_by_namespace ON public.compute_latest USING btree (namespace, pod_name, container,
      container_uid)
  CREATE UNIQUE INDEX compute_latest_pkey ON public.compute_latest USING btree (container_uid)

table public.compute_minute partition by RANGE (ts)
  id bigint not null default nextval('compute_history_id'::regclass)
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  cpu_usage_millis_avg double precision not null
  cpu_usage_millis_max double precision not null
  cpu_usage_millis_last double precision not null
  cpu_quota_usec bigint
  cpu_period_usec bigint not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  cpu_throttled_usec bigint not null
  cpu_psi_some10_avg double precision not null
  cpu_psi_some10_max double precision not null
  cpu_psi_full10_avg double precision not null
  cpu_psi_full10_max double precision not null
  mem_current_avg bigint not null
  mem_current_max bigint not null
  mem_current_last bigint not null
  mem_working_set_avg bigint not null
  mem_working_set_max bigint not null
  mem_working_set_last bigint not null
  mem_limit bigint
  mem_request bigint
  mem_psi_some10_avg double precision not null
  mem_psi_some10_max double precision not null
  mem_psi_full10_avg double precision not null
  mem_psi_full10_max double precision not null
  mem_events_high bigint not null
  mem_events_max bigint not null
  mem_oom_kill bigint not null
  mem_refault bigint not null
  mem_pgmajfault bigint not null
  runq_count bigint
  runq_p50_us bigint
  runq_p95_us bigint
  runq_p99_us bigint
  runq_max_us bigint
  runq_overflow bigint
  runq_hist bigint[]
  sent_at timestamp without time zone
  is_late boolean not null default false
  constraint compute_folded_resolution_secs_check CHECK ((resolution_secs > 0))
  constraint compute_minute_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE INDEX compute_minute_by_time ON ONLY public.compute_minute USING brin (ts) WITH (pages_per_range='32',
      autosummarize='on')
  CREATE INDEX compute_minute_late ON ONLY public.compute_minute USING btree (ts) WHERE is_late
  CREATE UNIQUE INDEX compute_minute_pkey ON ONLY public.compute_minute USING btree (container_id, ts, resolution_secs)
  CREATE INDEX compute_minute_recent ON ONLY public.compute_minute USING btree (ts) WHERE (resolution_secs = 60)
  CREATE INDEX compute_minute_sent ON ONLY public.compute_minute USING btree (sent_at, container_id) WHERE (sent_at IS
      NOT NULL)

table public.compute_minute_other partition of compute_minute DEFAULT
  id bigint not null default nextval('compute_history_id'::regclass)
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  cpu_usage_millis_avg double precision not null
  cpu_usage_millis_max double precision not null
  cpu_usage_millis_last double precision not null
  cpu_quota_usec bigint
  cpu_period_usec bigint not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  cpu_throttled_usec bigint not null
  cpu_psi_some10_avg double precision not null
  cpu_psi_some10_max double precision not null
  cpu_psi_full10_avg double precision not null
  cpu_psi_full10_max double precision not null
  mem_current_avg bigint not null
  mem_current_max bigint not null
  mem_current_last bigint not null
  mem_working_set_avg bigint not null
  mem_working_set_max bigint not null
  mem_working_set_last bigint not null
  mem_limit bigint
  mem_request bigint
  mem_psi_some10_avg double precision not null
  mem_psi_some10_max double precision not null
  mem_psi_full10_avg double precision not null
  mem_psi_full10_max double precision not null
  mem_events_high bigint not null
  mem_events_max bigint not null
  mem_oom_kill bigint not null
  mem_refault bigint not null
  mem_pgmajfault bigint not null
  runq_count bigint
  runq_p50_us bigint
  runq_p95_us bigint
  runq_p99_us bigint
  runq_max_us bigint
  runq_overflow bigint
  runq_hist bigint[]
  sent_at timestamp without time zone
  is_late boolean not null default false
  constraint compute_folded_resolution_secs_check CHECK ((resolution_secs > 0))
  constraint compute_minute_other_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_minute_other_pkey ON public.compute_minute_other USING btree (container_id, ts,
      resolution_secs)
  CREATE INDEX compute_minute_other_sent_at_container_id_idx ON public.compute_minute_other USING btree (sent_at,
      container_id) WHERE (sent_at IS NOT NULL)
  CREATE INDEX compute_minute_other_ts_idx ON public.compute_minute_other USING btree (ts) WHERE is_late
  CREATE INDEX compute_minute_other_ts_idx1 ON public.compute_minute_other USING brin (ts) WITH (pages_per_range='32',
      autosummarize='on')
  CREATE INDEX compute_minute_other_ts_idx2 ON public.compute_minute_other USING btree (ts) WHERE (resolution_secs = 60)

table public.compute_minute_pack partition by RANGE (ts)
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  revision bigint not null
  seconds smallint[] not null
  data bytea not null
  constraint compute_minute_pack_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_minute_pack_pkey ON ONLY public.compute_minute_pack USING btree (container_id, ts,
      resolution_secs)

table public.compute_minute_pack_other partition of compute_minute_pack DEFAULT
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  revision bigint not null
  seconds smallint[] not null
  data bytea not null
  constraint compute_minute_pack_other_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_minute_pack_other_pkey ON public.compute_minute_pack_other USING btree (container_id, ts,
      resolution_secs)

table public.compute_node with (autovacuum_vacuum_scale_factor=0.05, fillfactor=50)
  node text collate "C" not null
  ts timestamp without time zone not null
  interval_ms bigint not null
  ctxt_per_sec double precision not null
  compute_enabled boolean not null
  compute_supported boolean not null
  contention_loaded boolean not null
  cpu_some10 double precision not null
  cpu_full10 double precision not null
  mem_some10 double precision not null
  mem_full10 double precision not null
  cpu_cores double precision not null
  memory_bytes bigint not null
  bpf_runq_enqueued bigint not null
  bpf_runq_hist bigint not null
  bpf_pair bigint not null
  unknown_blame_share double precision not null
  bpf_hist_update_failures bigint
  bpf_pair_update_failures bigint
  updated_at timestamp without time zone not null
  constraint compute_node_pkey PRIMARY KEY (node)
  CREATE UNIQUE INDEX compute_node_pkey ON public.compute_node USING btree (node)

table public.compute_uncounted
  container_id bigint not null
  ts timestamp without time zone not null
  resolution_secs bigint not null
  cpu_usage_millis_avg double precision not null
  cpu_usage_millis_max double precision not null
  mem_working_set_max bigint not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  mem_request bigint
  mem_limit bigint
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  mem_oom_kill bigint not null
  constraint compute_uncounted_pkey PRIMARY KEY (container_id, ts, resolution_secs)
  CREATE UNIQUE INDEX compute_uncounted_pkey ON public.compute_uncounted USING btree (container_id, ts, resolution_secs)

table public.compute_usage partition by RANGE (ts)
  container_id bigint not null
  ts timestamp without time zone not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  mem_request bigint
  mem_limit bigint
  first_ts timestamp without time zone not null
  last_ts timestamp without time zone not null
  secs bigint not null
  cpu_max double precision not null
  mem_max bigint not null
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  mem_oom_kill bigint not null
  cpu_hist bigint[] not null
  mem_hist bigint[] not null
  CREATE UNIQUE INDEX compute_usage_key ON ONLY public.compute_usage USING btree (container_id, ts, cpu_request_millis,
      cpu_limit_millis, mem_request, mem_limit) NULLS NOT DISTINCT

table public.compute_usage_other partition of compute_usage DEFAULT
  container_id bigint not null
  ts timestamp without time zone not null
  cpu_request_millis bigint
  cpu_limit_millis bigint
  mem_request bigint
  mem_limit bigint
  first_ts timestamp without time zone not null
  last_ts timestamp without time zone not null
  secs bigint not null
  cpu_max double precision not null
  mem_max bigint not null
  cpu_nr_periods bigint not null
  cpu_nr_throttled bigint not null
  mem_oom_kill bigint not null
  cpu_hist bigint[] not null
  mem_hist bigint[] not null
  CREATE UNIQUE INDEX compute_usage_other_container_id_ts_cpu_request_millis_cpu__idx ON public.compute_usage_other
      USING btree (container_id, ts, cpu_request_millis, cpu_limit_millis, mem_request, mem_limit) NULLS NOT DISTINCT

table public.container_use with (fillfactor=80)
  image_digest text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  container_name text collate "C" not null
  cluster_id text collate "C" not null
  reason text collate "C"
  observed_since timestamp without time zone
  exposure text collate "C"
  constraint container_use_exposure_check CHECK ((exposure = ANY (ARRAY['exposed'::text, 'node_only'::text,
      'internal'::text])))
  constraint container_use_pkey PRIMARY KEY (image_digest, pod_namespace, workload_kind, workload_name, container_name,
      cluster_id)
  CREATE INDEX container_use_by_workload ON public.container_use USING btree (pod_namespace, workload_kind,
      workload_name, container_name, image_digest, cluster_id)
  CREATE UNIQUE INDEX container_use_pkey ON public.container_use USING btree (image_digest, pod_namespace,
      workload_kind, workload_name, container_name, cluster_id)

table public.cve_alias with (fillfactor=80)
  vuln_id text collate "C" not null
  alias text collate "C" not null
  told_at timestamp without time zone not null default (now() AT TIME ZONE 'utc'::text)
  constraint cve_alias_pkey PRIMARY KEY (vuln_id, alias)
  CREATE INDEX cve_alias_by_alias ON public.cve_alias USING btree (upper(alias))
  CREATE INDEX cve_alias_by_time ON public.cve_alias USING btree (told_at)
  CREATE INDEX cve_alias_by_vuln ON public.cve_alias USING btree (upper(vuln_id))
  CREATE UNIQUE INDEX cve_alias_pkey ON public.cve_alias USING btree (vuln_id, alias)

table public.cve_decided with (fillfactor=80)
  vuln_id text collate "C" not null
  scope_namespace text collate "C" not null
  workloads bigint not null
  constraint cve_decided_pkey PRIMARY KEY (vuln_id, scope_namespace)
  CREATE UNIQUE INDEX cve_decided_pkey ON public.cve_decided USING btree (vuln_id, scope_namespace)

table public.cve_detail with (fillfactor=80)
  vuln_id text collate "C" not null
  max_score real
  packages text[] not null
  sources text[] not null
  package_count bigint
  constraint cve_detail_pkey PRIMARY KEY (vuln_id)
  CREATE INDEX cve_detail_by_name ON public.cve_detail USING btree (upper(vuln_id))
  CREATE UNIQUE INDEX cve_detail_pkey ON public.cve_detail USING btree (vuln_id)

table public.cve_fact with (fillfactor=80)
  vuln_id text collate "C" not null
  kev boolean
  kev_date_added timestamp without time zone
  epss real
  epss_percentile real
  constraint cve_fact_pkey PRIMARY KEY (vuln_id)
  CREATE INDEX cve_fact_by_epss ON public.cve_fact USING btree (epss) WHERE (epss IS NOT NULL)
  CREATE INDEX cve_fact_by_kev ON public.cve_fact USING btree (kev, vuln_id) WHERE (kev IS NOT NULL)
  CREATE UNIQUE INDEX cve_fact_pkey ON public.cve_fact USING btree (vuln_id)

table public.cve_news
  id bigint not null generated always as identity
  vuln_id text collate "C" not null
  kev boolean
  kev_date_added timestamp without time zone
  epss real
  epss_percentile real
  noted_at timestamp without time zone not null default (now() AT TIME ZONE 'utc'::text)
  constraint cve_news_pkey PRIMARY KEY (id)
  CREATE INDEX cve_news_by_vuln ON public.cve_news USING btree (vuln_id)
  CREATE UNIQUE INDEX cve_news_pkey ON public.cve_news USING btree (id)

table public.cve_package
  vuln_id text collate "C" not null
  package_name text collate "C" not null
  constraint cve_package_pkey PRIMARY KEY (vuln_id, package_name)
  CREATE INDEX cve_package_by_name ON public.cve_package USING btree (package_name, vuln_id)
  CREATE UNIQUE INDEX cve_package_pkey ON public.cve_package USING btree (vuln_id, package_name)

table public.cve_summary with (fillfactor=80)
  vuln_id text collate "C" not null
  scope_namespace text collate "C" not null
  severity smallint not null
  is_fixable boolean not null
  images bigint not null
  workloads bigint not null
  running_workloads bigint not null
  namespaces bigint not null
  join_rank smallint not null
  tier smallint not null default 1
  executed_workloads bigint not null default 0
  loaded_workloads bigint not null default 0
  not_observed_workloads bigint not null default 0
  exposed_workloads bigint not null default 0
  constraint cve_summary_pkey PRIMARY KEY (vuln_id, scope_namespace)
  CREATE INDEX cve_summary_by_tier ON public.cve_summary USING btree (scope_namespace, is_fixable, ((running_workloads >
      0)), tier, severity, vuln_id)
  CREATE UNIQUE INDEX cve_summary_pkey ON public.cve_summary USING btree (vuln_id, scope_namespace)

table public.cve_summary_state with (fillfactor=50)
  is_only boolean not null default true
  refreshed_at timestamp without time zone not null
  judged_until timestamp without time zone
  constraint cve_summary_state_is_only_check CHECK (is_only)
  constraint cve_summary_state_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX cve_summary_state_pkey ON public.cve_summary_state USING btree (is_only)

table public.finding_sent
  digest text collate "C" not null
  source text collate "C" not null
  vuln_id text collate "C" not null
  package_name text collate "C" not null
  installed_version text collate "C" not null
  name text collate "C"
  sent jsonb not null
  CREATE INDEX finding_sent_by_name ON public.finding_sent USING btree (name, digest, source) WHERE (name IS NOT NULL)
  CREATE INDEX finding_sent_by_payload ON public.finding_sent USING btree (digest, source)

table public.flow_address with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05,
      autovacuum_vacuum_scale_factor=0.02, fillfactor=90)
  namespace text collate "C" not null
  name text collate "C" not null
  kind text collate "C" not null
  address text collate "C" not null
  last_flow_at timestamp without time zone not null
  constraint flow_address_pkey PRIMARY KEY (namespace, name, kind, address)
  CREATE INDEX flow_address_by_address ON public.flow_address USING btree (address)
  CREATE INDEX flow_address_by_last_flow ON public.flow_address USING btree (last_flow_at)
  CREATE UNIQUE INDEX flow_address_pkey ON public.flow_address USING btree (namespace, name, kind, address)

table public.flow_edge with (fillfactor=70)
  id uuid not null
  traffic_type text collate "C" not null
  pod_namespace text collate "C"
  pod_workload_kind text collate "C"
  pod_workload_name text collate "C"
  pod_name text collate "C"
  peer_kind text collate "C"
  peer_namespace text collate "C"
  peer_workload_kind text collate "C"
  peer_workload_name text collate "C"
  peer_name text collate "C"
  traffic_in_out_ip text collate "C"
  is_public boolean not null
  port text collate "C"
  ip_protocol text collate "C"
  decision text collate "C"
  flows bigint not null
  pods bigint not null
  first_seen_at timestamp without time zone not null
  last_new_at timestamp without time zone not null
  counted_at timestamp without time zone not null
  constraint flow_edge_pkey PRIMARY KEY (id)
  CREATE INDEX flow_edge_by_address ON public.flow_edge USING btree (traffic_in_out_ip) WHERE (traffic_in_out_ip IS NOT
      NULL)
  CREATE INDEX flow_edge_by_first_seen ON public.flow_edge USING btree (first_seen_at)
  CREATE INDEX flow_edge_by_peer ON public.flow_edge USING btree (COALESCE(peer_namespace, ''::text),
      COALESCE(peer_workload_kind, ''::text), COALESCE(peer_workload_name, ''::text)) WHERE (peer_kind = 'pod'::text)
  CREATE INDEX flow_edge_by_service ON public.flow_edge USING btree (COALESCE(peer_namespace, ''::text),
      COALESCE(peer_name, ''::text)) WHERE (peer_kind = 'service'::text)
  CREATE INDEX flow_edge_by_workload ON public.flow_edge USING btree (pod_namespace, pod_workload_kind,
      pod_workload_name, pod_name)
  CREATE UNIQUE INDEX flow_edge_pkey ON public.flow_edge USING btree (id)

table public.flow_edge_cursor with (fillfactor=50)
  is_only boolean not null default true
  next_tx xid8 not null
  time_stamp timestamp without time zone
  uuid text collate "C"
  as_of timestamp without time zone
  looked_tx xid8
  looked_at timestamp without time zone
  counted_at timestamp without time zone not null default '-infinity'::timestamp without time zone
  swept_id uuid not null default '00000000-0000-0000-0000-000000000000'::uuid
  open_secs double precision
  complete_since timestamp without time zone not null default '-infinity'::timestamp without time zone
  pods_since timestamp without time zone not null default 'infinity'::timestamp without time zone
  addresses_since timestamp without time zone not null default 'infinity'::timestamp without time zone
  backends_at timestamp without time zone not null default '-infinity'::timestamp without time zone
  constraint flow_edge_cursor_is_only_check CHECK (is_only)
  constraint flow_edge_cursor_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX flow_edge_cursor_pkey ON public.flow_edge_cursor USING btree (is_only)

table public.flow_edge_pending
  uuid text collate "C" not null
  time_stamp timestamp without time zone not null
  reporter text collate "C"
  traffic_type text collate "C" not null
  pod_namespace text collate "C"
  pod_workload_kind text collate "C"
  pod_workload_name text collate "C"
  pod_name text collate "C"
  peer_kind text collate "C"
  peer_namespace text collate "C"
  peer_workload_kind text collate "C"
  peer_workload_name text collate "C"
  peer_name text collate "C"
  traffic_in_out_ip text collate "C"
  is_public boolean not null
  port text collate "C"
  ip_protocol text collate "C"
  decision text collate "C"
  counted_at timestamp without time zone not null
  constraint flow_edge_pending_pkey PRIMARY KEY (uuid, time_stamp)
  CREATE INDEX flow_edge_pending_by_time ON public.flow_edge_pending USING btree (time_stamp)
  CREATE UNIQUE INDEX flow_edge_pending_pkey ON public.flow_edge_pending USING btree (uuid, time_stamp)

table public.flow_edge_pod with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05,
      autovacuum_vacuum_scale_factor=0.02, fillfactor=90)
  edge_id uuid not null
  pod_name text collate "C" not null
  last_new_at timestamp without time zone not null
  constraint flow_edge_pod_pkey PRIMARY KEY (edge_id, pod_name)
  CREATE UNIQUE INDEX flow_edge_pod_pkey ON public.flow_edge_pod USING btree (edge_id, pod_name)

table public.flow_pod with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05,
      autovacuum_vacuum_scale_factor=0.02, fillfactor=90)
  pod_namespace text collate "C" not null
  pod_name text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  first_flow_at timestamp without time zone not null
  last_flow_at timestamp without time zone not null
  is_labelled boolean not null
  constraint flow_pod_pkey PRIMARY KEY (pod_namespace, pod_name, workload_kind, workload_name)
  CREATE INDEX flow_pod_by_last_flow ON public.flow_pod USING btree (last_flow_at)
  CREATE UNIQUE INDEX flow_pod_pkey ON public.flow_pod USING btree (pod_namespace, pod_name, workload_kind,
      workload_name)
  CREATE INDEX flow_pod_without_labels ON public.flow_pod USING btree (first_flow_at) WHERE (NOT is_labelled)

table public.image with (fillfactor=80)
  digest text collate "C" not null
  repository text collate "C"
  tags text[] not null
  digest_kind text collate "C" not null
  first_seen timestamp without time zone not null
  last_seen timestamp without time zone not null
  constraint image_digest_kind_check CHECK ((digest_kind = ANY (ARRAY['pinned'::text, 'config'::text, 'repo'::text])))
  constraint image_pkey PRIMARY KEY (digest)
  CREATE INDEX image_by_end_of_repository ON public.image USING btree (reverse(lower(repository)), digest) WHERE
      (repository IS NOT NULL)
  CREATE INDEX image_by_repository ON public.image USING btree (repository, digest)
  CREATE UNIQUE INDEX image_pkey ON public.image USING btree (digest)

table public.image_attestation with (fillfactor=80)
  digest text collate "C" not null
  repository text collate "C" not null
  verdict text collate "C" not null
  reason text collate "C"
  trust_root text collate "C"
  signed_via text collate "C"
  signed_digest text collate "C"
  signatures text collate "C" not null
  attestations text collate "C" not null
  verified_signatures text not null
  verified_attestations text not null
  signers text not null
  verified_predicates text not null
  post text collate "C" not null
  checked_at timestamp without time zone not null
  received_at timestamp without time zone not null
  constraint image_attestation_verdict_check CHECK ((verdict = ANY (ARRAY['verified'::text, 'key_signed'::text,
      'unsigned'::text, 'invalid'::text, 'unknown'::text])))
  constraint image_attestation_pkey PRIMARY KEY (digest)
  CREATE INDEX image_attestation_by_repository ON public.image_attestation USING btree (repository, verdict, digest)
  CREATE INDEX image_attestation_by_verdict ON public.image_attestation USING btree (verdict, digest)
  CREATE INDEX image_attestation_oldest ON public.image_attestation USING btree (checked_at)
  CREATE UNIQUE INDEX image_attestation_pkey ON public.image_attestation USING btree (digest)

table public.image_component with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05,
      autovacuum_vacuum_scale_factor=0.02)
  digest text collate "C" not null
  source text collate "C" not null
  "position" bigint not null
  name text not null
  version text
  purl text
  type text
  class text
  src_name text
  src_version text
  licenses text[] not null
  layer_digest text
  file_paths text[] not null
  constraint image_component_pkey PRIMARY KEY (digest, source, "position")
  CREATE UNIQUE INDEX image_component_pkey ON public.image_component USING btree (digest, source, "position")

table public.image_cve with (fillfactor=80)
  vuln_id text collate "C" not null
  image_digest text collate "C" not null
  severity smallint not null
  max_score real
  is_fixable boolean not null
  packages text[] not null
  sources text[] not null
  join_rank smallint not null
  is_provable boolean not null default false
  used_packages text[] not null default '{}'::text[]
  constraint image_cve_pkey PRIMARY KEY (vuln_id, image_digest)
  CREATE INDEX image_cve_by_image ON public.image_cve USING btree (image_digest)
  CREATE UNIQUE INDEX image_cve_pkey ON public.image_cve USING btree (vuln_id, image_digest)

table public.image_finding with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05,
      autovacuum_vacuum_scale_factor=0.02)
  digest text collate "C" not null
  source text collate "C" not null
  severity smallint not null
  vuln_id text collate "C" not null
  package_name text collate "C" not null
  installed_version text collate "C" not null
  package_type text
  package_purl text
  fixed_versions text[] not null
  score real
  cvss jsonb not null
  title text
  primary_url text
  target text
  class text
  published_at timestamp without time zone
  last_modified_at timestamp without time zone
  file_paths text[] not null
  kev boolean
  kev_date_added timestamp without time zone
  epss real
  epss_percentile real
  aliases text[] not null default '{}'::text[]
  omitted bigint not null default 0
  status smallint
  constraint image_finding_severity_check CHECK (((severity >= 0) AND (severity <= 5)))
  constraint image_finding_pkey PRIMARY KEY (digest, source, severity, vuln_id, package_name, installed_version)
  CREATE INDEX image_finding_by_cve ON public.image_finding USING btree (upper(vuln_id), digest, source)
  CREATE INDEX image_finding_cut ON public.image_finding USING btree (digest, source) WHERE (omitted > 0)
  CREATE UNIQUE INDEX image_finding_pkey ON public.image_finding USING btree (digest, source, severity, vuln_id,
      package_name, installed_version)
  CREATE INDEX image_finding_with_facts ON public.image_finding USING btree (vuln_id) WHERE ((kev IS NOT NULL) OR
      (kev_date_added IS NOT NULL) OR (epss IS NOT NULL) OR (epss_percentile IS NOT NULL))

table public.image_link
  digest text collate "C" not null
  source text collate "C" not null
  image_digest text collate "C" not null
  join_rank smallint not null
  linked_at timestamp without time zone not null
  constraint image_link_join_rank_check CHECK (((join_rank >= 1) AND (join_rank <= 3)))
  constraint image_link_pkey PRIMARY KEY (digest, source, image_digest)
  CREATE INDEX image_link_by_image ON public.image_link USING btree (image_digest, join_rank)
  CREATE UNIQUE INDEX image_link_pkey ON public.image_link USING btree (digest, source, image_digest)

table public.image_report with (fillfactor=80)
  digest text collate "C" not null
  source text collate "C" not null
  kind text collate "C" not null
  digest_kind text collate "C" not null
  platform_manifests jsonb not null
  index_digest text collate "C"
  manifest_digests text[] not null
  image_ref text
  registry text
  repository text
  normal_repository text collate "C"
  tag text collate "C"
  scanner_name text
  scanner_vendor text
  scanner_version text
  scanned_at timestamp without time zone not null
  db_updated_at timestamp without time zone
  os_family text
  os_name text
  os_eosl boolean not null
  observed_in jsonb not null
  content_hash text collate "C" not null
  sbom_format text
  sbom_spec_version text
  item_count bigint not null
  sbom_sources text[] not null
  sbom_trust text collate "C"
  attestation jsonb
  post text collate "C" not null
  received_at timestamp without time zone not null
  packages_hash text collate "C"
  constraint image_report_digest_kind_check CHECK ((digest_kind = ANY (ARRAY['index'::text, 'manifest'::text,
      'unknown'::text])))
  constraint image_report_kind_check CHECK ((kind = ANY (ARRAY['vulnerabilities'::text, 'sbom'::text])))
  constraint image_report_sbom_trust_check CHECK ((sbom_trust = ANY (ARRAY['attached-unbound'::text, 'unverified'::text,
      'scanned'::text, 'verified'::text])))
  constraint image_report_source_check CHECK ((source = ANY (ARRAY['db-matcher'::text, 'operator-scanner'::text,
      'registry'::text])))
  constraint image_report_pkey PRIMARY KEY (digest, source, kind)
  CREATE INDEX image_report_by_index ON public.image_report USING btree (index_digest) WHERE (index_digest IS NOT NULL)
  CREATE INDEX image_report_by_tag ON public.image_report USING btree (normal_repository, tag, source, kind) WHERE
      ((normal_repository IS NOT NULL) AND (tag IS NOT NULL))
  CREATE UNIQUE INDEX image_report_pkey ON public.image_report USING btree (digest, source, kind)
  CREATE INDEX image_report_unread ON public.image_report USING btree (digest, source, kind) WHERE (packages_hash IS
      DISTINCT FROM content_hash)

table public.install
  is_only boolean not null default true
  install_id uuid not null
  created_at timestamp without time zone not null
  latest json
  checked_at timestamp without time zone
  claimed_at timestamp without time zone
  constraint install_is_only_check CHECK (is_only)
  constraint install_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX install_pkey ON public.install USING btree (is_only)

table public.job_run with (fillfactor=50)
  job text collate "C" not null
  finished_at timestamp without time zone not null
  duration_ms bigint not null
  rows bigint not null
  constraint job_run_pkey PRIMARY KEY (job)
  CREATE UNIQUE INDEX job_run_pkey ON public.job_run USING btree (job)

table public.node_facts with (fillfactor=80)
  node_name text collate "C" not null
  provider text collate "C" not null
  distro text collate "C" not null
  cni text collate "C" not null
  ip_family text collate "C" not null
  node_os text collate "C" not null
  policy_enforcement text collate "C"
  time_stamp timestamp without time zone not null
  constraint node_facts_policy_enforcement_check CHECK ((policy_enforcement = ANY (ARRAY['enforced'::text,
      'unenforced'::text, 'unknown'::text])))
  constraint node_facts_pkey PRIMARY KEY (node_name)
  CREATE UNIQUE INDEX node_facts_pkey ON public.node_facts USING btree (node_name)

view public.node_heartbeat
  node_name text collate "C"
  updated_at timestamp without time zone

table public.package_entry
  id bigint not null
  name text collate "C" not null
  artifact text collate "C"
  purl text collate "C" not null
  constraint package_entry_pkey PRIMARY KEY (id)
  CREATE INDEX package_entry_by_artifact ON public.package_entry USING btree (artifact) WHERE (artifact IS NOT NULL)
  CREATE INDEX package_entry_by_name ON public.package_entry USING btree (name)
  CREATE INDEX package_entry_by_purl ON public.package_entry USING btree (purl) WHERE (purl <> ''::text)
  CREATE UNIQUE INDEX package_entry_pkey ON public.package_entry USING btree (id)

table public.package_use with (fillfactor=90)
  image_digest text collate "C" not null
  package_name text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  container_name text collate "C" not null
  cluster_id text collate "C" not null
  is_executed boolean not null
  constraint package_use_pkey PRIMARY KEY (image_digest, package_name, pod_namespace, workload_kind, workload_name,
      container_name, cluster_id)
  CREATE UNIQUE INDEX package_use_pkey ON public.package_use USING btree (image_digest, package_name, pod_namespace,
      workload_kind, workload_name, container_name, cluster_id)

table public.payload_packages
  digest text collate "C" not null
  source text collate "C" not null
  kind text collate "C" not null
  content_hash text collate "C" not null
  packages bigint[] not null
  is_in_order boolean not null default false
  constraint payload_packages_pkey PRIMARY KEY (digest, source, kind)
  CREATE INDEX payload_packages_by_package ON public.payload_packages USING gin (packages)
  CREATE UNIQUE INDEX payload_packages_pkey ON public.payload_packages USING btree (digest, source, kind)

table public.pod with (autovacuum_vacuum_scale_factor=0.05, fillfactor=60)
  pod_name text collate "C" not null
  pod_ip text collate "C" not null
  pod_namespace text collate "C"
  pod_obj json
  time_stamp timestamp without time zone not null
  node_name text collate "C" not null
  is_dead boolean not null
  pod_identity text
  workload_selector_labels json
  pod_ips text[] not null
  workload_kind text collate "C"
  workload_name text collate "C"
  capture_level text
  host_network boolean
  started_at timestamp without time zone
  pod_uid text
  running_containers text[] collate "C"
  instance_post timestamp without time zone
  swept_at timestamp without time zone
  has_owner boolean
  labels_hash uuid
  named_ports jsonb
  constraint pod_pkey PRIMARY KEY (pod_name)
  CREATE INDEX pod_alive_in_order ON public.pod USING btree (pod_namespace, pod_name) WHERE (NOT is_dead)
  CREATE INDEX pod_by_namespace ON public.pod USING btree (pod_namespace, pod_name)
  CREATE INDEX pod_by_node ON public.pod USING btree (node_name, pod_namespace, pod_name) WHERE (NOT is_dead)
  CREATE INDEX pod_by_workload ON public.pod USING btree (pod_namespace, workload_kind, workload_name) WHERE
      ((workload_kind IS NOT NULL) AND (workload_name IS NOT NULL))
  CREATE UNIQUE INDEX pod_pkey ON public.pod USING btree (pod_name)

table public.pod_address
  ip text collate "C" not null
  pod_name text collate "C" not null
  constraint pod_address_pkey PRIMARY KEY (ip, pod_name)
  CREATE INDEX pod_address_by_pod ON public.pod_address USING btree (pod_name)
  CREATE UNIQUE INDEX pod_address_pkey ON public.pod_address USING btree (ip, pod_name)

table public.pod_instance with (fillfactor=70)
  pod_name text collate "C" not null
  pod_namespace text collate "C" not null
  instance text collate "C" not null
  pod_uid text collate "C"
  started_at timestamp without time zone
  workload_kind text collate "C"
  workload_name text collate "C"
  capture_level text
  earlier_level text
  level_since timestamp without time zone not null
  is_moved boolean not null default false
  image_digests text[] not null default '{}'::text[]
  first_post timestamp without time zone not null
  last_post timestamp without time zone not null
  first_seen timestamp without time zone not null
  last_seen timestamp without time zone not null
  constraint pod_instance_pkey PRIMARY KEY (pod_name, pod_namespace, instance)
  CREATE UNIQUE INDEX pod_instance_pkey ON public.pod_instance USING btree (pod_name, pod_namespace, instance)

table public.pod_labels
  pod_namespace text collate "C" not null
  pod_name text collate "C" not null
  since timestamp without time zone not null
  labels jsonb not null
  node_name text collate "C" not null
  constraint pod_labels_pkey PRIMARY KEY (pod_namespace, pod_name, since)
  CREATE INDEX pod_labels_by_label ON public.pod_labels USING gin (labels jsonb_path_ops)
  CREATE INDEX pod_labels_by_node ON public.pod_labels USING btree (node_name)
  CREATE UNIQUE INDEX pod_labels_pkey ON public.pod_labels USING btree (pod_namespace, pod_name, since)

table public.pod_syscalls with (fillfactor=70)
  pod_name text collate "C" not null
  pod_namespace text not null
  syscalls text not null
  arch text not null
  time_stamp timestamp without time zone not null
  united_in text collate "C"
  constraint pod_syscalls_pkey PRIMARY KEY (pod_name)
  CREATE UNIQUE INDEX pod_syscalls_pkey ON public.pod_syscalls USING btree (pod_name)

table public.runtime_capability with (fillfactor=80)
  cluster_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  container_name text collate "C" not null
  image_digest text collate "C" not null
  capability text collate "C" not null
  granted boolean not null
  probed boolean not null
  count bigint not null
  last_pod_name text collate "C"
  first_seen timestamp without time zone not null
  last_seen timestamp without time zone not null
  last_reported timestamp without time zone not null
  last_reported_day date not null generated stored (last_reported)::date
  last_post uuid not null
  constraint runtime_capability_count_check CHECK ((count >= 0))
  constraint runtime_capability_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name, container_name,
      image_digest, capability, granted, probed, cluster_id)
  CREATE INDEX runtime_capability_oldest ON public.runtime_capability USING btree (last_reported_day)
  CREATE UNIQUE INDEX runtime_capability_pkey ON public.runtime_capability USING btree (pod_namespace, workload_kind,
      workload_name, container_name, image_digest, capability, granted, probed, cluster_id)

table public.runtime_coverage with (fillfactor=70)
  cluster_id text collate "C" not null
  container_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  container_name text collate "C" not null
  image_digest text collate "C" not null
  pod_name text collate "C" not null
  node_name text collate "C" not null
  mode text collate "C" not null
  exec_probe boolean not null
  lib_probe boolean not null
  start_mode text collate "C" not null
  tracking_since timestamp without time zone not null
  covered_since timestamp without time zone not null
  probe_attached_at timestamp without time zone
  last_heartbeat timestamp without time zone not null
  heartbeat_secs bigint not null
  gaps bigint not null
  last_gap text collate "C"
  events_dropped bigint not null
  last_drop_at timestamp without time zone
  unsent bigint not null
  incomplete boolean not null
  ended boolean not null
  cap_probe boolean
  cap_hook text collate "C"
  cap_since timestamp without time zone
  constraint runtime_coverage_heartbeat_secs_check CHECK (((heartbeat_secs >= 1) AND (heartbeat_secs <= 86400)))
  constraint runtime_coverage_last_gap_check CHECK ((last_gap = ANY (ARRAY['late_heartbeat'::text,
      'probe_restart'::text, 'probe_change'::text])))
  constraint runtime_coverage_mode_check CHECK ((mode = ANY (ARRAY['exec'::text, 'full'::text])))
  constraint runtime_coverage_start_mode_check CHECK ((start_mode = ANY (ARRAY['start'::text, 'backfill'::text])))
  constraint runtime_coverage_pkey PRIMARY KEY (container_id, cluster_id)
  CREATE INDEX runtime_coverage_by_image ON public.runtime_coverage USING btree (image_digest) WHERE (image_digest <>
      ''::text)
  CREATE INDEX runtime_coverage_by_pod ON public.runtime_coverage USING btree (pod_namespace, pod_name, container_name)
  CREATE INDEX runtime_coverage_by_workload ON public.runtime_coverage USING btree (pod_namespace, workload_kind,
      workload_name, container_name, image_digest)
  CREATE UNIQUE INDEX runtime_coverage_pkey ON public.runtime_coverage USING btree (container_id, cluster_id)

table public.runtime_executable with (fillfactor=80)
  cluster_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  container_name text collate "C" not null
  image_digest text collate "C" not null
  kind text collate "C" not null
  path text collate "C" not null
  path_start text collate "C" not null generated stored "left"(path, 256)
  path_hash bytea not null
  path_complete boolean not null
  source text collate "C" not null
  origin text collate "C" not null
  last_pod_name text collate "C"
  first_seen timestamp without time zone not null
  last_seen timestamp without time zone not null
  last_seen_day date not null generated stored (last_seen)::date
  constraint runtime_executable_kind_check CHECK ((kind = ANY (ARRAY['exec'::text, 'lib'::text])))
  constraint runtime_executable_origin_check CHECK ((origin = ANY (ARRAY['unknown'::text, 'image'::text,
      'otherFs'::text, 'deleted'::text, 'writableLayer'::text, 'memfd'::text])))
  constraint runtime_executable_source_check CHECK ((source = ANY (ARRAY['ebpf'::text, 'backfill'::text])))
  constraint runtime_executable_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name, container_name,
      image_digest, kind, path_start, path_hash, cluster_id)
  CREATE INDEX runtime_executable_by_image ON public.runtime_executable USING btree (image_digest, kind, path_start,
      path_hash) WHERE (image_digest <> ''::text)
  CREATE INDEX runtime_executable_incomplete ON public.runtime_executable USING btree (pod_namespace, workload_kind,
      workload_name, container_name, image_digest) WHERE (NOT path_complete)
  CREATE INDEX runtime_executable_oldest ON public.runtime_executable USING btree (last_seen_day)
  CREATE UNIQUE INDEX runtime_executable_pkey ON public.runtime_executable USING btree (pod_namespace, workload_kind,
      workload_name, container_name, image_digest, kind, path_start, path_hash, cluster_id)
  CREATE INDEX runtime_executable_unshipped ON public.runtime_executable USING btree (pod_namespace, workload_kind,
      workload_name, container_name, image_digest) WHERE (origin = ANY (ARRAY['deleted'::text, 'writableLayer'::text,
      'memfd'::text]))
  CREATE INDEX runtime_executable_unshipped_newest ON public.runtime_executable USING btree (first_seen, path_hash)
      WHERE (origin = ANY (ARRAY['deleted'::text, 'writableLayer'::text, 'memfd'::text]))

table public.sbom_page with (fillfactor=80)
  digest text collate "C" not null
  source text collate "C" not null
  set_id text collate "C" not null
  page_index bigint not null
  total bigint not null
  scanned_at timestamp without time zone not null
  item_count bigint not null
  components text not null
  post text collate "C" not null
  received_at timestamp without time zone not null
  constraint sbom_page_pkey PRIMARY KEY (digest, source, set_id, page_index)
  CREATE UNIQUE INDEX sbom_page_pkey ON public.sbom_page USING btree (digest, source, set_id, page_index)

table public.schema_functions
  is_only boolean not null default true
  hash text not null
  applied_at timestamp without time zone not null default (now() AT TIME ZONE 'utc'::text)
  constraint schema_functions_is_only_check CHECK (is_only)
  constraint schema_functions_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX schema_functions_pkey ON public.schema_functions USING btree (is_only)

table public.schema_migration
  version integer not null
  name text not null
  applied_at timestamp without time zone not null default (now() AT TIME ZONE 'utc'::text)
  constraint schema_migration_pkey PRIMARY KEY (version)
  CREATE UNIQUE INDEX schema_migration_pkey ON public.schema_migration USING btree (version)

table public.seccomp_cr with (fillfactor=80)
  namespace text collate "C" not null
  name text collate "C" not null
  default_action text not null
  architectures text[] not null
  syscalls text not null
  syscall_count bigint not null
  workload_kind text collate "C"
  workload_name text collate "C"
  hash text collate "C" not null
  ready bigint not null
  total bigint not null
  state text not null
  updated_at timestamp without time zone not null
  constraint seccomp_cr_pkey PRIMARY KEY (namespace, name)
  CREATE INDEX seccomp_cr_by_workload ON public.seccomp_cr USING btree (namespace, workload_kind, workload_name)
  CREATE UNIQUE INDEX seccomp_cr_pkey ON public.seccomp_cr USING btree (namespace, name)

table public.seccomp_denial with (fillfactor=80)
  id bigint not null generated always as identity
  pod_uid text collate "C" not null
  pod_name text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C"
  workload_name text collate "C"
  node_name text collate "C"
  syscall text collate "C" not null
  syscall_nr bigint
  action text collate "C" not null
  action_raw bigint
  arch text collate "C"
  count bigint not null
  first_seen timestamp without time zone not null
  last_seen timestamp without time zone not null
  uncounted bigint not null default 0
  constraint seccomp_denial_pkey PRIMARY KEY (id)
  constraint seccomp_denial_pod_uid_syscall_action_key UNIQUE (pod_uid, syscall, action)
  CREATE INDEX seccomp_denial_by_workload ON public.seccomp_denial USING btree (pod_namespace, workload_kind,
      workload_name, last_seen, id)
  CREATE INDEX seccomp_denial_newest ON public.seccomp_denial USING btree (last_seen, id)
  CREATE INDEX seccomp_denial_of_namespace ON public.seccomp_denial USING btree (pod_namespace, last_seen, id)
  CREATE UNIQUE INDEX seccomp_denial_pkey ON public.seccomp_denial USING btree (id)
  CREATE UNIQUE INDEX seccomp_denial_pod_uid_syscall_action_key ON public.seccomp_denial USING btree (pod_uid, syscall,
      action)
  CREATE INDEX seccomp_denial_to_count ON public.seccomp_denial USING btree (id) WHERE ((uncounted > 0) AND
      (workload_kind IS NOT NULL) AND (workload_name IS NOT NULL))
  CREATE INDEX seccomp_denial_unattributed ON public.seccomp_denial USING btree (pod_namespace, id) WHERE
      ((workload_kind IS NULL) OR (workload_name IS NULL))

table public.seccomp_denial_node with (fillfactor=70)
  node_name text collate "C" not null
  capturing boolean not null
  interval_seconds bigint
  posts uuid[] not null
  updated_at timestamp without time zone not null
  constraint seccomp_denial_node_interval_seconds_check CHECK (((interval_seconds >= 1) AND (interval_seconds <= 600)))
  constraint seccomp_denial_node_pkey PRIMARY KEY (node_name)
  CREATE UNIQUE INDEX seccomp_denial_node_pkey ON public.seccomp_denial_node USING btree (node_name)

table public.seccomp_file
  path text collate "C" not null
  file_set_id bytea not null
  hash text collate "C"
  constraint seccomp_file_file_set_id_fkey FOREIGN KEY (file_set_id) REFERENCES seccomp_file_set(id) ON DELETE CASCADE
  constraint seccomp_file_pkey PRIMARY KEY (path, file_set_id)
  CREATE INDEX seccomp_file_by_set ON public.seccomp_file USING btree (file_set_id)
  CREATE UNIQUE INDEX seccomp_file_pkey ON public.seccomp_file USING btree (path, file_set_id)

table public.seccomp_file_set
  id bytea not null
  constraint seccomp_file_set_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX seccomp_file_set_pkey ON public.seccomp_file_set USING btree (id)

table public.seccomp_node with (fillfactor=70)
  node_name text collate "C" not null
  file_set_id bytea not null
  updated_at timestamp without time zone not null
  constraint seccomp_node_file_set_id_fkey FOREIGN KEY (file_set_id) REFERENCES seccomp_file_set(id)
  constraint seccomp_node_pkey PRIMARY KEY (node_name)
  CREATE INDEX seccomp_node_by_set ON public.seccomp_node USING btree (file_set_id)
  CREATE UNIQUE INDEX seccomp_node_pkey ON public.seccomp_node USING btree (node_name)

table public.service with (fillfactor=80)
  svc_ip text collate "C" not null
  svc_name text collate "C"
  svc_namespace text collate "C"
  service_spec json
  time_stamp timestamp without time zone not null
  svc_uid text
  constraint service_pkey PRIMARY KEY (svc_ip)
  CREATE INDEX service_by_namespace ON public.service USING btree (svc_namespace, svc_name, svc_ip)
  CREATE UNIQUE INDEX service_pkey ON public.service USING btree (svc_ip)

table public.service_backend
  svc_namespace text collate "C" not null
  svc_name text collate "C" not null
  port text collate "C" not null
  protocol text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  target_port text collate "C" not null
  constraint service_backend_pkey PRIMARY KEY (svc_namespace, svc_name, port, protocol)
  CREATE UNIQUE INDEX service_backend_pkey ON public.service_backend USING btree (svc_namespace, svc_name, port,
      protocol)

table public.summary_image
  image_digest text collate "C" not null
  payloads text not null
  whole_packages text[] not null default '{}'::text[]
  cut_packages text[] not null default '{}'::text[]
  interpreted_packages text[] not null default '{}'::text[]
  constraint summary_image_pkey PRIMARY KEY (image_digest)
  CREATE UNIQUE INDEX summary_image_pkey ON public.summary_image USING btree (image_digest)

table public.summary_news
  vuln_id text collate "C" not null
  constraint summary_news_pkey PRIMARY KEY (vuln_id)
  CREATE UNIQUE INDEX summary_news_pkey ON public.summary_news USING btree (vuln_id)

table public.summary_workload with (fillfactor=80)
  image_digest text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  cluster_id text collate "C" not null
  is_running boolean not null
  constraint summary_workload_pkey PRIMARY KEY (image_digest, pod_namespace, workload_kind, workload_name, cluster_id)
  CREATE UNIQUE INDEX summary_workload_pkey ON public.summary_workload USING btree (image_digest, pod_namespace,
      workload_kind, workload_name, cluster_id)

table public.syscall_contribution with (fillfactor=70)
  pod_name text collate "C" not null
  pod_namespace text collate "C" not null
  instance text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  syscalls text not null
  arches text[] not null
  capture_level text
  level_at timestamp without time zone not null
  is_doubtful boolean not null default false
  cut_at timestamp without time zone
  seen_until timestamp without time zone not null
  constraint syscall_contribution_pkey PRIMARY KEY (pod_name, pod_namespace, instance, workload_kind, workload_name)
  CREATE INDEX syscall_contribution_by_workload ON public.syscall_contribution USING btree (pod_namespace,
      workload_kind, workload_name)
  CREATE UNIQUE INDEX syscall_contribution_pkey ON public.syscall_contribution USING btree (pod_name, pod_namespace,
      instance, workload_kind, workload_name)

table public.tier_rule
  is_only boolean not null default true
  epss double precision not null
  unknown_is_exposed boolean not null
  constraint tier_rule_is_only_check CHECK (is_only)
  constraint tier_rule_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX tier_rule_pkey ON public.tier_rule USING btree (is_only)

table public.traffic with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.05,
      autovacuum_vacuum_scale_factor=0.02, fillfactor=95)
  uuid text collate "C" not null
  pod_name text collate "C"
  pod_namespace text collate "C"
  pod_ip text collate "C"
  pod_port text collate "C"
  ip_protocol text collate "C"
  traffic_type text collate "C"
  traffic_in_out_ip text collate "C"
  traffic_in_out_port text collate "C"
  decision text collate "C"
  time_stamp timestamp without time zone not null
  peer_kind text
  peer_namespace text
  peer_name text
  peer_uid text
  peer_workload_kind text
  peer_workload_name text
  peer_resolved_at timestamp without time zone
  drop_cause text
  syn_retries bigint
  pod_workload_kind text collate "C"
  pod_workload_name text collate "C"
  tx xid8 default pg_current_xact_id()
  first_tx xid8
  constraint traffic_pkey PRIMARY KEY (time_stamp, uuid)
  CREATE INDEX traffic_by_first_tx ON public.traffic USING btree (first_tx) WHERE (first_tx IS NOT NULL)
  CREATE INDEX traffic_by_pod ON public.traffic USING btree (pod_name, time_stamp DESC, uuid DESC)
  CREATE UNIQUE INDEX traffic_flow ON public.traffic USING btree (pod_ip, traffic_in_out_ip, traffic_type, decision,
      pod_port, traffic_in_out_port)
  CREATE INDEX traffic_in_order_of_writing ON public.traffic USING btree (tx)
  CREATE UNIQUE INDEX traffic_pkey ON public.traffic USING btree (time_stamp, uuid)
  CREATE INDEX traffic_rules_of_pod ON public.traffic USING btree (hash_record(ROW(pod_name)), hash_record(ROW(pod_name,
      pod_namespace, peer_kind, peer_namespace, peer_workload_kind, COALESCE(peer_workload_name, peer_name),
      traffic_type, ip_protocol, pod_port, traffic_in_out_port, decision)), time_stamp) WHERE (peer_kind = ANY
      (ARRAY['pod'::text, 'service'::text]))
  CREATE UNIQUE INDEX traffic_udp_any_peer_port ON public.traffic USING btree (pod_ip, traffic_in_out_ip, traffic_type,
      decision, pod_port) WHERE (ip_protocol = 'UDP'::text)
  CREATE UNIQUE INDEX traffic_udp_any_pod_port ON public.traffic USING btree (pod_ip, traffic_in_out_ip, traffic_type,
      decision, traffic_in_out_port) WHERE (ip_protocol = 'UDP'::text)
  CREATE UNIQUE INDEX traffic_uuid_of_day ON public.traffic USING btree (((time_stamp)::date), uuid)
  CREATE INDEX traffic_without_edge ON public.traffic USING btree (time_stamp) WHERE ((pod_name IS NULL) OR
      (traffic_type IS NULL) OR (traffic_type <> ALL (ARRAY['EGRESS'::text, 'INGRESS'::text])))

table public.traffic_deletion with (fillfactor=50)
  is_only boolean not null default true
  statements bigint not null
  constraint traffic_deletion_is_only_check CHECK (is_only)
  constraint traffic_deletion_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX traffic_deletion_pkey ON public.traffic_deletion USING btree (is_only)

table public.traffic_retention_cursor with (fillfactor=50)
  is_only boolean not null default true
  time_stamp timestamp without time zone
  uuid text collate "C"
  pod_name text collate "C"
  constraint traffic_retention_cursor_is_only_check CHECK (is_only)
  constraint traffic_retention_cursor_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX traffic_retention_cursor_pkey ON public.traffic_retention_cursor USING btree (is_only)

table public.unattributed_syscalls with (fillfactor=70)
  pod_name text collate "C" not null
  pod_namespace text collate "C" not null
  is_ambiguous boolean not null
  syscalls text not null
  arches text[] not null
  sent_at timestamp without time zone not null
  received_at timestamp without time zone not null
  is_cut boolean not null default false
  constraint unattributed_syscalls_pkey PRIMARY KEY (pod_name, pod_namespace, is_ambiguous)
  CREATE UNIQUE INDEX unattributed_syscalls_pkey ON public.unattributed_syscalls USING btree (pod_name, pod_namespace,
      is_ambiguous)

table public.use_news
  id bigint not null generated always as identity
  image_digest text collate "C" not null
  is_judged boolean not null
  constraint use_news_pkey PRIMARY KEY (id)
  CREATE INDEX use_news_by_image ON public.use_news USING btree (image_digest)
  CREATE UNIQUE INDEX use_news_pkey ON public.use_news USING btree (id)

table public.vex_alias
  document_id text collate "C" not null
  alias text collate "C" not null
  vuln_id text collate "C" not null
  constraint vex_alias_pkey PRIMARY KEY (document_id, alias, vuln_id)
  CREATE INDEX vex_alias_by_alias ON public.vex_alias USING btree (alias, vuln_id)
  CREATE INDEX vex_alias_by_vuln ON public.vex_alias USING btree (vuln_id, alias)
  CREATE UNIQUE INDEX vex_alias_pkey ON public.vex_alias USING btree (document_id, alias, vuln_id)

table public.vex_document
  document_id text collate "C" not null
  format text collate "C" not null
  version bigint not null
  author text not null
  issued_at timestamp without time zone not null
  content_hash text collate "C" not null
  received_at timestamp without time zone not null
  constraint vex_document_format_check CHECK ((format = ANY (ARRAY['openvex'::text, 'cyclonedx'::text])))
  constraint vex_document_pkey PRIMARY KEY (document_id)
  CREATE INDEX vex_document_oldest ON public.vex_document USING btree (received_at)
  CREATE UNIQUE INDEX vex_document_pkey ON public.vex_document USING btree (document_id)

table public.vex_statement
  document_id text collate "C" not null
  "position" bigint not null
  content json not null
  constraint vex_statement_pkey PRIMARY KEY (document_id, "position")
  CREATE UNIQUE INDEX vex_statement_pkey ON public.vex_statement USING btree (document_id, "position")

table public.vuln_decision
  id bigint not null generated always as identity
  vuln_id text collate "C" not null
  name text collate "C" not null
  scope_rank smallint not null
  pod_namespace text collate "C"
  workload_kind text collate "C"
  workload_name text collate "C"
  image_digest text collate "C"
  repository text collate "C"
  package_name text collate "C"
  package_purl text collate "C"
  decision text collate "C" not null
  justification text collate "C"
  holds_until date
  decided_by text not null
  reason text not null
  decided_at timestamp without time zone not null
  document_id text collate "C"
  document_version bigint
  statement_position bigint
  product json
  ended_at timestamp without time zone
  ended_how text collate "C"
  ended_by text
  ended_reason text
  image_arch text collate "C"
  constraint vuln_decision_decision_check CHECK ((decision = ANY (ARRAY['accepted'::text, 'not_affected'::text,
      'will_not_fix'::text, 'affected'::text, 'fixed'::text, 'under_investigation'::text])))
  constraint vuln_decision_ended_how_check CHECK ((ended_how = ANY (ARRAY['replaced'::text, 'withdrawn'::text,
      'expired'::text])))
  constraint vuln_decision_scope_rank_check CHECK (((scope_rank >= 0) AND (scope_rank <= 3)))
  constraint vuln_decision_pkey PRIMARY KEY (id)
  CREATE INDEX vuln_decision_ended ON public.vuln_decision USING btree (ended_at) WHERE (ended_at IS NOT NULL)
  CREATE INDEX vuln_decision_expiring ON public.vuln_decision USING btree (holds_until) WHERE ((ended_at IS NULL) AND
      (holds_until IS NOT NULL))
  CREATE INDEX vuln_decision_history ON public.vuln_decision USING btree (name, id)
  CREATE INDEX vuln_decision_holding ON public.vuln_decision USING btree (name) WHERE (ended_at IS NULL)
  CREATE INDEX vuln_decision_of_document ON public.vuln_decision USING btree (document_id) WHERE ((ended_at IS NULL) AND
      (document_id IS NOT NULL))
  CREATE INDEX vuln_decision_of_image ON public.vuln_decision USING btree (image_digest) WHERE ((ended_at IS NULL) AND
      (image_digest IS NOT NULL))
  CREATE INDEX vuln_decision_of_repository ON public.vuln_decision USING btree (repository) WHERE ((ended_at IS NULL)
      AND (repository IS NOT NULL))
  CREATE UNIQUE INDEX vuln_decision_pkey ON public.vuln_decision USING btree (id)

table public.workload_container with (fillfactor=80)
  cluster_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  container_name text collate "C" not null
  image_digest text collate "C" not null
  container_kind text collate "C" not null
  image_ref text not null
  security_context jsonb not null
  pod_security jsonb not null
  last_pod_name text collate "C"
  state text collate "C"
  state_reason text
  ref_seen_at timestamp without time zone
  first_seen timestamp without time zone not null
  last_seen timestamp without time zone not null
  constraint workload_container_container_kind_check CHECK ((container_kind = ANY (ARRAY['init'::text, 'regular'::text,
      'ephemeral'::text])))
  constraint workload_container_state_check CHECK ((state = ANY (ARRAY['running'::text, 'waiting'::text,
      'terminated'::text])))
  constraint workload_container_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name, container_name,
      image_digest, cluster_id)
  CREATE INDEX workload_container_by_image ON public.workload_container USING btree (image_digest, pod_namespace,
      workload_name)
  CREATE INDEX workload_container_by_last_pod ON public.workload_container USING btree (pod_namespace, last_pod_name,
      container_name) WHERE (last_pod_name IS NOT NULL)
  CREATE INDEX workload_container_by_namespace ON public.workload_container USING btree (pod_namespace, image_digest,
      workload_name)
  CREATE INDEX workload_container_in_feed_order ON public.workload_container USING btree (cluster_id, pod_namespace,
      workload_kind, workload_name, container_name, image_digest)
  CREATE INDEX workload_container_oldest ON public.workload_container USING btree (last_seen)
  CREATE UNIQUE INDEX workload_container_pkey ON public.workload_container USING btree (pod_namespace, workload_kind,
      workload_name, container_name, image_digest, cluster_id)

table public.workload_profile with (fillfactor=70)
  cluster_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  revision integer not null
  content_hash text collate "C" not null
  posture_status text collate "C" not null
  summary json not null
  has_drift boolean not null
  is_full boolean not null
  computed_at timestamp without time zone not null
  last_changed_at timestamp without time zone not null
  constraint workload_profile_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name, cluster_id)
  CREATE INDEX workload_profile_drifting ON public.workload_profile USING btree (pod_namespace, workload_kind,
      workload_name) WHERE has_drift
  CREATE INDEX workload_profile_full ON public.workload_profile USING btree (pod_namespace, workload_kind,
      workload_name) WHERE is_full
  CREATE UNIQUE INDEX workload_profile_pkey ON public.workload_profile USING btree (pod_namespace, workload_kind,
      workload_name, cluster_id)

table public.workload_profile_export
  id bigint not null generated always as identity
  cluster_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  revision integer
  content_hash text collate "C" not null
  mode text collate "C" not null
  artifacts text[] not null
  images json not null
  pod_security json not null
  exported_at timestamp without time zone not null
  constraint workload_profile_export_mode_check CHECK ((mode = ANY (ARRAY['audit'::text, 'enforce'::text])))
  constraint workload_profile_export_pkey PRIMARY KEY (id)
  CREATE INDEX workload_profile_export_of_workload ON public.workload_profile_export USING btree (pod_namespace,
      workload_kind, workload_name, cluster_id, exported_at DESC, id DESC)
  CREATE INDEX workload_profile_export_oldest ON public.workload_profile_export USING btree (exported_at)
  CREATE UNIQUE INDEX workload_profile_export_pkey ON public.workload_profile_export USING btree (id)

table public.workload_profile_failure
  cluster_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  message text not null
  failed_at timestamp without time zone not null
  constraint workload_profile_failure_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name, cluster_id)
  CREATE UNIQUE INDEX workload_profile_failure_pkey ON public.workload_profile_failure USING btree (pod_namespace,
      workload_kind, workload_name, cluster_id)

table public.workload_profile_turn
  is_only boolean not null default true
  holder uuid not null
  held_until timestamp without time zone not null
  constraint workload_profile_turn_is_only_check CHECK (is_only)
  constraint workload_profile_turn_pkey PRIMARY KEY (is_only)
  CREATE UNIQUE INDEX workload_profile_turn_pkey ON public.workload_profile_turn USING btree (is_only)

table public.workload_profile_version
  cluster_id text collate "C" not null
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  revision integer not null
  content_hash text collate "C" not null
  dimension_hashes json not null
  posture json not null
  snapshot json not null
  created_at timestamp without time zone not null
  constraint workload_profile_version_revision_check CHECK ((revision > 0))
  constraint workload_profile_version_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name, revision,
      cluster_id)
  CREATE INDEX workload_profile_version_oldest ON public.workload_profile_version USING btree (created_at)
  CREATE UNIQUE INDEX workload_profile_version_pkey ON public.workload_profile_version USING btree (pod_namespace,
      workload_kind, workload_name, revision, cluster_id)

table public.workload_syscalls with (fillfactor=80)
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  syscalls text not null
  arches text[] not null
  hash text not null
  syscall_count bigint not null
  updated_at timestamp without time zone not null
  reset_at timestamp without time zone
  reset_id uuid
  constraint workload_syscalls_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name)
  CREATE UNIQUE INDEX workload_syscalls_pkey ON public.workload_syscalls USING btree (pod_namespace, workload_kind,
      workload_name)

table public.workload_syscalls_seen with (fillfactor=80)
  pod_namespace text collate "C" not null
  workload_kind text collate "C" not null
  workload_name text collate "C" not null
  names text[] not null
  first_seen timestamp without time zone[] not null
  last_seen timestamp without time zone[] not null
  images bigint[] not null
  image_digests text[] not null
  image_seen timestamp without time zone[] not null
  constraint workload_syscalls_seen_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name)
  CREATE UNIQUE INDEX workload_syscalls_seen_pkey ON public.workload_syscalls_seen USING btree (pod_namespace,
      workload_kind, workload_name)

function public.add_syscalls(pods json, sent json, OUT left_out integer, OUT ambiguous integer, OUT unknown integer)
      returns record language plpgsql

function public.affected_payloads(vuln text) returns TABLE(image_digest text, digest text, source text, join_rank
      smallint) language sql stable parallel safe

function public.alias_list(vuln text) returns TABLE(aliases text[]) language sql stable parallel safe

function public.aliases_of(vuln text) returns text[] language sql stable parallel safe

function public.answering_reports(asked text, of_kind text) returns TABLE(digest text, source text, join_rank smallint)
      language sql stable parallel safe

function public.artifact_of(name text) returns text language sql immutable parallel safe

function public.attribute_syscalls(pods text[], moment timestamp without time zone) returns void language plpgsql

function public.bounded_union(stored text[], offered text[], most integer, most_bytes integer) returns text[] language
      sql immutable parallel safe

function public.canonical_id(id text) returns text language sql stable parallel safe

function public.canonical_ids(told image_finding[]) returns TABLE(id text, vuln_id text) language sql stable

function public.capabilities_since(stored runtime_coverage, next runtime_coverage) returns timestamp without time zone
      language sql immutable parallel safe

function public.capability_coverage_of(cluster text, namespace text, kind text, name text, container text, image text,
      window_hours integer) returns TABLE(container_name text, image_digest text, observed_since timestamp without time
      zone, reason text) language plpgsql stable

function public.capture_rank(level text) returns integer language sql immutable parallel safe

function public.claims_several(id text, aliases text[]) returns boolean language sql immutable parallel safe

function public.compute_added(one bigint, other bigint) returns bigint language sql immutable parallel safe

function public.compute_added(one bigint[], other bigint[]) returns bigint[] language sql immutable parallel safe

function public.compute_bar(value double precision, secs bigint) returns bigint language sql immutable parallel safe

function public.compute_bucket(value double precision) returns bigint language sql immutable parallel safe

function public.compute_bucket_bound(bucket bigint) returns double precision language sql immutable parallel safe

function public.compute_clamped(value double precision) returns double precision language sql immutable parallel safe

function public.compute_close_count(until timestamp without time zone) returns boolean language plpgsql strict

function public.compute_closed_until() returns timestamp without time zone language plpgsql

function public.compute_count_late_step(kept_from timestamp without time zone, max_minutes bigint) returns TABLE(minutes
      bigint, is_last boolean) language plpgsql strict

function public.compute_count_range(from_ts timestamp without time zone, until_ts timestamp without time zone, kept_from
      timestamp without time zone, max_late bigint) returns bigint language plpgsql

function public.compute_count_step(kept_from timestamp without time zone, until_ts timestamp without time zone, max_secs
      bigint) returns TABLE(minutes bigint, is_last boolean) language plpgsql strict

function public.compute_days(of_table text) returns TABLE(day date, partition regclass) language sql stable

function public.compute_delete_unused(after_id bigint, looked bigint, max_rows bigint) returns TABLE(forgotten bigint,
      last_id bigint, is_held_up boolean) language plpgsql strict

function public.compute_drop_days(of_table text, kept_from date) returns TABLE(dropped integer, is_held_up boolean)
      language plpgsql strict

function public.compute_first_minute(from_ts timestamp without time zone, until_ts timestamp without time zone) returns
      timestamp without time zone language plpgsql stable

function public.compute_heaviest(of_node text, of_namespace text, since timestamp without time zone, per_victim bigint,
      max_rows bigint) returns TABLE(container_id bigint, pair compute_contention) language plpgsql stable

function public.compute_histogram(bars bigint[]) returns bigint[] language sql immutable parallel safe

function public.compute_history_keys(of_container bigint, since timestamp without time zone, line timestamp without time
      zone) returns TABLE(ts timestamp without time zone, id bigint) language plpgsql stable strict

function public.compute_keep_waits(after_id bigint, until_ts timestamp without time zone, looked bigint) returns
      TABLE(moved bigint, hours bigint, last_id bigint) language plpgsql strict

function public.compute_lock_posts() returns boolean language plpgsql

function public.compute_make_days(of_table text, kept_from date, max_moved bigint) returns TABLE(made integer, moved
      bigint, waiting integer, is_held_up boolean) language plpgsql strict

function public.compute_packs_of(of_container bigint, of_hour timestamp without time zone) returns text language plpgsql
      stable

function public.compute_total(total numeric) returns bigint language sql immutable parallel safe

function public.compute_trim_other(of_table text, kept_from date, max_rows bigint) returns bigint language plpgsql
      strict

function public.compute_unused(ids bigint[]) returns TABLE(id bigint) language sql stable

function public.compute_write_packs(doc json) returns bigint language plpgsql strict

function public.contribution_rank(c syscall_contribution, is_awaited boolean) returns integer language sql immutable
      parallel safe

function public.count_cves(max_cves bigint, lanes integer, lane integer) returns TABLE(rows bigint, cves bigint)
      language sql strict

function public.count_decided(vulns text[]) returns bigint language plpgsql

function public.count_decided_under(names text[], max_counted bigint) returns void language plpgsql

function public.count_flow_edges(at_once integer, open_secs double precision) returns TABLE(flows bigint, is_last
      boolean) language sql strict

function public.coverage_detail(cluster text, namespace text, kind text, name text, container text, image text,
      window_hours integer, reason text) returns json language plpgsql stable

function public.coverage_detail_json(cause text, container_id text, pod text, node text, at timestamp without time zone)
      returns json language sql stable parallel safe

function public.coverage_gap(stored runtime_coverage, next runtime_coverage) returns text language sql immutable
      parallel safe

function public.coverage_start(stored runtime_coverage, next runtime_coverage) returns timestamp without time zone
      language sql immutable parallel safe

function public.credit_syscalls(sent json, moment timestamp without time zone, OUT left_out integer, OUT ambiguous
      integer, OUT unknown integer) returns record language plpgsql

function public.credit_workload(of_namespace text, of_kind text, of_workload text, sent json, moment timestamp without
      time zone) returns integer language plpgsql

function public.current_facts(vuln text) returns TABLE(kev boolean, kev_date_added timestamp without time zone, epss
      real, epss_percentile real) language sql stable parallel safe

function public.cve_changes(namespace text, numbers integer[], kinds text[], names text[], containers text[], digests
      text[], are_after boolean[], are_current boolean[], sources text[], only_changed boolean) returns TABLE(n integer,
      vuln_id text, severity smallint, max_score real, is_fixable boolean, is_before boolean, is_after boolean, tier
      smallint, is_used boolean) language sql stable

function public.cve_exposure(vuln text, window_hours integer, running_window_secs integer, shown jsonb) returns json
      language sql stable

function public.cves_of_images(images text[], whole_images text[], whole_packages text[], used_images text[],
      used_packages text[]) returns TABLE(image_digest text, vuln_id text, severity smallint, max_score real, is_fixable
      boolean, packages text[], sources text[], join_rank smallint, is_provable boolean, used text[]) language sql
      stable

function public.decision_scope(d vuln_decision) returns json language sql stable parallel safe

function public.decision_shown(d vuln_decision) returns json language sql stable parallel safe

function public.decisions_for_image(of_digest text, vulns text[]) returns jsonb language plpgsql stable

function public.decisions_of_image(of_digest text) returns SETOF vuln_decision language plpgsql stable

function public.delete_attestations(digests text[]) returns integer language plpgsql

function public.delete_payload(of_digest text, of_source text, days integer, grace_hours integer, window_secs integer)
      returns bigint language plpgsql

function public.denial_workload(of_pod text, of_namespace text) returns TABLE(kind text, name text) language sql stable
      parallel safe

function public.denials_gap(namespace text, is_watched boolean, retention_days integer) returns TABLE(reason text,
      detail json) language sql stable

function public.digest_kind_rank(kind text) returns integer language sql immutable parallel safe

function public.digests_of_image(of_digest text) returns TABLE(digest text, arch text) language sql stable parallel safe

function public.display_names(names text[], shown jsonb) returns text[] language sql immutable parallel safe

function public.distinct_texts(lists jsonb) returns text[] language sql immutable parallel safe

function public.drop_file_sets(ids bytea[]) returns integer language plpgsql

function public.drop_pages(sent image_report, page_set text) returns void language sql

function public.edge_of_flow(t traffic) returns TABLE(traffic_type text, pod_namespace text, pod_workload_kind text,
      pod_workload_name text, pod_name text, peer_kind text, peer_namespace text, peer_workload_kind text,
      peer_workload_name text, peer_name text, traffic_in_out_ip text, is_public boolean, port text, ip_protocol text,
      decision text) language sql immutable parallel safe

function public.end_expired_decisions(max_rows bigint) returns bigint language plpgsql strict

function public.exact_links(of_digest text, of_source text) returns TABLE(image_digest text, join_rank smallint)
      language sql stable parallel safe

function public.expected_links(of_digest text, of_source text) returns TABLE(image_digest text, join_rank smallint)
      language sql stable parallel safe

function public.expire_aliases(max_aliases bigint) returns TABLE(aliases bigint, deleted bigint) language sql strict

function public.expire_flow_edges(days integer, at_once integer) returns bigint language sql strict

function public.expire_pages(of_digest text, of_source text, of_set text, ttl_secs integer) returns bigint language
      plpgsql

aggregate public.first_not_null(anyelement) returns anyelement language internal immutable parallel safe

function public.first_of_two(kept anyelement, other anyelement) returns anyelement language plpgsql immutable strict
      parallel safe

function public.flush_packages(held text) returns bigint language sql strict

function public.fnv1a_64(words text) returns text language plpgsql immutable strict parallel safe

function public.fold_path(path text) returns text language plpgsql immutable parallel safe

function public.forget_decisions(max_rows bigint, days bigint, max_kept bigint) returns bigint language plpgsql strict

function public.forget_packages(max_entries bigint) returns bigint language sql strict

function public.forget_use(max_rows bigint) returns bigint language sql strict

function public.grow_union(of_namespace text, of_kind text, of_workload text, names text[], archs text[]) returns
      integer language plpgsql

function public.id_rank(id text) returns integer language sql immutable parallel safe

function public.image_coverage(asked text, old_before timestamp without time zone, checked_since timestamp without time
      zone) returns TABLE(missing text[], report_at timestamp without time zone, report_rank integer, sbom_at timestamp
      without time zone, sbom_rank integer, verdict text, checked_at timestamp without time zone) language sql stable
      parallel safe

function public.image_runs(asked text, window_secs integer) returns boolean language sql stable parallel safe

function public.images_of_payload(of_digest text, of_source text, of_kind text, running_only boolean, window_secs
      integer) returns TABLE(image_digest text) language sql stable parallel safe

function public.images_to_refresh(after text, max_looked bigint, window_secs integer, lanes integer, lane integer)
      returns TABLE(image_digest text, payloads text, is_reread boolean, is_moved boolean) language sql stable

function public.images_with(names text[]) returns TABLE(image_digest text) language sql stable

function public.inet_of(address text) returns inet language sql immutable parallel safe

function public.ingress_edges(namespace text, kind text, name text) returns SETOF flow_edge language sql stable

function public.is_container_changed(w workload_container, container_kind text, image_ref text, security_context jsonb,
      pod_security jsonb, state text, state_reason text) returns boolean language sql stable parallel safe

function public.is_drain_current(capturing boolean, updated_at timestamp without time zone, interval_seconds bigint)
      returns boolean language sql stable parallel safe

function public.is_executable_changed(stored_path_complete boolean, stored_source text, stored_origin text,
      stored_first_seen timestamp without time zone, stored_last_seen timestamp without time zone, path_complete
      boolean, source text, origin text, first_seen timestamp without time zone, last_seen timestamp without time zone)
      returns boolean language sql immutable parallel safe

function public.is_from_outside(e flow_edge) returns boolean language sql immutable parallel safe

function public.is_heartbeat_current(last_heartbeat timestamp without time zone, heartbeat_secs bigint) returns boolean
      language sql stable parallel safe

function public.is_image_changed(m image, repository text, tags text[], digest_kind text) returns boolean language sql
      stable parallel safe

function public.is_interpreted_file(path text) returns boolean language sql immutable parallel safe

function public.is_outranked(w workload_container, pod text, state text, state_reason text) returns boolean language sql
      stable

function public.is_own_workload(container runtime_coverage) returns boolean language sql immutable parallel safe

function public.is_owned(kind text, name text) returns boolean language sql immutable parallel safe

function public.is_payload_unused(of_digest text, of_source text, days integer, grace_hours integer, window_secs
      integer) returns boolean language sql stable parallel safe

function public.is_pod_alive(namespace text, name text) returns boolean language plpgsql stable parallel safe

function public.is_public_address(address text) returns boolean language sql immutable parallel safe

function public.is_public_ip(address inet) returns boolean language sql immutable parallel safe

function public.is_running(w workload_container, window_secs integer) returns boolean language sql stable parallel safe

function public.is_running_state(state text, reason text) returns boolean language sql immutable parallel safe

function public.is_settled(decision text) returns boolean language sql immutable parallel safe

function public.is_use_current(asked text) returns boolean language sql stable parallel safe

function public.is_workload_of(seen_kind text, seen_name text, kind text, name text) returns boolean language sql
      immutable parallel safe

function public.join_name(rank integer) returns text language sql immutable parallel safe

function public.judge_containers(after text, max_workloads bigint, window_hours integer) returns TABLE(rows bigint, last
      text) language sql strict

function public.kg_capability_coverage(cluster text, namespace text, kind text, name text, container text, image_digest
      text, window_hours integer) returns TABLE(covered boolean, observed_since timestamp without time zone, reason
      text) language sql stable

function public.kg_runtime_coverage(cluster text, namespace text, kind text, name text, container text, image_digest
      text, window_hours integer) returns TABLE(covered boolean, observed_since timestamp without time zone, reason
      text) language sql stable

function public.lane_of(key text, lanes integer) returns integer language sql immutable parallel safe

function public.link_names(path text) returns SETOF text language sql immutable parallel safe

function public.link_report(written image_report) returns void language plpgsql

function public.live_pods_of(namespace text, kind text, name text) returns TABLE(pod_name text, node_name text,
      running_containers text[]) language sql stable parallel safe

function public.lock_decisions() returns void language sql

function public.lock_workload_syscalls(of_namespace text, of_kind text, of_workload text) returns void language sql

function public.mark_packages(held text) returns bigint language sql strict

function public.max_platform_reports() returns integer language sql immutable parallel safe

function public.may_be_alive(p pod) returns boolean language sql stable parallel safe

function public.may_be_renamed(id text, aliases text[]) returns boolean language sql immutable parallel safe

function public.merge_keys(kept jsonb, other jsonb) returns jsonb language plpgsql immutable strict parallel safe

aggregate public.merged_keys(jsonb) returns jsonb language internal immutable parallel safe

function public.merged_path(path text) returns text language sql immutable parallel safe

function public.merged_value(posted anyelement, stored anyelement, is_other boolean) returns anyelement language sql
      immutable parallel safe

function public.named_digests(of_digest text, of_source text) returns TABLE(image_digest text, join_rank smallint)
      language sql stable parallel safe

function public.names_decided_on() returns TABLE(name text) language sql stable parallel safe

function public.names_of_vulns(vulns text[]) returns TABLE(vuln_id text, name text) language sql stable parallel safe

function public.network_exposure(namespaces text[], kinds text[], names text[], since timestamp without time zone)
      returns TABLE(n bigint, pods bigint, flows bigint, ingress_flows bigint, other_namespaces bigint, unattributed
      bigint, public_ips bigint, nodes bigint, unknown_flows bigint) language sql stable

function public.node_coverage(of_namespace text, stale_secs integer) returns TABLE(node_name text, missing text[],
      alive_pods bigint, watched_containers bigint, last_pod_post timestamp without time zone, facts_at timestamp
      without time zone, drained_at timestamp without time zone, detail json) language sql stable

function public.normal_path(path text) returns text language sql immutable parallel safe

function public.not_covered(window_secs integer) returns bigint language sql stable

function public.not_read() returns bigint language sql stable parallel safe

function public.origin_rank(origin text) returns integer language sql immutable parallel safe

function public.package_coverage(package_type text, package_class text, purl text) returns text language sql immutable
      parallel safe

function public.package_files(images text[]) returns TABLE(image bigint, package_name text, path text, is_cut boolean)
      language sql stable

function public.package_id(name text, purl text) returns bigint language sql immutable parallel safe

function public.package_names(asked_name text, asked_purl text, names text[]) returns text[] language sql stable

function public.packages_in_use(asked text, names text[]) returns jsonb language sql stable

function public.packages_of_payload(of_digest text, of_source text, of_kind text) returns TABLE(packages bigint[])
      language sql stable parallel safe

function public.packages_run(images text[], listed_images bigint[], listed_packages text[], listed_paths text[]) returns
      TABLE(image_digest text, package_name text, pod_namespace text, workload_kind text, workload_name text,
      container_name text, cluster_id text, is_executed boolean) language sql stable

function public.payloads_of(asked text) returns text language sql stable parallel safe

function public.payloads_with(entries bigint[]) returns TABLE(digest text, source text, kind text) language sql stable

function public.pod_at_address(address text, at timestamp without time zone) returns SETOF pod language sql stable
      parallel safe

function public.pod_of_flow(name text) returns TABLE(pod_namespace text, started_at timestamp without time zone,
      workload_kind text, workload_name text) language sql stable parallel safe

function public.pod_pairs_of_edges(edges uuid[], max_flows bigint) returns TABLE(edge_id uuid, is_egress boolean, own
      text, peer text, flows bigint) language sql stable

function public.pods_with_label(of_label jsonb) returns TABLE(pod_namespace text, pod_name text) language sql stable
      parallel safe

function public.post_node_files(node text, set_id bytea, doc json) returns void language plpgsql

function public.posted_containers(doc json) returns TABLE(n bigint, workload bigint, pod_namespace text, workload_kind
      text, workload_name text, pod_name text, container_name text, container_kind text, image_ref text, image_digest
      text, digest_kind text, repository text, tags text[], security_context jsonb, pod_security jsonb, state text,
      state_reason text) language sql stable parallel safe

function public.prefix_end(beginning text) returns text language sql immutable parallel safe

function public.purl_base(purl text) returns text language sql immutable parallel safe

function public.purl_decoded(part text) returns text language sql immutable strict parallel safe

function public.purl_matches(decided text, purl text) returns boolean language plpgsql immutable strict parallel safe

function public.purl_parts(purl text) returns text[] language plpgsql immutable strict parallel safe

function public.purl_plain(purl text) returns text language sql immutable parallel safe

function public.purl_text(purl text) returns text language sql immutable parallel safe

function public.ran_as_init(container_kind text, state text) returns boolean language sql immutable parallel safe

function public.read_packages(held text, max_payloads bigint, max_packages bigint) returns TABLE(payloads bigint, next
      text) language sql strict

function public.record_aliases(posted image_finding[]) returns void language sql

function public.record_containers(doc json) returns integer language plpgsql

function public.record_facts(posted image_finding[]) returns void language sql

function public.record_pod_instances(doc json, moment timestamp without time zone) returns void language plpgsql

function public.record_pod_labels(names text[], begun text[]) returns void language sql

function public.record_profile_export(of_cluster text, of_namespace text, of_kind text, of_workload text, of_revision
      integer, hash text, in_mode text, included text[], of_images json, of_pod_security json, most integer, is_repeat
      boolean) returns void language plpgsql

function public.record_service_backends(is_held boolean) returns bigint language sql strict

function public.record_syscall_times(of_namespace text, of_kind text, of_workload text, old_names text[], new_names
      text[], sent json, moment timestamp without time zone) returns void language plpgsql

function public.refresh_facts(after bigint, max_news bigint, settled_after_secs integer) returns TABLE(rows bigint, last
      bigint) language sql strict

function public.refresh_images(after text, max_looked bigint, max_reread bigint, max_items bigint, window_secs integer,
      lanes integer, lane integer) returns TABLE(images bigint, last text) language sql strict

function public.relink(of_digest text, of_source text) returns integer language plpgsql

function public.rename_findings(of_digest text, of_source text) returns boolean language plpgsql

function public.rename_next_findings(after text, max_names bigint) returns TABLE(payloads bigint, last text) language
      plpgsql strict

function public.renumber_restored_flows(at_once integer) returns bigint language sql strict

function public.replace_components(of_digest text, of_source text, page_set text, rows text) returns bigint language
      plpgsql

function public.replace_findings(of_digest text, of_source text, rows json) returns void language plpgsql

function public.report_from_header(header json, of_kind text) returns image_report language plpgsql stable

function public.request_fact_refresh(vulns text[]) returns void language sql

function public.request_image_refresh(of_digest text, of_source text) returns void language sql

function public.request_recount(images text[]) returns void language sql

function public.reread_images(images text[]) returns void language sql

function public.reset_syscalls(of_namespace text, of_kind text, of_workload text, id uuid) returns timestamp without
      time zone language plpgsql

function public.resolve_by_header(sent image_report) returns json language plpgsql

function public.retention_start(days integer) returns timestamp without time zone language sql stable parallel safe

function public.retired_guesses(asked text, of_kind text) returns TABLE(digest text, source text, repository text, tag
      text) language sql stable parallel safe

function public.rows_left_by_pod(namespace text, pod text, container text, kind text, name text, digest text) returns
      TABLE(place tid, workload bigint) language sql stable parallel safe

function public.running_containers_of(namespace text, kind text, name text, window_secs integer) returns
      TABLE(container_name text, image_digest text) language sql stable

function public.running_watch(of_namespace text) returns TABLE(pod_namespace text, workload_kind text, workload_name
      text, container_name text, instances bigint, unwatched bigint, reasons text[]) language sql stable

function public.runs_in_other_pod(w workload_container, pod text) returns boolean language plpgsql stable

function public.runtime_coverage_of(cluster text, namespace text, kind text, name text, container text, image text,
      window_hours integer) returns TABLE(container_name text, image_digest text, instances bigint, last_heartbeat
      timestamp without time zone, mode text, libraries_tracked boolean, covered boolean, observed_since timestamp
      without time zone, reason text) language plpgsql stable

function public.search_address(asked text, max_looked integer, max_peers integer) returns TABLE(running boolean, place
      integer, key text, hit json) language sql stable strict

function public.search_images(beginnings text[], max_hits integer, window_secs integer) returns TABLE(running boolean,
      place integer, key text, hit json) language sql stable strict

function public.search_namespaces(asked text, prefixes boolean, max_looked integer, window_secs integer) returns
      TABLE(running boolean, place integer, key text, hit json) language sql stable

function public.search_nodes(asked text, prefixes boolean, max_looked integer) returns TABLE(running boolean, place
      integer, key text, hit json) language sql stable

function public.search_package_version(asked text, base text, version text, names text[], max_payloads integer,
      window_secs integer) returns TABLE(running boolean, place integer, key text, hit json) language sql stable strict

function public.search_packages(asked text, is_purl boolean, names text[], prefixes boolean, first_place integer,
      max_hits integer, window_secs integer) returns TABLE(running boolean, place integer, key text, hit json) language
      sql stable strict

function public.search_pods(of_namespace text, asked text, prefixes boolean, max_looked integer) returns TABLE(running
      boolean, place integer, key text, hit json) language sql stable

function public.search_repositories(exact text[], suffix text, tag text, max_looked integer, max_images integer,
      window_secs integer) returns TABLE(running boolean, place integer, key text, hit json) language sql stable

function public.search_services(of_namespace text, asked text, prefixes boolean, max_looked integer) returns
      TABLE(running boolean, place integer, key text, hit json) language sql stable

function public.search_vulnerabilities(asked text, max_hits integer, window_secs integer) returns TABLE(running boolean,
      place integer, key text, hit json) language sql stable strict

function public.search_workloads(of_namespace text, of_kind text, asked text, prefixes boolean, max_looked integer,
      window_secs integer) returns TABLE(running boolean, place integer, key text, hit json) language sql stable

function public.seccomp_profiles(profile_dir text, stale_secs integer) returns TABLE(namespace text, kind text, name
      text, hash text, syscall_count double precision, arches json, updated_at text, worst integer, pods integer,
      incomplete integer, names json, ranks json, cr_count integer, cr_name text, cr_action text, cr_hash text,
      cr_syscall_count double precision, cr_architectures json, cr_updated_at text, status_ready double precision,
      status_total double precision, status_state text, observed text, allowed text, live integer, present integer,
      ready integer) language sql stable

function public.seccomp_rollups(retention_days integer) returns TABLE(namespace text, kind text, name text, is_known
      boolean, denied text, denied_syscalls json, denied_actions json, last_denied text, is_shortened boolean) language
      sql stable

function public.seccomp_watch(retention_days integer) returns TABLE(is_watched boolean) language sql stable

function public.severity_name(severity integer) returns text language sql immutable parallel safe

function public.stage_page(sent image_report, page_set text, page_no bigint, pages bigint, rows text) returns json
      language plpgsql

function public.store_attestation(document json) returns text language plpgsql

function public.store_capabilities(doc json, post uuid) returns void language plpgsql

function public.store_decision(sent json, max_holding bigint, max_history bigint) returns json language plpgsql

function public.store_denials(document json) returns TABLE(workload_namespace text, workload_kind text, workload_name
      text, action text, denials double precision) language plpgsql

function public.store_executables(namespaces text[], workload_kinds text[], workload_names text[], containers text[],
      images text[], pods text[], owners integer[], kinds text[], paths text[], are_complete boolean[], sources text[],
      origins text[], seen_in integer[], firsts timestamp without time zone[], lasts timestamp without time zone[])
      returns integer language plpgsql

function public.store_findings(header json, rows text) returns json language plpgsql

function public.store_heartbeats(doc json) returns integer language plpgsql

function public.store_minutes(of_node text, sent timestamp without time zone, resolution bigint, uids text[], pod_uids
      text[], namespaces text[], pod_names text[], containers text[], usage_avg double precision[], usage_max double
      precision[], usage_last double precision[], quotas bigint[], periods bigint[], cpu_requests bigint[], cpu_limits
      bigint[], nr_periods bigint[], nr_throttled bigint[], throttled bigint[], cpu_some_avg double precision[],
      cpu_some_max double precision[], cpu_full_avg double precision[], cpu_full_max double precision[], current_avg
      bigint[], current_max bigint[], current_last bigint[], working_set_avg bigint[], working_set_max bigint[],
      working_set_last bigint[], mem_limits bigint[], mem_requests bigint[], mem_some_avg double precision[],
      mem_some_max double precision[], mem_full_avg double precision[], mem_full_max double precision[], events_high
      bigint[], events_max bigint[], oom_kills bigint[], refaults bigint[], pgmajfaults bigint[], runq_counts bigint[],
      runq_p50 bigint[], runq_p95 bigint[], runq_p99 bigint[], runq_max bigint[], runq_overflows bigint[], hists text[],
      victims integer[], cgroup_ids bigint[], kinds text[], refs text[], culprit_uids text[], counts bigint[], waits
      bigint[], are_heaviest boolean[]) returns void language plpgsql

function public.store_profile_version(namespace text, kind text, workload text, hash text, hashes json, stored_posture
      json, stored_snapshot json, status text, listed_summary json, drifts boolean, fills boolean, most integer, OUT
      stored_revision integer, OUT is_new boolean) returns record language plpgsql

function public.store_samples(document json, container_uids text[], pod_uids text[], namespaces text[], pod_names
      text[], containers text[], cgroup_ids bigint[], usages double precision[], quotas bigint[], periods bigint[],
      cpu_requests bigint[], cpu_limits bigint[], nr_periods bigint[], nr_throttled bigint[], throttled bigint[],
      cpu_some double precision[], cpu_full double precision[], currents bigint[], working_sets bigint[], mem_limits
      bigint[], mem_requests bigint[], mem_some double precision[], mem_full double precision[], events_high bigint[],
      events_max bigint[], oom_kills bigint[], refaults bigint[], pgmajfaults bigint[], runq_counts bigint[], runq_p50
      bigint[], runq_p95 bigint[], runq_p99 bigint[], runq_max bigint[], runq_overflows bigint[], blames text[], omitted
      bigint[], omitted_waits bigint[]) returns void language plpgsql

function public.store_sbom(header json, page json, rows text) returns json language plpgsql

function public.store_vex(document json, statements text, decisions text, max_holding bigint, max_documents bigint,
      max_counted bigint) returns json language plpgsql

function public.syscall_senders(of_pod text, of_namespace text, sent_at timestamp without time zone, moment timestamp
      without time zone) returns TABLE(pod_namespace text, instance text, workload_kind text, workload_name text,
      capture_level text, is_moved boolean, image_digests text[], first_seen timestamp without time zone, namespaces
      integer) language sql stable parallel safe

function public.tag_of_reference(reference text) returns text language sql immutable parallel safe

function public.tend_flow_pods(at_once integer) returns bigint language sql strict

function public.tier_of(is_live boolean, severity integer, is_fixable boolean, is_hot boolean, is_exposed boolean)
      returns smallint language sql immutable parallel safe

function public.trimmed(words text) returns text language sql immutable parallel safe

function public.unattributed_files(cluster text, namespace text, of_kind text, of_name text, container text, image text,
      since timestamp without time zone) returns TABLE(pod_name text, last_seen timestamp without time zone) language
      sql stable

function public.union_hash(syscalls text, arches text[]) returns text language sql immutable parallel safe

function public.union_names(first text, second text) returns text language sql immutable parallel safe

function public.union_syscalls(doc json) returns integer language sql

function public.union_tags(stored text[], seen text[]) returns text[] language sql immutable parallel safe

function public.unread_packages(asked text, is_purl boolean, names text[]) returns TABLE(digest text, source text, kind
      text, name text, artifact text, purl text) language sql stable parallel safe

function public.unread_payloads() returns TABLE(digest text, source text, kind text) language sql stable parallel safe

function public.unshipped_files(of_namespace text, since timestamp without time zone, is_image_running boolean,
      after_first timestamp without time zone, after_hash text, after_namespace text, after_kind text, after_workload
      text, after_container text, after_image text, after_entry text, retention_days integer, window_secs integer,
      max_rows integer, max_read integer) returns TABLE(items text, next_key json, watch text) language plpgsql stable

function public.upsert_pods(doc json) returns integer language plpgsql

function public.upsert_services(doc json) returns integer language plpgsql

function public.use_groups(asked text) returns TABLE(reason text, exposure text, containers bigint, observed_since
      timestamp without time zone) language sql stable

function public.use_state_name(state integer) returns text language sql immutable parallel safe

function public.vuln_names(asked text) returns text[] language sql stable parallel safe

function public.vulnerabilities_of_workload(namespace text, kind text, name text, containers text[], digests text[],
      are_current boolean[]) returns TABLE(severity smallint, tier smallint, count bigint, fixable bigint, in_use
      bigint, ids text[]) language sql stable

function public.waiting_reference(namespace text, kind text, name text, container text, reference text) returns text
      language plpgsql stable parallel safe

function public.wire_time(t timestamp without time zone) returns text language sql stable parallel safe

function public.without_repeats(list text[]) returns text[] language sql immutable parallel safe

function public.without_version(plain text) returns text language sql immutable parallel safe

function public.workload_capture(of_namespace text, of_kind text, of_workload text) returns TABLE(worst integer, pods
      integer, incomplete integer, names text[], ranks integer[]) language sql stable parallel safe

function public.workload_key(namespace text, kind text, name text) returns text language sql stable parallel safe

function public.workload_lock(namespace text, kind text, name text) returns bigint language sql immutable parallel safe

function public.workload_usage(of_namespace text, of_kind text, of_name text, of_days integer, max_pods integer,
      max_containers integer, max_exact_minutes integer, packed json DEFAULT NULL::json) returns json language sql
      stable

function public.write_findings(of_digest text, of_source text, posted image_finding[]) returns void language plpgsql

function public.write_report(sent image_report) returns void language sql
