-- The tags of an image without repeats, at most 32: stored ones first, then newly reported ones.
create or replace function union_tags(stored text[], seen text[]) returns text[]
language sql immutable parallel safe
as $$
  select coalesce(array_agg(t.tag order by t.at), '{}')
  from (select u.tag, min(u.at) as at
        from unnest(stored || seen) with ordinality u(tag, at)
        where u.tag is not null
        group by u.tag
        order by 2
        limit 32) t
$$;
