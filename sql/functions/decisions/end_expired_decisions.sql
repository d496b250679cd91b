-- Ends decisions whose last day is over, and counts their vulnerabilities again. Null does nothing.
create or replace function end_expired_decisions(max_rows bigint) returns bigint
language plpgsql strict
as $$
declare
  names text[];
begin
  perform lock_decisions();
  with over as materialized (
    select d.id from vuln_decision d
    where d.ended_at is null and d.holds_until < (now() at time zone 'utc')::date
    order by d.holds_until limit max_rows),
  ended as (
    update vuln_decision d set ended_at = d.holds_until + interval '1 day', ended_how = 'expired'
    where d.id = any (array(select o.id from over o))
    returning d.name)
  select array_agg(e.name) into names from ended e;
  if names is null then
    return 0;
  end if;
  perform count_decided_under(array(select distinct n.name from unnest(names) n(name)), max_rows);
  return cardinality(names);
end
$$;
