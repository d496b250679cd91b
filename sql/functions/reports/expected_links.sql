-- The links that the payloads of a digest and source should have: by digest, or, without any such link, by workload and
-- tag to images that no payload names by digest. The tag may be one of the image's stored tags or the one in the
-- container's reference.
create or replace function expected_links(of_digest text, of_source text)
returns table (image_digest text, join_rank smallint)
language sql stable parallel safe
as $$
  with reports as materialized (
    select r.* from image_report r where r.digest = of_digest and r.source = of_source),
  exact as materialized (
    select e.* from exact_links(of_digest, of_source) e)
  select e.image_digest, e.join_rank from exact e
  union all
  select distinct m.digest, 3::smallint
  from reports r
  cross join lateral jsonb_to_recordset(r.observed_in) o(namespace text, kind text, name text, container text)
  join workload_container w
    on w.pod_namespace = o.namespace and w.container_name = o.container
   and is_workload_of(o.kind, o.name, w.workload_kind, w.workload_name)
  join image m
    on m.digest = w.image_digest and m.repository = r.normal_repository
   and (r.tag = any (m.tags) or r.tag = tag_of_reference(w.image_ref))
  where not exists (select from exact)
    and not exists (select from image_link l
                    where l.image_digest = m.digest and l.join_rank < 3
                          and (l.digest, l.source) <> (of_digest, of_source))
    and not exists (select from image_report o where o.digest = m.digest)
$$;
