-- Writes pod records, each name once in the document; returns how many were written. A null never overwrites a stored
-- value, except that a manifest with another uid belongs to another pod and replaces the whole row
-- (docs/contract.md#pods).
-- Agents post every pod each minute: a post that changes nothing is recognised by reading alone and takes no lock. Rows
-- that change are locked first, in the order of the names, so that addresses are compared with the row as it then is.
-- The pod instances behind the names are written every few minutes (`record_pod_instances`), their labels and nodes
-- when these change (`record_pod_labels`).
create or replace function upsert_pods(doc json) returns integer
language plpgsql
as $$
declare
  -- How often an unchanged pod is recorded as present.
  step       constant interval := '5 minutes';
  -- As the hash of labels: the next post records them.
  unrecorded constant uuid := '00000000-0000-0000-0000-000000000000';
  names      text[];
  noted      text[];
  moved      text[];
  labelled   text[];
  begun      text[];
begin
  with input as (
    select * from json_to_recordset(doc) as i(
      pod_name text, pod_ip text, pod_namespace text, pod_obj json, time_stamp timestamp, node_name text,
      is_dead boolean,
      pod_identity text, workload_selector_labels json, pod_ips text[], workload_kind text, workload_name text,
      capture_level text, host_network boolean, started_at timestamp, pod_uid text, running_containers text[]))
  select array_agg(i.pod_name order by i.pod_name) into names
  from input i
  left join pod p on p.pod_name = i.pod_name
  where p.pod_name is null
     or p.pod_ip <> i.pod_ip or p.time_stamp <> i.time_stamp or p.node_name <> i.node_name or p.is_dead <> i.is_dead
     or p.pod_ips <> i.pod_ips
     or i.pod_namespace    is distinct from p.pod_namespace    and i.pod_namespace    is not null
     or i.pod_identity     is distinct from p.pod_identity     and i.pod_identity     is not null
     or i.workload_kind    is distinct from p.workload_kind    and i.workload_kind    is not null
     or i.workload_name    is distinct from p.workload_name    and i.workload_name    is not null
     or i.capture_level    is distinct from p.capture_level    and i.capture_level    is not null
     or i.host_network     is distinct from p.host_network     and i.host_network     is not null
     or i.started_at       is distinct from p.started_at       and i.started_at       is not null
     or i.running_containers is distinct from p.running_containers and i.running_containers is not null
     or i.pod_obj::text    is distinct from p.pod_obj::text    and i.pod_obj          is not null
     or i.workload_selector_labels::text is distinct from p.workload_selector_labels::text
        and i.workload_selector_labels is not null;

  if names is null then
    return 0;
  end if;

  perform from pod where pod_name = any (names) order by pod_name for update;

  with input as (
    select * from json_to_recordset(doc) as i(
      pod_name text, pod_ip text, pod_namespace text, pod_obj json, time_stamp timestamp, node_name text,
      is_dead boolean, pod_identity text, workload_selector_labels json, pod_ips text[], workload_kind text,
      workload_name text, capture_level text, host_network boolean, started_at timestamp, pod_uid text,
      has_owner boolean, labels_hash uuid, running_containers text[], image_digests text[], named_ports jsonb)
    where i.pod_name = any (names)
  ), before as (
    select pod_name, pod_ips, time_stamp, pod_namespace, pod_uid, node_name, labels_hash
    from pod where pod_name = any (names)
  ), written as (
    insert into pod as p (pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_identity,
                          workload_selector_labels, pod_ips, workload_kind, workload_name, capture_level, host_network,
                          started_at, pod_uid, has_owner, labels_hash, running_containers, instance_post, named_ports)
    select pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_identity,
           workload_selector_labels, pod_ips, workload_kind, workload_name, capture_level, host_network, started_at,
           pod_uid, has_owner, labels_hash, running_containers, time_stamp, named_ports
    from input order by pod_name
    on conflict (pod_name) do update set
      pod_ip                   = excluded.pod_ip,
      pod_namespace            = merged_value(excluded.pod_namespace, p.pod_namespace, p.pod_uid <> excluded.pod_uid),
      pod_obj                  = coalesce(excluded.pod_obj, p.pod_obj),
      time_stamp               = excluded.time_stamp,
      node_name                = excluded.node_name,
      is_dead                  = excluded.is_dead,
      pod_identity             = merged_value(excluded.pod_identity, p.pod_identity, p.pod_uid <> excluded.pod_uid),
      workload_selector_labels = merged_value(excluded.workload_selector_labels, p.workload_selector_labels,
                                              p.pod_uid <> excluded.pod_uid),
      pod_ips                  = excluded.pod_ips,
      workload_kind            = merged_value(excluded.workload_kind, p.workload_kind, p.pod_uid <> excluded.pod_uid),
      workload_name            = merged_value(excluded.workload_name, p.workload_name, p.pod_uid <> excluded.pod_uid),
      capture_level            = merged_value(excluded.capture_level, p.capture_level, p.pod_uid <> excluded.pod_uid),
      host_network             = merged_value(excluded.host_network, p.host_network, p.pod_uid <> excluded.pod_uid),
      started_at               = merged_value(excluded.started_at, p.started_at, p.pod_uid <> excluded.pod_uid),
      running_containers       = merged_value(excluded.running_containers, p.running_containers,
                                              p.pod_uid <> excluded.pod_uid),
      pod_uid                  = case when excluded.pod_obj is null then p.pod_uid else excluded.pod_uid end,
      has_owner                = case when excluded.pod_obj is null then p.has_owner else excluded.has_owner end,
      named_ports              = case when excluded.pod_obj is null then p.named_ports else excluded.named_ports end,
      -- The row takes an older post, the history does not: the next post may change the row without a change of labels.
      labels_hash              = case when
        excluded.time_stamp < p.time_stamp
        and (excluded.node_name <> p.node_name or excluded.labels_hash <> p.labels_hash
             or excluded.pod_uid <> p.pod_uid or excluded.pod_namespace <> p.pod_namespace)
        then case when p.labels_hash is not null then unrecorded end
        else merged_value(excluded.labels_hash, p.labels_hash, p.pod_uid <> excluded.pod_uid) end,
      instance_post            = case when
        p.instance_post is null
        or excluded.time_stamp not between p.instance_post - step and p.instance_post + step
        or excluded.pod_namespace      <> coalesce(p.pod_namespace, '')
        or excluded.pod_uid            <> coalesce(p.pod_uid, '')
        or excluded.workload_kind      <> coalesce(p.workload_kind, '')
        or excluded.workload_name      <> coalesce(p.workload_name, '')
        or excluded.capture_level      <> coalesce(p.capture_level, '')
        or excluded.started_at         is distinct from p.started_at         and excluded.started_at         is not null
        or excluded.running_containers is distinct from p.running_containers and excluded.running_containers is not null
        -- The row takes a post older than the previous one, its instance takes only part of it: force the next write.
        then case when excluded.time_stamp < p.time_stamp then '-infinity' else excluded.time_stamp end
        else p.instance_post end
    returning p.pod_name, p.pod_namespace, p.pod_ips, p.time_stamp, p.pod_uid, p.node_name, p.labels_hash,
              p.instance_post in (p.time_stamp, '-infinity') as is_noted
  )
  select array_agg(w.pod_name) filter (where b.pod_ips is distinct from w.pod_ips),
         -- Other images than those of any instance: what is sent from now on is sent from them.
         array_agg(w.pod_name) filter (
           where w.is_noted
             or i.image_digests <> '{}' and i.time_stamp >= b.time_stamp and not exists (
               select from pod_instance e
               where e.pod_name = w.pod_name and e.pod_namespace = w.pod_namespace
                 and e.image_digests = i.image_digests and (i.pod_uid is null or e.pod_uid = i.pod_uid))),
         array_agg(w.pod_name) filter (
           where w.labels_hash is not null
             and (b.pod_name is null
                  or w.time_stamp >= b.time_stamp
                     and (w.labels_hash is distinct from b.labels_hash or w.node_name <> b.node_name
                          or w.pod_uid <> b.pod_uid or w.pod_namespace is distinct from b.pod_namespace))),
         array_agg(w.pod_name) filter (where b.labels_hash is null or w.pod_uid <> b.pod_uid)
  into moved, noted, labelled, begun
  from written w
  join input i on i.pod_name = w.pod_name
  left join before b on b.pod_name = w.pod_name;

  if moved is not null then
    delete from pod_address a using pod p
    where a.pod_name = any (moved) and p.pod_name = a.pod_name and a.ip <> all (p.pod_ips);

    insert into pod_address (ip, pod_name)
    select distinct unnest(p.pod_ips), p.pod_name from pod p where p.pod_name = any (moved)
    order by 1, 2
    on conflict do nothing;
  end if;

  if labelled is not null then
    perform record_pod_labels(labelled, begun);
  end if;

  -- A post without a namespace belongs to that of the row.
  if noted is not null then
    perform record_pod_instances((
      select json_agg(i)
      from (select i.pod_name, coalesce(i.pod_namespace, p.pod_namespace) as pod_namespace, i.pod_uid, i.started_at,
                   case when trimmed(i.workload_kind) <> '' then i.workload_kind end as workload_kind,
                   case when trimmed(i.workload_name) <> '' then i.workload_name end as workload_name,
                   i.capture_level, i.image_digests, i.time_stamp
            from json_to_recordset(doc) as i(
              pod_name text, pod_namespace text, pod_uid text, started_at timestamp, workload_kind text,
              workload_name text, capture_level text,
              image_digests text[], time_stamp timestamp)
            join pod p on p.pod_name = i.pod_name
            where i.pod_name = any (noted) and trimmed(coalesce(i.pod_namespace, p.pod_namespace)) <> '') i),
      clock_timestamp() at time zone 'utc');
  end if;

  return cardinality(names);
end
$$;
