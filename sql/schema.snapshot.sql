-- The effect of all migrations, written by `UPDATE_SNAPSHOTS=1 npm test test/lib/schema.test.ts`.

table public.audit_verdict
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
  CREATE INDEX audit_verdict_by_name ON public.audit_verdict USING btree (policy_name, verdict, direction, observed_at DESC, id DESC)
  CREATE INDEX audit_verdict_by_namespace ON public.audit_verdict USING btree (policy_namespace, verdict, direction, observed_at DESC, id DESC)
  CREATE INDEX audit_verdict_by_outcome ON public.audit_verdict USING btree (verdict, direction, observed_at DESC, id DESC)
  CREATE INDEX audit_verdict_by_policy ON public.audit_verdict USING btree (policy_namespace, policy_name, verdict, direction, observed_at DESC, id DESC)
  CREATE INDEX audit_verdict_newest ON public.audit_verdict USING btree (observed_at DESC, id DESC)
  CREATE UNIQUE INDEX audit_verdict_pkey ON public.audit_verdict USING btree (id)

table public.image with (fillfactor=80)
  digest text collate "C" not null
  repository text collate "C"
  tags text[] not null
  digest_kind text collate "C" not null
  first_seen timestamp without time zone not null
  last_seen timestamp without time zone not null
  constraint image_digest_kind_check CHECK ((digest_kind = ANY (ARRAY['pinned'::text, 'config'::text, 'repo'::text])))
  constraint image_pkey PRIMARY KEY (digest)
  CREATE INDEX image_by_repository ON public.image USING btree (repository, digest)
  CREATE UNIQUE INDEX image_pkey ON public.image USING btree (digest)

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
  constraint node_facts_policy_enforcement_check CHECK ((policy_enforcement = ANY (ARRAY['enforced'::text, 'unenforced'::text, 'unknown'::text])))
  constraint node_facts_pkey PRIMARY KEY (node_name)
  CREATE UNIQUE INDEX node_facts_pkey ON public.node_facts USING btree (node_name)

table public.node_heartbeat with (fillfactor=70)
  node_name text collate "C" not null
  updated_at timestamp without time zone not null
  constraint node_heartbeat_pkey PRIMARY KEY (node_name)
  CREATE UNIQUE INDEX node_heartbeat_pkey ON public.node_heartbeat USING btree (node_name)

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
  constraint pod_pkey PRIMARY KEY (pod_name)
  CREATE INDEX pod_alive_in_order ON public.pod USING btree (pod_namespace, pod_name) WHERE (NOT is_dead)
  CREATE INDEX pod_by_namespace ON public.pod USING btree (pod_namespace, pod_name)
  CREATE INDEX pod_by_node ON public.pod USING btree (node_name, pod_namespace, pod_name) WHERE (NOT is_dead)
  CREATE UNIQUE INDEX pod_pkey ON public.pod USING btree (pod_name)

table public.pod_address
  ip text collate "C" not null
  pod_name text collate "C" not null
  constraint pod_address_pkey PRIMARY KEY (ip, pod_name)
  CREATE INDEX pod_address_by_pod ON public.pod_address USING btree (pod_name)
  CREATE UNIQUE INDEX pod_address_pkey ON public.pod_address USING btree (ip, pod_name)

table public.pod_syscalls with (fillfactor=70)
  pod_name text collate "C" not null
  pod_namespace text not null
  syscalls text not null
  arch text not null
  time_stamp timestamp without time zone not null
  constraint pod_syscalls_pkey PRIMARY KEY (pod_name)
  CREATE UNIQUE INDEX pod_syscalls_pkey ON public.pod_syscalls USING btree (pod_name)

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

