-- The lane of a key, from 0 to `lanes` - 1, by its last character: digests and ids of vulnerabilities end in digits.
create or replace function lane_of(key text, lanes integer) returns integer
language sql immutable parallel safe
as $$
  select ascii(right(key, 1)) % lanes
$$;
