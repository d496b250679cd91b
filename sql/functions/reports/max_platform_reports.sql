-- The payloads of one source, one per platform, that may stand for an index: as many as the manifests that a posted
-- index may list.
create or replace function max_platform_reports() returns integer
language sql immutable parallel safe
as $$ select 64 $$;
