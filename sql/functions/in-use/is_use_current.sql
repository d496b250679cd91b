-- Whether all files that ran in containers of an image are linked to its packages, as its payloads are now.
create or replace function is_use_current(asked text) returns boolean
language sql stable parallel safe
as $$
  select not exists (select from use_news n where n.image_digest = asked and not n.is_judged)
     and exists (select from summary_image s where s.image_digest = asked and s.payloads = payloads_of(asked))
$$;
