-- The guesses by tag that would stand for an image if no payload had its digest: the newest scan per source, among the
-- newest 64 payloads of a source with the same repository and tag. The caller leaves out sources that do have an
-- answer. Tags are matched as in `expected_links`.
create or replace function retired_guesses(asked text, of_kind text)
returns table (digest text, source text, repository text, tag text)
language sql stable parallel safe
as $$
  select g.digest, s.source, g.normal_repository, g.tag
  from (select m.repository, m.tags,
               array(select m.tag from unnest(m.tags) m(tag)
                     union
                     select tag_of_reference(w.image_ref) from workload_container w
                            where w.image_digest = asked) as all_tags
        from image m
        where m.digest = asked
          and (exists (select from image_report o where o.digest = asked)
               or exists (select from image_link l where l.image_digest = asked and l.join_rank < 3))
        offset 0) m
  cross join unnest('{db-matcher,operator-scanner,registry}'::text[]) s(source)
  cross join lateral (
    select r.digest, r.normal_repository, r.tag
    from (select r.*
          from image_report r
          where r.normal_repository = m.repository and r.tag = any (m.all_tags) and r.source = s.source
                and r.kind = of_kind
          order by r.scanned_at desc, r.digest
          limit 64) r
    where exists (
            select from jsonb_to_recordset(r.observed_in) o(namespace text, kind text, name text, container text)
            cross join (select w.*, tag_of_reference(w.image_ref) as written
                        from workload_container w
                        where w.image_digest = asked
                        offset 0) w
            where w.pod_namespace = o.namespace and w.container_name = o.container
              and is_workload_of(o.kind, o.name, w.workload_kind, w.workload_name)
              and (r.tag = any (m.tags) or r.tag = w.written))
      and not exists (select from exact_links(r.digest, r.source))
    order by r.scanned_at desc, r.digest
    limit 1) g
$$;
