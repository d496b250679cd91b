-- The pods that may have sent syscalls under a name at a given time, one per namespace, with the number of namespaces:
-- none means that no such pod was posted recently, several mean that the sender is ambiguous. A blank namespace matches
-- any. `moment` is now, `sent_at` is by the agent's clock. Within a namespace it is the last pod that had started by
-- then, else the first one after. The capture level is the one at that time, or the worse one if it was before a
-- change.
create or replace function syscall_senders(of_pod text, of_namespace text, sent_at timestamp, moment timestamp)
returns table (pod_namespace text, instance text, workload_kind text, workload_name text, capture_level text,
               is_moved boolean,
               image_digests text[], first_seen timestamp, namespaces integer)
language sql stable parallel safe
as $$
  select s.pod_namespace, s.instance, s.workload_kind, s.workload_name,
         case when sent_at < s.level_since and capture_rank(s.earlier_level) > capture_rank(s.capture_level)
              then s.earlier_level else s.capture_level end,
         s.is_moved, s.image_digests, s.first_seen, count(*) over ()::integer
  from (select distinct on (i.pod_namespace) i.*
        from pod_instance i
        -- Pods are posted every minute and recorded here every five: one not posted for fifteen counts as gone.
        where i.pod_name = of_pod and (of_namespace = '' or i.pod_namespace = of_namespace)
          and (i.last_seen >= moment - interval '15 minutes'
               or sent_at between least(i.started_at, i.first_post) - interval '15 minutes'
                  and i.last_post + interval '15 minutes')
        order by i.pod_namespace, least(i.started_at, i.first_post) > sent_at,
                 abs(extract(epoch from least(i.started_at, i.first_post) - sent_at)), i.first_seen desc) s
$$;
