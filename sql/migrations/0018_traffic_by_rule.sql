-- no-transaction: The index traffic_rules_of_pod also serves the look-ups of traffic_by_rule.
drop index concurrently if exists traffic_by_rule;
