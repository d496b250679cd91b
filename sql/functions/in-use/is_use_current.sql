-- Whether the use of the packages of an image is known as of now: all files that ran in its containers are linked to
-- its payloads, and the containers were judged a short while ago. A job that does not run must not leave a package
-- unused.
create or replace function is_use_current(asked text) returns boolean
language sql stable parallel safe
as $$
  select not exists (select from use_news n where n.image_digest = asked and not n.is_judged)
     and exists (select from summary_image s where s.image_digest = asked and s.payloads = payloads_of(asked))
     and exists (select from cve_summary_state c where c.is_only and c.judged_until >= now() at time zone 'utc')
$$;