table public.traffic with (fillfactor=95)
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
  constraint traffic_pkey PRIMARY KEY (uuid)
  CREATE INDEX traffic_by_pod ON public.traffic USING btree (pod_name, time_stamp DESC, uuid DESC)
  CREATE UNIQUE INDEX traffic_flow ON public.traffic USING btree (pod_ip, traffic_in_out_ip, traffic_type, decision, pod_port, traffic_in_out_port)
  CREATE INDEX traffic_newest ON public.traffic USING btree (time_stamp DESC, uuid DESC)
  CREATE UNIQUE INDEX traffic_pkey ON public.traffic USING btree (uuid)
  CREATE INDEX traffic_rules_of_pod ON public.traffic USING btree (hash_record(ROW(pod_name)), hash_record(ROW(pod_name, pod_namespace, peer_kind, peer_namespace, peer_workload_kind, COALESCE(peer_workload_name, peer_name), traffic_type, ip_protocol, pod_port, traffic_in_out_port, decision)), time_stamp) WHERE (peer_kind = ANY (ARRAY['pod'::text, 'service'::text]))
  CREATE UNIQUE INDEX traffic_udp_any_peer_port ON public.traffic USING btree (pod_ip, traffic_in_out_ip, traffic_type, decision, pod_port) WHERE (ip_protocol = 'UDP'::text)
  CREATE UNIQUE INDEX traffic_udp_any_pod_port ON public.traffic USING btree (pod_ip, traffic_in_out_ip, traffic_type, decision, traffic_in_out_port) WHERE (ip_protocol = 'UDP'::text)

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
  constraint workload_container_container_kind_check CHECK ((container_kind = ANY (ARRAY['init'::text, 'regular'::text, 'ephemeral'::text])))
  constraint workload_container_state_check CHECK ((state = ANY (ARRAY['running'::text, 'waiting'::text, 'terminated'::text])))
  constraint workload_container_pkey PRIMARY KEY (pod_namespace, workload_kind, workload_name, container_name, image_digest, cluster_id)
  CREATE INDEX workload_container_by_image ON public.workload_container USING btree (image_digest, pod_namespace, workload_name)
  CREATE INDEX workload_container_by_namespace ON public.workload_container USING btree (pod_namespace, image_digest, workload_name)
  CREATE INDEX workload_container_by_pod ON public.workload_container USING btree (last_pod_name, container_name) WHERE (last_pod_name IS NOT NULL)
  CREATE INDEX workload_container_oldest ON public.workload_container USING btree (last_seen)
  CREATE UNIQUE INDEX workload_container_pkey ON public.workload_container USING btree (pod_namespace, workload_kind, workload_name, container_name, image_digest, cluster_id)

function public.digest_kind_rank(kind text) returns integer language sql immutable parallel safe

function public.is_container_changed(w workload_container, container_kind text, image_ref text, security_context jsonb, pod_security jsonb, state text, state_reason text) returns boolean language sql stable parallel safe

function public.is_image_news(m image, repository text, tags text[], digest_kind text) returns boolean language sql stable parallel safe

function public.is_pod_alive(namespace text, name text) returns boolean language plpgsql stable parallel safe

function public.is_running(w workload_container, window_secs integer) returns boolean language sql stable parallel safe

function public.kept(posted anyelement, stored anyelement, is_other boolean) returns anyelement language sql immutable parallel safe

function public.pod_holding(address text, at timestamp without time zone) returns SETOF pod language sql stable parallel safe

function public.posted_containers(doc json) returns TABLE(n bigint, workload bigint, pod_namespace text, workload_kind text, workload_name text, pod_name text, container_name text, container_kind text, image_ref text, image_digest text, digest_kind text, repository text, tags text[], security_context jsonb, pod_security jsonb, state text, state_reason text) language sql stable parallel safe

function public.ran_as_init(container_kind text, state text) returns boolean language sql immutable parallel safe

function public.record_containers(doc json) returns integer language plpgsql

function public.union_names(first text, second text) returns text language sql immutable parallel safe

function public.union_syscalls(doc json) returns integer language plpgsql

function public.union_tags(stored text[], seen text[]) returns text[] language sql immutable parallel safe

function public.upsert_pods(doc json) returns integer language plpgsql

function public.upsert_services(doc json) returns integer language plpgsql

function public.waiting_reference(namespace text, kind text, name text, container text, reference text) returns text language plpgsql stable parallel safe
