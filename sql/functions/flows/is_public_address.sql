-- Whether a stored address is routable on the internet. Stored addresses may be any text: the patterns admit only what
-- the cast to inet accepts (IPv4 without leading zeros, no zones), everything else is not public.
create or replace function is_public_address(address text) returns boolean
language sql immutable parallel safe
as $$
  select case
    when address ~* '^(?:::ffff:)?(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}'
                    '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$'
      then is_public_ip(('::ffff:' || ltrim(lower(address), ':f'))::inet)
    when address ~* '^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$'
      or address ~* '^(?=(?:[^:]*:){2,7}[^:]*$)'
                    '(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*)?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*)?$'
      then is_public_ip(address::inet)
    else false end
$$;
