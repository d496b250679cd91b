-- no-transaction: The profile of a workload counts the verdicts on connections from its pods.
create index concurrently if not exists audit_verdict_by_source on audit_verdict (src_namespace, src_pod, observed_at);
