-- A naive UTC time as it stands on the wire: no zone, and a fraction of 0, 3 or 6 digits, as many as needed.
create or replace function wire_time(t timestamp) returns text
language sql immutable parallel safe
as $$ select case
  when t = date_trunc('second', t)       then to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS')
  when t = date_trunc('milliseconds', t) then to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS.MS')
  else                                        to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS.US')
end $$;
