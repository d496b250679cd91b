-- The payloads whose packages the job has not read, as far as a search looks at them itself: 500. Of a site that has
-- just been upgraded none is read, and looking at them all would take seconds; `not_read` counts the rest.
create or replace function unread_payloads() returns table (digest text, source text, kind text)
language sql stable parallel safe
as $$
  select r.digest, r.source, r.kind
  from image_report r
  where r.packages_hash is distinct from r.content_hash
  order by r.digest, r.source, r.kind
  limit 500
$$;
