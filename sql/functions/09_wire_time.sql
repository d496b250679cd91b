-- A naive time as answers write it: a fraction of 0, 3 or 6 digits, as few as hold it (interop-core 1.0).
create or replace function wire_time(t timestamp) returns text
language sql stable parallel safe
as $$
  select to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS' || case
    when t = date_trunc('second', t) then ''
    when t = date_trunc('milliseconds', t) then '.MS'
    else '.US' end)
$$;
