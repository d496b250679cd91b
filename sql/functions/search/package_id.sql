-- The number of a package: of its name and its package URL up to the version, as they are stored. It is cheap, because
-- the job computes it for each component. Packages with one number have the same `package_entry`; the converse need not
-- hold, so that the number may be computed otherwise one day. 64 bits: two of a million packages have the same one with
-- a probability of 1 in 30 million.
create or replace function package_id(name text, purl text) returns bigint
language sql immutable parallel safe
as $$
  select hashtextextended(name collate "C", hashtextextended(coalesce(
           case when strpos(purl, '/@') = 0 then split_part(purl, '@', 1) else purl end, '') collate "C", 0))
$$;
