-- A naive time as answers write it, with a fraction of 0, 3 or 6 digits, whichever is the shortest exact one
-- (docs/contract.md#addresses-and-times).
create or replace function wire_time(t timestamp) returns text
language sql stable parallel safe
as $$
  select to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS' || case
    when t = date_trunc('second', t) then ''
    when t = date_trunc('milliseconds', t) then '.MS'
    else '.US' end)
$$;
