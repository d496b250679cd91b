-- Each filter of the list of verdicts has an index that ends in the order of the list. Verdict and direction have two
-- values each, so that a read merges at most four ranges of an index.
create table audit_verdict (
  id               bigint generated always as identity primary key,
  policy_uid       text not null,
  policy_namespace text collate "C" not null,
  policy_name      text collate "C" not null,
  direction        text collate "C" not null check (direction in ('Ingress', 'Egress')),
  src_namespace    text,
  src_pod          text,
  dst_namespace    text,
  dst_pod          text,
  dst_port         bigint not null,
  protocol         text not null,
  reason           text not null,
  observed_at      timestamp not null,
  verdict          text collate "C" not null check (verdict in ('Allow', 'WouldDeny'))
);

create index audit_verdict_newest on audit_verdict (observed_at desc, id desc);
create index audit_verdict_by_outcome on audit_verdict (verdict, direction, observed_at desc, id desc);
create index audit_verdict_by_namespace
  on audit_verdict (policy_namespace, verdict, direction, observed_at desc, id desc);
create index audit_verdict_by_name on audit_verdict (policy_name, verdict, direction, observed_at desc, id desc);
create index audit_verdict_by_policy
  on audit_verdict (policy_namespace, policy_name, verdict, direction, observed_at desc, id desc);
