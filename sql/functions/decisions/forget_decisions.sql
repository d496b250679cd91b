-- Deletes decisions that ended so many days ago, then the oldest ended ones beyond the number that is kept, and
-- documents as old whose decisions have all been deleted. Null does nothing.
create or replace function forget_decisions(max_rows bigint, days bigint, max_kept bigint) returns bigint
language plpgsql strict
as $$
declare
  too_many bigint;
  deleted  bigint;
  rest     bigint;
begin
  too_many := (select count(*) from vuln_decision d where d.ended_at is not null) - max_kept;
  with old as materialized (
    select o.id
    from (select d.id, d.ended_at, row_number() over (order by d.ended_at) as nth
          from (select d.id, d.ended_at from vuln_decision d where d.ended_at is not null
                order by d.ended_at limit max_rows) d) o
    where o.ended_at < now() at time zone 'utc' - make_interval(days => days::integer) or o.nth <= too_many),
  gone as (delete from vuln_decision d where d.id = any (array(select o.id from old o)) returning 1)
  select count(*) into deleted from gone;
  with old as materialized (
    select v.document_id from vex_document v
    where v.received_at < now() at time zone 'utc' - make_interval(days => days::integer)
      and not exists (select from vuln_decision d where d.ended_at is null and d.document_id = v.document_id)
    order by v.received_at limit max_rows),
  statements as (
    delete from vex_statement s where s.document_id = any (array(select o.document_id from old o))),
  aliases as (
    delete from vex_alias a where a.document_id = any (array(select o.document_id from old o))),
  gone as (delete from vex_document v where v.document_id = any (array(select o.document_id from old o)) returning 1)
  select count(*) into rest from gone;
  return greatest(deleted, rest);
end
$$;
