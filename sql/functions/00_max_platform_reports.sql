-- Payloads of one source that may stand side by side, one a platform: an index is posted with at most as many manifests.
create or replace function max_platform_reports() returns integer
language sql immutable parallel safe
as $$ select 64 $$;
