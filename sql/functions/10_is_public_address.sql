-- Whether a stored address is one that the internet can route to. Stored addresses are any text: what is none (an IPv4 address has no
-- leading zeros, none has a zone) is not public, and is not cast, which would be an error.
create or replace function is_public_address(address text) returns boolean
language sql immutable parallel safe
as $$
  select case
    when address ~* '^(?:::ffff:)?(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$'
      then is_public_ip(('::ffff:' || ltrim(lower(address), ':f'))::inet)
    when address ~* '^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$'
      or address ~* '^(?=(?:[^:]*:){2,7}[^:]*$)(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*)?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*)?$'
      then is_public_ip(address::inet)
    else false end
$$;
