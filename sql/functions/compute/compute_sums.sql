-- Arithmetic of the rollup of minutes: none of these fails, whatever the values are.

-- A value clamped to a range in which the database's arithmetic cannot underflow or overflow.
create or replace function compute_clamped(value float8) returns float8
language sql immutable parallel safe
return case when value >= 1e100 then 1e100 when value >= 1e-300 then value else 0 end;

-- A sum, capped at the largest bigint.
create or replace function compute_total(total numeric) returns bigint
language sql immutable parallel safe
return case
  when total > 9223372036854775807 then 9223372036854775807
  when total < -9223372036854775808 then -9223372036854775808
  else total
end::bigint;

-- Null counts as 0, unless both are null.
create or replace function compute_added(one bigint, other bigint) returns bigint
language sql immutable parallel safe
return compute_total(coalesce(one::numeric + other, one, other));

create or replace function compute_added(one bigint[], other bigint[]) returns bigint[]
language sql immutable parallel safe
return case
  when one is null or other is null then coalesce(one, other)
  else array(select coalesce(compute_added(u.one, u.other), 0) from unnest(one, other) with ordinality u(one, other, n)
             order by u.n)
end;
