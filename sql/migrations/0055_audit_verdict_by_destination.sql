-- no-transaction: The profile of a workload counts the verdicts on connections to its pods.
create index concurrently if not exists audit_verdict_by_destination
  on audit_verdict (dst_namespace, dst_pod, observed_at);
